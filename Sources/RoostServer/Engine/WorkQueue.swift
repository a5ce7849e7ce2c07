import Dispatch
import RoostAPI
import Synchronization

/// The queue of one kind of thread: bounded, taken in batches.
final class WorkQueue: Sendable {
    private struct State {
        var jobs: [Job] = []
        var isClosed = false
    }
    private let state = Mutex(State())
    private let available = DispatchSemaphore(value: 0)
    private let sizeMax: Int
    private let batchSizeMax: Int

    init(sizeMax: Int, batchSizeMax: Int) {
        self.sizeMax = sizeMax
        self.batchSizeMax = batchSizeMax
    }

    func append(_ job: Job) throws(RoostError) {
        var job = job
        job.queuedAt = DispatchTime.now().uptimeNanoseconds
        let (isFirst, refusal): (Bool, RoostError?) = state.withLock { state in
            if state.isClosed {
                return (false, RoostError(.unavailable, "The server is shutting down.", retryAfterMilliseconds: 1000))
            }
            if state.jobs.count >= sizeMax {
                return (false, RoostError(.overloaded, "The server is overloaded.", retryAfterMilliseconds: 500))
            }
            state.jobs.append(job)
            return (state.jobs.count == 1, nil)
        }
        if let refusal { throw refusal }
        // A thread that takes a batch signals again if jobs remain, so only the first job needs to signal. It does so without the lock:
        // the thread that wakes takes it at once.
        if isFirst { available.signal() }
    }

    /// Waits for work, at most for the given time. Nil when the queue is closed and empty.
    func next(within time: DispatchTimeInterval? = nil) -> [Job]? {
        while true {
            if let time {
                guard available.wait(timeout: .now() + time) == .success else { return [] }
            } else {
                available.wait()
            }
            let (batch, hasMore): ([Job]?, Bool) = state.withLock { state in
                if state.jobs.isEmpty { return (state.isClosed ? nil : [], false) }
                // Usually it takes all, and nothing has to be copied.
                if state.jobs.count <= batchSizeMax {
                    var batch: [Job] = []
                    swap(&batch, &state.jobs)
                    return (batch, state.isClosed)
                }
                let batch = Array(state.jobs.prefix(batchSizeMax))
                state.jobs.removeFirst(batch.count)
                return (batch, true)
            }
            // Once the queue is closed, each thread that wakes wakes the next.
            if hasMore { available.signal() }
            guard let batch else {
                available.signal()
                return nil
            }
            if !batch.isEmpty { return batch }
        }
    }

    /// Operations that wait.
    var length: Int { state.withLock { $0.jobs.count } }

    func close() {
        state.withLock { $0.isClosed = true }
        available.signal()
    }
}
