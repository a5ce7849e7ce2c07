import Dispatch
import RoostAPI
import Synchronization

/// Wakes the thread that runs effects: at a time, or when one was asked for that is due before.
final class EffectAlarm: Sendable {
    /// Until when the thread would sleep, as far as it knows.
    private let until = Mutex(Timestamp.distantFuture)
    private let bell = DispatchSemaphore(value: 0)

    /// An effect that is due at some time was committed.
    func ring(at due: Timestamp) {
        let isSooner = until.withLock { until in
            guard due < until else { return false }
            until = due
            return true
        }
        if isSooner { bell.signal() }
    }

    /// The thread is about to look what is due: whatever is committed from here on rings.
    func reset() { until.withLock { $0 = .distantFuture } }

    /// Sleeps until a time, or for so long at most. Blocks.
    func sleep(until time: Timestamp?, now: Timestamp, atMost: Duration) {
        let longest = Int(atMost / .milliseconds(1))
        let wait = time.map { min(max(0, Int(clamping: $0.milliseconds - now.milliseconds)), longest) } ?? longest
        let end = Timestamp(milliseconds: now.milliseconds + Int64(wait))
        until.withLock { $0 = min($0, end) }
        _ = bell.wait(timeout: .now() + .milliseconds(wait))
    }
}

extension Timestamp {
    fileprivate static let distantFuture = Timestamp(milliseconds: .max)
}
