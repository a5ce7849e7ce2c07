public import Foundation

/// Thrown by a log-out that would delete messages and other changes that haven't reached the server, or that it refused.
public struct UnsentOperations: Error, Hashable, Sendable, LocalizedError, CustomStringConvertible {
    /// Their number: those in ``Chat/outbox``, the unreadable ones in its file, and those in files that were set aside because a newer version had
    /// written them (``StorageProblem/Kind/outboxSetAside``). A file that this version can't count counts as 1.
    public let count: Int

    init(count: Int) { self.count = count }

    public var description: String { "\(count) messages and changes haven't reached the server, and would be deleted." }
    /// The description, for Foundation.
    public var errorDescription: String? { description }
}
