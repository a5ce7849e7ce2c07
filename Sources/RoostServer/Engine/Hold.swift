/// Decides how long a lane's queue holds back operations that tolerate a delay, so that they share a commit
/// ([0104](docs/decisions/0104-marks-share-a-commit.md)). A value without a clock and threads.
///
/// They are held back while the queue contains nothing else and the lane is busy: its last batch ended a moment ago, and had other operations to
/// share the commit with. The second condition spares a lone caller, who sends each mark after the answer to the last one, a wait for nothing.
///
/// All times are nanoseconds of one monotonic clock.
struct Hold: Sendable {
    struct Configuration: Sendable {
        /// The longest that an operation is held back.
        var durationMax = Duration.milliseconds(4)
        /// The number of operations from which on nothing is held back.
        var countMax = 64
        /// A lane that has waited longer than this for work isn't busy.
        var idleAfter = Duration.milliseconds(20)
    }

    let configuration: Configuration
    /// Queued operations that don't tolerate a delay.
    private var urgentCount = 0
    /// When the first operation was appended to the empty queue; 0 if operations were left over from a batch.
    private var firstQueuedAt: UInt64 = 0
    /// Whether the lane is running a batch.
    private var isRunning = false
    /// When the lane had finished its last batch.
    private var waitingSince: UInt64 = 0
    /// Whether the last batch had operations that don't tolerate a delay, or more than one.
    private var hadOthers = false

    init(_ configuration: Configuration) { self.configuration = configuration }

    /// Notes an operation that was appended to the queue.
    ///
    /// - Parameter isFirst: Whether the queue was empty before.
    mutating func appended(_ job: Job, isFirst: Bool) {
        if !job.traits.toleratesDelay { urgentCount += 1 }
        if isFirst { firstQueuedAt = job.queuedAt }
    }

    /// Notes that the lane asks for its next batch.
    mutating func waits(at now: UInt64) {
        guard isRunning else { return }
        isRunning = false
        waitingSince = now
    }

    /// Notes that the lane has taken a batch.
    mutating func took(_ batch: [Job]) {
        let urgent = batch.count { !$0.traits.toleratesDelay }
        urgentCount -= urgent
        firstQueuedAt = 0
        isRunning = true
        hadOthers = urgent > 0 || batch.count > 1
    }

    /// Whether an operation that was just appended ends a hold.
    func isEnded(by job: Job, count: Int) -> Bool { !job.traits.toleratesDelay || count >= configuration.countMax }

    /// Returns how much longer the queued operations are held back; nil if they aren't.
    ///
    /// - Parameter count: How many are queued.
    func remaining(count: Int, at now: UInt64) -> Duration? {
        guard hadOthers, urgentCount == 0, count > 0, count < configuration.countMax,
            firstQueuedAt < waitingSince.adding(configuration.idleAfter)
        else { return nil }
        let end = firstQueuedAt.adding(configuration.durationMax)
        return now < end ? .nanoseconds(end - now) : nil
    }
}

extension UInt64 {
    /// The time later by a duration, both in nanoseconds; the latest possible one instead of an overflow.
    fileprivate func adding(_ duration: Duration) -> UInt64 {
        let (seconds, attoseconds) = duration.components
        let (sum, isTooLarge) = addingReportingOverflow(UInt64(Swift.max(0, seconds * 1_000_000_000 + attoseconds / 1_000_000_000)))
        return isTooLarge ? .max : sum
    }
}
