import NIOCore

/// Decides which brief reads an event loop runs itself instead of waking a reading thread for them.
///
/// The loop's other sockets wait meanwhile, so it reads only for a short time in each turn. Reads that aren't brief, such as those of large
/// messages, may take a twentieth of its time, and 5 ms beyond that, because a brief read takes long too when the system gives the processor to
/// others. After a read that would have had to wait, whose work is lost, it leaves all reads to the threads for many times as long as that
/// one took.
///
/// A state machine without I/O.
struct LoopReads {
    /// The time spent reading in a turn after which no other read begins.
    static let turnMax = TimeAmount.microseconds(250)
    /// The longest that a brief read takes.
    static let briefMax = TimeAmount.microseconds(500)
    /// By how much reads that weren't brief may exceed their share of the time. Beyond that the loop begins no other read.
    static let overrunMax = TimeAmount.milliseconds(5)
    /// Their share of the time is one part in this many; after a lost read there are none for this many times its duration.
    static let part: Int64 = 20

    private var spent = TimeAmount.zero
    private var pauseEnd = NIODeadline.uptimeNanoseconds(0)
    /// By how much they exceeded their share at `overrunAt`.
    private var overrun = TimeAmount.zero
    private var overrunAt = NIODeadline.uptimeNanoseconds(0)

    func mayRun(at now: NIODeadline) -> Bool { spent < Self.turnMax && now >= pauseEnd && overrun(at: now) <= Self.overrunMax }

    /// - Parameter isDone: Whether the read ran to its end.
    mutating func ran(from start: NIODeadline, to end: NIODeadline, isDone: Bool) {
        let time = end - start
        spent = spent + time
        if !isDone { pauseEnd = end + time * Self.part }
        if time > Self.briefMax {
            overrun = overrun(at: end) + time
            overrunAt = end
        }
    }

    mutating func turnEnded() { spent = .zero }

    private func overrun(at now: NIODeadline) -> TimeAmount {
        guard overrun > .zero else { return .zero }
        return max(.zero, overrun - .nanoseconds((now - overrunAt).nanoseconds / Self.part))
    }
}
