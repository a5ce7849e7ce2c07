public import Foundation

/// Something that is wrong with this device's files, in spite of which the client goes on.
///
/// What the client can't go on with is an error of the call, or ``ConnectionStatus/failed(_:)``.
public struct StorageProblem: Error, Hashable, Sendable, CustomStringConvertible {
    /// What has happened, and so what is lost.
    public enum Kind: Hashable, Sendable {
        /// The outbox was damaged, or was written by a newer version. It was renamed, and a new one begun: messages and changes that hadn't reached the
        /// server are only in the renamed file. The user should be told.
        case outboxSetAside
        /// The same of the cache, which is fetched again.
        case cacheSetAside
        /// The cache can't be opened, and is in memory instead: the next start fetches everything again.
        case cacheNotKept
        /// Something couldn't be written. What was asked for isn't kept, and its call says so; what was carried out may be sent once more after a
        /// restart, and the server does nothing again.
        case outboxNotWritten
        /// Operations of the outbox can't be read by this version, like those that a newer one has put there. They stay in the file and aren't sent; all
        /// else goes on. A version that can read them finds them again.
        case operationsNotRead
    }

    /// What has happened.
    public let kind: Kind
    /// The file, by its new name where it was renamed. Nil for an outbox in memory.
    public let file: URL?
    /// The system's or SQLite's reason, for logs and developers. It may change.
    public let message: String

    init(_ kind: Kind, _ file: URL?, _ reason: any Error) {
        (self.kind, self.file, message) = (kind, file, "\(reason)")
    }

    public var description: String { "\(kind) (\(file?.path ?? "in memory")): \(message)" }
}
