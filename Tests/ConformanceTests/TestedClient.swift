import Logging
import Roost
import Testing

extension Chat.Configuration {
    /// A client that connects again at once. An error in its log fails the test: against a server that is well there is none.
    static func tested(_ storage: Chat.Storage = .inMemory) -> Chat.Configuration {
        var configuration = Chat.Configuration(storage: storage, logger: Logger(label: "client") { _ in FailingOnErrors() })
        configuration.backoff = .milliseconds(10)...(.milliseconds(100))
        return configuration
    }
}

private struct FailingOnErrors: LogHandler {
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.error

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { Issue.record("The client logged an error: \(event.message) \(event.metadata ?? [:])") }
}
