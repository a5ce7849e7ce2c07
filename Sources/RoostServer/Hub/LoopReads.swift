import NIOCore

/// Which brief reads an event loop runs itself instead of handing them to a thread that reads, so that no thread is woken for them.
///
/// The loop's other sockets wait meanwhile. So it reads for a short time in each of its turns; and reads that aren't brief, as those of large messages, take
/// a twentieth of its time, and 5 ms at a time beyond that, since a brief read is late too when the system gives the processor to others. After a read that would
/// have had to wait, whose work is lost, it leaves all of them to the threads for many times as long as that took.
///
/// A state machine without I/O.
struct LoopReads {
    /// How long it may have read in a turn before it begins another read.
    static let turnMax = TimeAmount.microseconds(250)
    /// What a brief read takes at most.
    static let briefMax = TimeAmount.microseconds(500)
    /// By how much reads that weren't brief may exceed their part of the time for the loop to begin another read.
    static let lateMax = TimeAmount.milliseconds(5)
    /// Their part of the time is one in so many; and for so many times as long as a lost read took there are none.
    static let part: Int64 = 20

    private var spent = TimeAmount.zero
    private var pauseEnd = NIODeadline.uptimeNanoseconds(0)
    /// By how much they exceeded it at `lateAt`.
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
