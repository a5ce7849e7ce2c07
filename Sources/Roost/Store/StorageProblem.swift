public import Foundation

/// A problem with this device's files that doesn't stop the client.
///
/// A problem that does is an error of the call, or ``ConnectionStatus/failed(_:)``.
public struct StorageProblem: Hashable, Sendable, CustomStringConvertible {
    /// The kind of problem, which determines what is lost.
    public enum Kind: Hashable, Sendable {
        /// The outbox was damaged, or was written by a newer version. It was renamed and a new one created: messages and changes that hadn't reached the server
        /// are only in the renamed file. The user should be notified. What a newer version wrote is sent once a version that knows it opens the folder.
        case outboxSetAside
        /// The same happened to the cache, which is fetched again.
        case cacheSetAside
        /// The cache can't be opened and is kept in memory instead: the next start fetches everything again.
        case cacheNotKept
        /// The outbox couldn't be written, or its file was deleted while it was open. A new operation isn't kept, and its call throws. One that was
        /// carried out may be sent again after a restart, which changes nothing on the server.
        case outboxNotWritten
        /// This version can't read some operations in the outbox, such as a newer version's of an unknown kind or with an unknown field. They stay in the
        /// file and aren't sent; everything else continues. A version that can read them will find them.
        case operationsNotRead
    }

    /// The kind of problem.
    public let kind: Kind
    /// The file, under its new name if it was renamed. Nil for an outbox in memory.
    public let file: URL?
    /// The system's or SQLite's reason, for logs and developers. It may change.
    public let message: String

    init(_ kind: Kind, _ file: URL?, _ reason: any Error) {
        (self.kind, self.file, message) = (kind, file, "\(reason)")
    }

    public var description: String { "\(kind) (\(file?.path ?? "in memory")): \(message)" }
}
