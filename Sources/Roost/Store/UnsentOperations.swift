public import Foundation

/// The error of a log-out that would delete what hasn't reached the server, or what it refused: messages, and other changes.
public struct UnsentOperations: Error, Hashable, Sendable, LocalizedError, CustomStringConvertible {
    /// How many they are: the rows of ``Chat/outbox``, and those of the file that this version can't read.
    public let count: Int

    init(count: Int) { self.count = count }

    public var description: String { "\(count) messages and changes haven't reached the server, and would be deleted." }
    /// The description, for Foundation.
    public var errorDescription: String? { description }
}
