import RoostAPI
import RoostCore
import RoostDatabase

/// The batch loop of one lane: operations from its queue, and those set aside because of another transaction's lock. A value without threads,
/// queues and sockets; its only I/O is the database that it is given.
///
/// The engine runs one on each lane's thread, and simulations drive the same type.
struct Lane {
    let number: Int
    /// Nil if it has to be continued from the database, as at the start and after every failure.
    private var ids: IDGenerator?
    private var aside: DeferredJobs

    /// - Parameters:
    ///   - patience: How long an operation waits for a lock before it is refused.
    ///   - deferredJobsMax: The most operations that may wait for locks.
    ///   - batchSizeMax: The most of them that are retried in one transaction.
    init(number: Int, patience: Duration, deferredJobsMax: Int, batchSizeMax: Int = 512) {
        self.number = number
        aside = DeferredJobs(patience: patience, countMax: deferredJobsMax, batchSizeMax: batchSizeMax)
    }

    /// Whether operations are set aside for a retry: then ``run(_:in:_:_:)`` is also called without new ones.
    var isWaiting: Bool { !aside.isEmpty }

    /// Whether some of them have only waited for a transaction with room: they are due at once.
    var isBehind: Bool { aside.isBehind }

    /// Runs the operations of a batch, and then those set aside that are due.
    mutating func run(
        _ batch: [Job], in database: any Database, _ settings: BatchSettings, _ perform: (BatchAction) -> Void
    ) {
        let (others, refused) = aside.takeFollowers(of: batch)
        if !refused.isEmpty {
            let refusal = RoostError(
                .overloaded, "Too many operations are waiting for a lock in this channel.", retryAfterMilliseconds: 1000)
            perform(.refused(refused, refusal))
        }
        if !others.isEmpty {
            aside.put(writeUnlocked(others, in: database, settings, perform), at: settings.clock())
            perform(.maintain)
        }
        let begun = settings.clock()
        guard let (jobs, since) = aside.takeNext(at: begun) else { return }
        let locked = writeUnlocked(jobs, in: database, settings, perform)
        let now = settings.clock()
        if !locked.isEmpty { aside.pause(after: now - begun, at: now) }
        if locked.isEmpty || aside.isPatient(since: since, at: now) {
            aside.put(locked, at: now, since: since)
        } else {
            WriteBatch.refuse(locked + aside.takeFollowing(locked), after: DatabaseFailure.lockedTooLong, perform)
        }
    }

    /// Refuses the operations that are still set aside.
    mutating func end(_ perform: (BatchAction) -> Void) {
        let jobs = aside.takeAll()
        if !jobs.isEmpty { WriteBatch.refuse(jobs, after: DatabaseFailure.lockedTooLong, perform) }
    }

    /// Writes the operations of a batch that no other transaction's lock blocks. Returns the rest.
    private mutating func writeUnlocked(
        _ batch: [Job], in database: any Database, _ settings: BatchSettings, _ perform: (BatchAction) -> Void
    ) -> [Job] {
        var remaining = batch
        var locked: [Job] = []
        // Whether each operation has a separate transaction, because it isn't known which of them a lock stops.
        var isAlone = false
        var cancelled: [any Error] = []
        // Whether a row has stopped some of them before, and locked heads may have explained it.
        var hasMetRow = false
        while !remaining.isEmpty,
            let (obstacle, stopped) = isAlone
                ? WriteBatch.runAlone(remaining, in: database, lane: number, &ids, after: &cancelled, settings, perform)
                : WriteBatch.run(remaining, in: database, lane: number, &ids, settings, perform)
        {
            remaining = stopped
            var orders: Set<Job.Order>
            switch obstacle {
            case .access:
                // Changes of access and of rules wait for all writers; without them the others needn't wait. If the batch has none, all wait for
                // another node's change.
                orders = Set(remaining.lazy.filter(\.scope.isExclusive).map(\.order))
                if orders.isEmpty { orders = Set(remaining.map(\.order)) }
            case .row(let failed):
                // One or several channels: those whose head is locked, otherwise the one whose rule reached a locked row.
                orders = [failed]
                if remaining.contains(where: { $0.order != failed }), let occupied = occupied(remaining, in: database) {
                    let held = Set(remaining.lazy.filter { $0.scope.intersects(occupied) }.map(\.order))
                    if !held.isEmpty {
                        orders = isAlone ? held.union(orders) : held
                        // If other nodes write to the same channels, some head is locked at any moment. That doesn't mean it explains the next wait
                        // too.
                        isAlone = isAlone || hasMetRow
                        hasMetRow = true
                    } else if !isAlone {
                        // A pipelined statement fails at the next answer, which may be that of a later operation.
                        isAlone = true
                        continue
                    }
                }
            }
            locked += remaining.filter { orders.contains($0.order) }
            remaining.removeAll { orders.contains($0.order) }
        }
        return locked
    }

    /// Returns the streams of a batch that other transactions have locked.
    private func occupied(_ batch: [Job], in database: any Database) -> Scope? {
        var scope = Scope()
        for job in batch { scope.formUnion(job.scope) }
        return try? database.write(lane: number) { try scope.occupied(in: $0) }
    }
}
