import RoostAPI
import RoostDatabase
import Synchronization

/// Wakes the thread that runs effects: at a set time, or when an effect that is due earlier is committed.
final class EffectAlarm: Sendable {
    /// The time at which the thread will wake.
    private let until = Mutex(Timestamp.distantFuture)
    private let bell = MonotonicSemaphore()

    /// Wakes the thread if a committed effect is due before then.
    func ring(at due: Timestamp) {
        let isSooner = until.withLock { until in
            guard due < until else { return false }
            until = due
            return true
        }
        if isSooner { bell.signal() }
    }

    /// Makes every effect committed from now on ring. Called before the thread looks for due effects.
    func reset() { until.withLock { $0 = .distantFuture } }

    /// Sleeps until a time, but no longer than `atMost`. Blocks.
    func sleep(until time: Timestamp?, now: Timestamp, atMost: Duration) {
        let longest = Int(atMost / .milliseconds(1))
        let wait = time.map { min(max(0, Int(clamping: $0.milliseconds - now.milliseconds)), longest) } ?? longest
        let end = Timestamp(milliseconds: now.milliseconds + Int64(wait))
        until.withLock { $0 = min($0, end) }
        _ = bell.wait(atMost: .milliseconds(wait))
    }
}

extension Timestamp {
    fileprivate static let distantFuture = Timestamp(milliseconds: .max)
}
