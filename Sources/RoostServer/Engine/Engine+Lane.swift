import Dispatch
import RoostAPI
import RoostCore
import RoostDatabase

/// What a lane's thread does.
extension Engine {
    /// Runs until the queue is closed and empty.
    func runLane(_ lane: Int, _ queue: WorkQueue, patience: Duration, setAsideMax: Int) {
        var ids: IDGenerator?
        var aside = SetAside(patience: patience, countMax: setAsideMax)
        while let batch = queue.next(within: aside.isEmpty ? nil : .milliseconds(50)) {
            let (others, refused) = aside.takeFollowers(of: batch)
            refuse(refused, RoostError(.overloaded, "Too much waits for a lock in this channel.", retryAfterMilliseconds: 1000))
            if !others.isEmpty {
                aside.put(writeUnlocked(others, lane: lane, &ids), at: .now)
                maintain(lane: lane)
            }
            guard let (jobs, since) = aside.takeNext(at: .now) else { continue }
            let locked = writeUnlocked(jobs, lane: lane, &ids)
            if locked.isEmpty || aside.isPatient(since: since, at: .now) {
                aside.put(locked, at: .now, since: since)
            } else {
                refuseLocked(locked)
            }
        }
        refuseLocked(aside.takeAll())
    }

    private func refuseLocked(_ jobs: [Job]) {
        guard !jobs.isEmpty else { return }
        lost(jobs, DatabaseFailure(message: "Somebody else held a lock for too long.", kind: .locked))
    }

    /// Writes those operations of a batch that no lock of others keeps out. Returns the rest.
    private func writeUnlocked(_ batch: [Job], lane: Int, _ ids: inout IDGenerator?) -> [Job] {
        var remaining = batch
        var locked: [Job] = []
        while !remaining.isEmpty, let obstacle = write(remaining, lane: lane, &ids) {
            var orders: Set<Job.Order>
            switch obstacle {
            case .access:
                // Those that change somebody's access wait for all that write; without them the others needn't wait. Where none does, all wait
                // for a change that another node makes.
                orders = Set(remaining.lazy.filter { !$0.scope.access.isEmpty }.map(\.order))
                if orders.isEmpty { orders = Set(remaining.map(\.order)) }
            case .row(let failed):
                // One or several channels: those whose head is held, or else the one whose rule came to a held row.
                orders = [failed]
                if remaining.contains(where: { $0.order != failed }), let occupied = occupied(remaining, lane: lane) {
                    let held = Set(remaining.lazy.filter { $0.scope.intersects(occupied) }.map(\.order))
                    if !held.isEmpty { orders = held }
                }
            }
            locked += remaining.filter { orders.contains($0.order) }
            remaining.removeAll { orders.contains($0.order) }
        }
        return locked
    }

    private func occupied(_ batch: [Job], lane: Int) -> Scope? {
        var scope = Scope()
        for job in batch { scope.formUnion(job.scope) }
        return try? database.write(lane: lane) { try scope.occupied(in: $0) }
    }
}
