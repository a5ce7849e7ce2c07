import Dispatch
import RoostAPI
import RoostCore
import RoostDatabase
import Synchronization

/// The queue of one kind of thread: bounded, taken in batches, with users taking turns.
///
/// A lane's queue can hold back operations that tolerate a delay (``Hold``), so that they share a commit.
final class WorkQueue: Sendable {
    /// When operations that tolerate a delay are held back: if the queue holds only such operations, and only while the lane is busy.
    /// Any other operation releases them at once ([0104](docs/decisions/0104-marks-share-a-commit.md)).
    struct Hold: Sendable {
        /// The longest that an operation is held back.
        var durationMax = Duration.milliseconds(4)
        /// The number of operations from which on nothing is held back.
        var countMax = 64
        /// A lane that waited longer than this for work isn't busy.
        var idleAfter = Duration.milliseconds(20)

        /// Returns how much longer operations are held back; nil if they aren't. All times are nanoseconds of one monotonic clock.
        ///
        /// - Parameters:
        ///   - firstQueuedAt: When the first of them was queued.
        ///   - begun: When the lane had finished its last batch.
        func rest(of firstQueuedAt: UInt64, since begun: UInt64, at now: UInt64) -> Duration? {
            guard firstQueuedAt < begun.adding(idleAfter) else { return nil }
            let end = firstQueuedAt.adding(durationMax)
            return now < end ? .nanoseconds(end - now) : nil
        }
    }

    private struct State {
        var jobs: FairQueue<UserID, Job>
        var isClosed = false
        /// Queued operations that don't tolerate a delay.
        var urgentCount = 0
        /// When the first operation was appended to the empty queue; 0 after a batch was taken.
        var firstQueuedAt: UInt64 = 0
        /// Whether the thread is waiting for further operations before it takes a batch.
        var isHolding = false
    }
    private let state: Mutex<State>
    private let available = MonotonicSemaphore()
    private let hold: Hold?

    /// - Parameter hold: When operations that tolerate a delay are held back; nil for never. Only for a queue of one thread.
    init(sizeMax: Int, batchSizeMax: Int, hold: Hold? = nil) {
        state = Mutex(State(jobs: FairQueue(sizeMax: sizeMax, batchSizeMax: batchSizeMax)))
        self.hold = hold
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
            if !job.toleratesDelay { state.urgentCount += 1 }
            if state.jobs.count == 1 {
                state.firstQueuedAt = job.queuedAt
                return (true, nil)
            }
            guard state.isHolding, let hold, !job.toleratesDelay || state.jobs.count >= hold.countMax else { return (false, nil) }
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
        let begun = hold == nil ? 0 : DispatchTime.now().uptimeNanoseconds
        while true {
            if let time {
                guard available.wait(atMost: time) else { return [] }
            } else {
                available.wait()
            }
            if let hold { waitForOthers(hold, since: begun) }
            let (batch, hasMore): ([Job]?, Bool) = state.withLock { state in
                if state.jobs.isEmpty { return (state.isClosed ? nil : [], false) }
                let batch = state.jobs.takeBatch()
                if hold != nil {
                    state.urgentCount -= batch.count { !$0.toleratesDelay }
                    state.firstQueuedAt = 0
                }
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
    ///
    /// - Parameter begun: When the lane had finished its last batch.
    private func waitForOthers(_ hold: Hold, since begun: UInt64) {
        let rest: Duration? = state.withLock { state in
            guard !state.isClosed, state.urgentCount == 0, !state.jobs.isEmpty, state.jobs.count < hold.countMax else { return nil }
            let rest = hold.rest(of: state.firstQueuedAt, since: begun, at: DispatchTime.now().uptimeNanoseconds)
            state.isHolding = rest != nil
            return rest
        }
        guard let rest else { return }
        _ = available.wait(atMost: rest)
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

extension UInt64 {
    /// The time later by a duration, both in nanoseconds; the latest there is instead of an overflow.
    fileprivate func adding(_ duration: Duration) -> UInt64 {
        let (seconds, attoseconds) = duration.components
        let (sum, isTooLarge) = addingReportingOverflow(UInt64(Swift.max(0, seconds * 1_000_000_000 + attoseconds / 1_000_000_000)))
        return isTooLarge ? .max : sum
    }
}
