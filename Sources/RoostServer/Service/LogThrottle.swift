import Dispatch
import Synchronization

/// Keeps repeated messages from filling the log: one line per second for each kind, with the number of those left out.
final class LogThrottle: Sendable {
    /// A line that may be written now.
    struct Turn: Equatable {
        /// How many of its kind were left out since the last line.
        let suppressedCount: Int

        /// What to add to the line: nothing, or ` (and 17 like it)`.
        var suffix: String { suppressedCount == 0 ? "" : " (and \(suppressedCount) like it)" }
    }

    private struct Kind {
        var lastAt: UInt64
        var suppressedCount = 0
    }

    private let kinds = Mutex<[String: Kind]>([:])
    private let interval: UInt64
    private let now: @Sendable () -> UInt64

    /// The most kinds, which bounds the memory for their names. Any further kinds share one pace.
    static let kindsMax = 100

    init(
        interval: Duration = .seconds(1), now: @escaping @Sendable () -> UInt64 = { DispatchTime.now().uptimeNanoseconds }
    ) {
        self.interval = UInt64(max(0, interval / .nanoseconds(1)))
        self.now = now
    }

    /// Returns a turn for a line; nil while it is too early for another one of this kind.
    func turn(_ kind: String = "") -> Turn? {
        let now = now()
        return kinds.withLock { kinds in
            let kind = kinds[kind] == nil && kinds.count >= Self.kindsMax ? "" : kind
            guard let last = kinds[kind] else {
                kinds[kind] = Kind(lastAt: now)
                return Turn(suppressedCount: 0)
            }
            guard now >= last.lastAt &+ interval else {
                kinds[kind]?.suppressedCount += 1
                return nil
            }
            kinds[kind] = Kind(lastAt: now)
            return Turn(suppressedCount: last.suppressedCount)
        }
    }

    /// Returns whether it is time for another line, if there is only one kind.
    func shouldLog() -> Bool { turn() != nil }
}
