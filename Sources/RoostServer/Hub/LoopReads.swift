import NIOCore

/// Which brief reads an event loop runs itself instead of handing them to a thread that reads, so that no thread is woken for them.
///
/// The loop's other sockets wait meanwhile. So it reads for a short time in each of its turns; and after a read that wasn't brief, as one of large messages, it
/// leaves all of them to the threads for many times as long as that took. So it does after one that would have had to wait, whose work is lost.
///
/// A state machine without I/O.
struct LoopReads {
    /// How long it may have read in a turn before it begins another read.
    static let turnMax = TimeAmount.microseconds(250)
    /// What a brief read takes at most.
    static let briefMax = TimeAmount.microseconds(500)
    /// For how many times as long as one of the others took there are none: these take the loop a twentieth of its time at most.
    static let pauseFactor: Int64 = 20

    private var spent = TimeAmount.zero
    private var pauseEnd = NIODeadline.uptimeNanoseconds(0)

    func mayRun(at now: NIODeadline) -> Bool { spent < Self.turnMax && now >= pauseEnd }

    /// - Parameter isDone: Whether it was run to its end.
    mutating func ran(from start: NIODeadline, to end: NIODeadline, isDone: Bool) {
        let time = end - start
        spent = spent + time
        if time > Self.briefMax || !isDone { pauseEnd = end + time * Self.pauseFactor }
    }

    mutating func turnEnded() { spent = .zero }
}
