import Foundation
import Logging

/// Log lines on standard error. They can contain text from clients, so control characters are removed: nobody can forge a line.
struct StandardErrorLog: LogHandler {
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.info
    private let label: String

    init(label: String) { self.label = label }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let all = metadata.merging(event.metadata ?? [:]) { $1 }
        let details = all.sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
        Output.note("\(Date.now.ISO8601Format()) \(event.level) \(label): \(event.message)\(details)".safe())
    }
}
