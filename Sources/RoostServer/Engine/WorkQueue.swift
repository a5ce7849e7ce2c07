import Dispatch
import RoostAPI
import RoostCore
import RoostDatabase
import Synchronization

/// The queue of one kind of thread: bounded, taken in batches, with users taking turns.
final class WorkQueue: Sendable {
    private struct State {
        var jobs: FairQueue<UserID, Job>
        var isClosed = false
    }
    private let state: Mutex<State>
    private let available = MonotonicSemaphore()

    init(sizeMax: Int, batchSizeMax: Int) {
        state = Mutex(State(jobs: FairQueue(sizeMax: sizeMax, batchSizeMax: batchSizeMax)))
    }

    func append(_ job: Job) throws(RoostError) {
        job.queuedAt = DispatchTime.now().uptimeNanoseconds
        let (isFirst, refusal): (Bool, RoostError?) = state.withLock { state in
            if state.isClosed {
                return (false, RoostError(.unavailable, "The server is shutting down.", retryAfterMilliseconds: 1000))
            }
            // A backend that acts for many users counts as one user.
            guard state.jobs.append(job, of: job.caller.token?.user ?? job.caller.user) else {
                return (false, RoostError(.overloaded, "The server is overloaded.", retryAfterMilliseconds: 500))
            }
            return (state.jobs.count == 1, nil)
        }
        if let refusal { throw refusal }
        // A thread that takes a batch signals again if jobs remain, so only the first job needs to signal. It signals outside the lock, which the
        // woken thread takes at once.
        if isFirst { available.signal() }
    }

    /// Waits for work, at most for the given time. Nil when the queue is closed and empty.
    func next(within time: Duration? = nil) -> [Job]? {
        while true {
            if let time {
                guard available.wait(atMost: time) else { return [] }
            } else {
                available.wait()
            }
            let (batch, hasMore): ([Job]?, Bool) = state.withLock { state in
                if state.jobs.isEmpty { return (state.isClosed ? nil : [], false) }
                let batch = state.jobs.takeBatch()
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

    /// The number of queued operations.
    var length: Int { state.withLock { $0.jobs.count } }

    func close() {
        state.withLock { $0.isClosed = true }
        available.signal()
    }
}
