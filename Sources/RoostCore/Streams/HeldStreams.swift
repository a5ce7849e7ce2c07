public import RoostAPI

/// The streams whose heads a transaction has locked, or has created itself. An engine with several writers has one for each run of a transaction.
///
/// ``Scope/lock(in:)`` can't lock a head that doesn't exist yet. If another writer creates it and commits while this
/// transaction is running, later statements see it, and this transaction's writes to it would rest on rows that others may
/// change at the same moment. So before moving a stream, or deciding by a channel of the scope, a rule checks here, and throws
/// ``StreamCreatedConcurrently``.
///
/// It is used by one thread at a time, and ends with the transaction.
public final class HeldStreams {
    private var streams: Set<StreamID> = []
    /// Those of the current operation: they are released if it is rolled back.
    private var ofOperation: [StreamID] = []
    /// Whether there is no other writer, so every stream counts as held.
    private var isAlone = false

    public init() {}

    public func contains(_ stream: StreamID) -> Bool { isAlone || streams.contains(stream) }

    /// Whether no stream is held.
    package var isEmpty: Bool { streams.isEmpty }

    /// The number of operations begun in the transaction.
    public private(set) var operationCount = 0

    /// - Parameter askedAfter: The number of operations begun when the lock was requested. A lock requested before an operation
    ///   may be answered during it, and is held whatever the operation's outcome. Nil for streams that the current operation
    ///   has created.
    public func insert(_ stream: StreamID, askedAfter: Int? = nil) {
        guard streams.insert(stream).inserted else { return }
        if askedAfter.map({ $0 == operationCount }) ?? true { ofOperation.append(stream) }
    }

    /// Begins an operation of the transaction. Streams held before it stay held whatever its outcome.
    public func beginOperation() {
        operationCount += 1
        ofOperation.removeAll(keepingCapacity: true)
    }

    /// Releases the streams that the current operation has locked and created, since it is rolled back.
    public func undoOperation() {
        streams.subtract(ofOperation)
        ofOperation.removeAll(keepingCapacity: true)
    }

    /// Makes every stream count as held: for tests of rules without another writer.
    package func holdAll() { isAlone = true }
}

/// Another writer has created a stream after this transaction locked the existing heads. The whole transaction is run again,
/// and then finds the head and locks it.
public struct StreamCreatedConcurrently: Error, CustomStringConvertible {
    public let stream: StreamID

    public var description: String { "Another writer has created \(stream) in the meantime." }
}
