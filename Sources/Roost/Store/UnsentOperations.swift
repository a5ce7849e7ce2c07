public import Foundation

/// Thrown by a log-out that would delete messages and other changes that haven't reached the server, or that it refused.
public struct UnsentOperations: Error, Hashable, Sendable, LocalizedError, CustomStringConvertible {
    /// Their number: those in ``Chat/outbox``, and those in its file that this version can't read.
    public let count: Int

    init(count: Int) { self.count = count }

    public var description: String { "\(count) messages and changes haven't reached the server, and would be deleted." }
    /// The description, for Foundation.
    public var errorDescription: String? { description }
}
