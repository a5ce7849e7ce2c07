import NIOCore

/// Which brief reads an event loop runs itself instead of handing them to a thread that reads, so that no thread is woken for them.
///
/// The loop's other sockets wait meanwhile. So it reads for a short time in each of its turns; and reads that aren't brief, as those of large messages, take
/// a twentieth of its time at most, beyond a few at once: one can be late since the system had the processor do something else. After a read that would have had to
/// wait, whose work is lost, it leaves all of them to the threads for many times as long as that took.
///
/// A state machine without I/O.
struct LoopReads {
    /// How long it may have read in a turn before it begins another read.
    static let turnMax = TimeAmount.microseconds(250)
    /// What a brief read takes at most.
    static let briefMax = TimeAmount.microseconds(500)
    /// What the others may have taken beyond their part of the time when it begins another read.
    static let lateMax = TimeAmount.milliseconds(5)
    /// The part of the time that is theirs; and for how many times as long as a lost one took there are none.
    static let part: Int64 = 20

    private var spent = TimeAmount.zero
    private var pauseEnd = NIODeadline.uptimeNanoseconds(0)
    /// What reads that weren't brief had taken beyond their part at a time.
    private var late = TimeAmount.zero
    private var lateAt = NIODeadline.uptimeNanoseconds(0)

    func mayRun(at now: NIODeadline) -> Bool { spent < Self.turnMax && now >= pauseEnd && late(at: now) <= Self.lateMax }

    /// - Parameter isDone: Whether it was run to its end.
    mutating func ran(from start: NIODeadline, to end: NIODeadline, isDone: Bool) {
        let time = end - start
        spent = spent + time
        if !isDone { pauseEnd = end + time * Self.part }
        if time > Self.briefMax {
            late = late(at: end) + time
            lateAt = end
        }
    }

    mutating func turnEnded() { spent = .zero }

    private func late(at now: NIODeadline) -> TimeAmount {
        guard late > .zero else { return .zero }
        return max(.zero, late - .nanoseconds((now - lateAt).nanoseconds / Self.part))
    }
}
