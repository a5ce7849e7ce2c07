import Synchronization

/// Whether the writer's next transaction sets a savepoint for each of its operations.
///
/// A transaction that turns out to need them is run twice. The client that causes one usually causes the next too, so the transactions after it have
/// savepoints from the start: no client can make each of them run twice.
final class SavepointPolicy: Sendable {
    /// The number of transactions with savepoints after one that needed them.
    static let transactionCount = 64

    private let left = Atomic<Int>(0)

    /// Called once for each transaction.
    func isNeeded() -> Bool {
        let before = left.load(ordering: .relaxed)
        guard before > 0 else { return false }
        left.store(before - 1, ordering: .relaxed)
        return true
    }

    /// Records that a transaction without savepoints needed them.
    func noteNeed() { left.store(Self.transactionCount, ordering: .relaxed) }
}
