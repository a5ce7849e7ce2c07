import Dispatch
import RoostAPI
import RoostCore
import RoostDatabase
import Synchronization

/// The queue of one kind of thread: bounded, taken in batches, with users taking turns.
///
/// A lane's queue can hold back operations that tolerate a delay, so that they share a commit (``Hold``).
final class WorkQueue: Sendable {
    private struct State {
        var jobs: FairQueue<UserID, Job>
        var isClosed = false
        /// Nil if nothing is ever held back.
        var hold: Hold?
        /// Whether the thread is waiting for further operations before it takes a batch.
        var isHolding = false
    }
    private let state: Mutex<State>
    private let available = MonotonicSemaphore()
    private let holds: Bool

    /// - Parameter hold: When operations that tolerate a delay are held back; nil for never. Only for a queue of one thread.
    init(sizeMax: Int, batchSizeMax: Int, hold: Hold.Configuration? = nil) {
        state = Mutex(State(jobs: FairQueue(sizeMax: sizeMax, batchSizeMax: batchSizeMax), hold: hold.map { Hold($0) }))
        holds = hold != nil
    }

    func append(_ job: Job) throws(RoostError) {
        job.queuedAt = DispatchTime.now().uptimeNanoseconds
        let (mustWake, refusal): (Bool, RoostError?) = state.withLock { state in
            if state.isClosed {
                return (false, RoostError(.unavailable, "The server is shutting down.", retryAfterMilliseconds: 1000))
            }
            // A backend that acts for many users counts as one user.
            guard state.jobs.append(job, of: job.caller.token?.user ?? job.caller.user) else {
                return (false, RoostError(.overloaded, "The server is overloaded.", retryAfterMilliseconds: 500))
            }
            let isFirst = state.jobs.count == 1
            state.hold?.appended(job, isFirst: isFirst)
            guard state.isHolding, state.hold?.isEnded(by: job, count: state.jobs.count) == true else { return (isFirst, nil) }
            state.isHolding = false
            return (true, nil)
        }
        if let refusal { throw refusal }
        // A thread that takes a batch signals again if jobs remain, so only the first job and one that ends a hold need to signal. They signal
        // outside the lock, which the woken thread takes at once.
        if mustWake { available.signal() }
    }

    /// Waits for work, at most for the given time. Nil when the queue is closed and empty.
    func next(within time: Duration? = nil) -> [Job]? {
        if holds {
            let now = DispatchTime.now().uptimeNanoseconds
            state.withLock { $0.hold?.waits(at: now) }
        }
        while true {
            if let time {
                guard available.wait(atMost: time) else { return [] }
            } else {
                available.wait()
            }
            if holds { waitForOthers() }
            let (batch, hasMore): ([Job]?, Bool) = state.withLock { state in
                if state.jobs.isEmpty { return (state.isClosed ? nil : [], false) }
                let batch = state.jobs.takeBatch()
                state.hold?.took(batch)
                return (batch, state.isClosed || !state.jobs.isEmpty)
            }
            // Once the queue is closed, each woken thread wakes the next.
            if hasMore { available.signal() }
            guard let batch else {
                available.signal()
                return nil
            }
            if !batch.isEmpty { return batch }
        }
    }

    /// Holds back the queued operations if all of them tolerate it and the lane is busy.
    private func waitForOthers() {
        let remaining: Duration? = state.withLock { state in
            guard !state.isClosed else { return nil }
            let remaining = state.hold?.remaining(count: state.jobs.count, at: DispatchTime.now().uptimeNanoseconds)
            state.isHolding = remaining != nil
            return remaining
        }
        guard let remaining else { return }
        _ = available.wait(atMost: remaining)
        state.withLock { $0.isHolding = false }
    }

    /// Whether operations are held back at the moment.
    var isHolding: Bool { state.withLock { $0.isHolding } }

    /// The number of queued operations.
    var length: Int { state.withLock { $0.jobs.count } }

    func close() {
        state.withLock { $0.isClosed = true }
        available.signal()
    }
}
