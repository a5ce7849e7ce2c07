import RoostAPI

/// Which streams are compared with the database next.
///
/// In quiet times a share of all streams each second, so that what was lost without a trace is found within as many seconds as that takes. After a
/// doubt all of them as fast as they can be read.
struct Sweep {
    private var remaining: [StreamID] = []
    private var isUrgent = false
    private var lastAt: Relay.Time = 0

    /// How often something is read in quiet times.
    private static let pause: Relay.Time = 1000
    /// And in haste: a moment for the database to do other things.
    private static let urgentPause: Relay.Time = 20

    mutating func begin(_ streams: some Collection<StreamID>) {
        remaining = Array(streams)
        isUrgent = true
    }

    /// The streams to be looked at now; nil for none.
    mutating func next(of streams: some Collection<StreamID>, at now: Relay.Time, _ settings: Relay.Settings) -> [StreamID]? {
        guard now - lastAt >= (isUrgent ? Self.urgentPause : Self.pause) else { return nil }
        lastAt = now
        if remaining.isEmpty {
            isUrgent = false
            remaining = Array(streams)
        }
        let count = isUrgent ? settings.sweepAtOnce : settings.sweepPerSecond
        let part = Array(remaining.suffix(count))
        remaining.removeLast(part.count)
        if remaining.isEmpty { isUrgent = false }
        return part.isEmpty ? nil : part
    }
}
