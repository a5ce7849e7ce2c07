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
        let refusal: RoostError? = state.withLock { state in
            if state.isClosed { return RoostError(.unavailable, "The server is shutting down.", retryAfterMilliseconds: 1000) }
            if state.jobs.count >= sizeMax {
                return RoostError(.overloaded, "The server is overloaded.", retryAfterMilliseconds: 500)
            }
            // A thread that takes a batch signals again if jobs remain, so only the first job needs to signal.
            if state.jobs.isEmpty { available.signal() }
            state.jobs.append(job)
            state.jobs[state.jobs.count - 1].queuedAt = DispatchTime.now().uptimeNanoseconds
            return nil
        }
        if let refusal { throw refusal }
    }

    /// Waits for work, at most for the given time. Nil when the queue is closed and empty.
    func next(within time: DispatchTimeInterval? = nil) -> [Job]? {
        while true {
            if let time {
                guard available.wait(timeout: .now() + time) == .success else { return [] }
            } else {
                available.wait()
            }
            let batch: [Job]? = state.withLock { state in
                if state.jobs.isEmpty { return state.isClosed ? nil : [] }
                let batch = Array(state.jobs.prefix(batchSizeMax))
                state.jobs.removeFirst(batch.count)
                // Once the queue is closed, each thread that wakes wakes the next.
                if !state.jobs.isEmpty || state.isClosed { available.signal() }
                return batch
            }
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
