public import Foundation

/// The error of a log-out that would delete messages which haven't reached the server, or which it refused.
public struct UnsentMessages: Error, Hashable, Sendable, LocalizedError, CustomStringConvertible {
    /// How many they are.
    public let count: Int

    init(count: Int) { self.count = count }

    public var description: String { "\(count) messages haven't reached the server, and would be deleted." }
    /// The description, for Foundation.
    public var errorDescription: String? { description }
}
