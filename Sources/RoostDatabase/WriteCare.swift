import Synchronization

/// Whether the writer's next transaction gives each of its operations a savepoint.
///
/// A transaction that turns out to need them is run twice. Who makes one of these makes the next too, as a rule, so that the transactions behind it
/// have savepoints from the start: nobody can have each run twice.
final class WriteCare: Sendable {
    /// How many transactions have savepoints after one that needed them.
    static let transactionCount = 64

    private let left = Atomic<Int>(0)

    /// Asked once for each transaction.
    func isNeeded() -> Bool {
        let before = left.load(ordering: .relaxed)
        guard before > 0 else { return false }
        left.store(before - 1, ordering: .relaxed)
        return true
    }

    /// A transaction without savepoints has needed them.
    func noteNeed() { left.store(Self.transactionCount, ordering: .relaxed) }
}
