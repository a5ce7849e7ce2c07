import Foundation
import Logging
import Roost
import RoostTestSupport
import Testing

/// A user's chat with a server, in memory unless a directory is given.
func chat(_ user: UserID, at server: TestServer, in directory: URL? = nil) -> Chat {
    let configuration = Chat.Configuration.tested(directory.map(Chat.Storage.directory) ?? .inMemory)
    return Chat(url: server.url, user: user, configuration: configuration) { try await server.token(user) }
}

/// Waits until a condition holds: longer than a client's call may take, so its refusal is seen first.
///
/// - Throws: ``Missed`` at the deadline.
@MainActor func wait(
    _ what: String, within deadline: Duration = .seconds(45), until condition: @MainActor () -> Bool
) async throws {
    let end = ContinuousClock.now + deadline
    while !condition() {
        guard ContinuousClock.now < end else { throw Missed(what) }
        try await Task.sleep(for: .milliseconds(5))
    }
}

/// Runs a body while a user keeps typing: after seven seconds without a key they have stopped, and a busy machine may take longer.
@MainActor func whileTyping(in channel: LiveChannel, _ body: @MainActor () async throws -> Void) async throws {
    channel.startTyping()
    let typing = Task {
        while !Task.isCancelled {
            try await Task.sleep(for: .seconds(1))
            channel.startTyping()
        }
    }
    defer { typing.cancel() }
    try await body()
}

extension Chat.Configuration {
    /// A client that reconnects immediately. An error in its log fails the test: with a healthy server there is none.
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
