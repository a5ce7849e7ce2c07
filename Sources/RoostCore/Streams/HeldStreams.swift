public import RoostAPI

/// The streams whose heads a transaction has locked, or has made itself. An engine with several writers has one for each run of a transaction.
///
/// ``Scope/lock(in:)`` can't lock a head that isn't there yet. When another writer makes it and commits while this transaction is under way, later
/// statements see it, and what this transaction would write of it rests on rows that others may change at the same moment. So whoever moves
/// a stream, or decides by a channel of its scope, asks here first, and throws ``StreamMadeMeanwhile``.
///
/// It is used by one thread at a time, and ends with the transaction.
public final class HeldStreams {
    private var streams: Set<StreamID> = []
    /// Those of the operation under way: when it is taken back they are let go.
    private var ofOperation: [StreamID] = []
    /// Whether nobody else writes, so that every stream counts as held.
    private var isAlone = false

    public init() {}

    public func contains(_ stream: StreamID) -> Bool { isAlone || streams.contains(stream) }

    /// How many operations of the transaction have begun.
    public private(set) var operationCount = 0

    /// - Parameter askedAfter: How many operations had begun when the lock was asked for. The answer to what was asked for before an operation may come within
    ///   it, and is held whatever becomes of it. Nil for what the operation under way has made.
    public func insert(_ stream: StreamID, askedAfter: Int? = nil) {
        guard streams.insert(stream).inserted else { return }
        if askedAfter.map({ $0 == operationCount }) ?? true { ofOperation.append(stream) }
    }

    /// Begins an operation of the transaction. What was held before is held whatever becomes of it.
    public func beginOperation() {
        operationCount += 1
        ofOperation.removeAll(keepingCapacity: true)
    }

    /// Lets go of what the operation under way has locked and made, since it is taken back.
    public func undoOperation() {
        streams.subtract(ofOperation)
        ofOperation.removeAll(keepingCapacity: true)
    }

    /// Has every stream count as held: for tests of rules, beside which nobody writes.
    package func holdAll() { isAlone = true }
}

/// Another writer has made a stream after this transaction locked the heads that were there. The whole transaction is run again, and then
/// finds the head and locks it.
public struct StreamMadeMeanwhile: Error, CustomStringConvertible {
    public let stream: StreamID

    public var description: String { "Another writer has made \(stream) meanwhile." }
}
