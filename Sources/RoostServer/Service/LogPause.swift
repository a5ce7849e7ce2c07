import Dispatch
import Synchronization

/// Keeps a failure that goes on from filling the log: one line each second.
final class LogPause: Sendable {
    private let lastAt = Mutex<UInt64?>(nil)

    /// Whether it is time for another line.
    func isNews() -> Bool {
        let now = DispatchTime.now().uptimeNanoseconds
        return lastAt.withLock { last in
            if let last, now - last < 1_000_000_000 { return false }
            last = now
            return true
        }
    }
}
