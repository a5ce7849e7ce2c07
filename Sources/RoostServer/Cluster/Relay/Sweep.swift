import RoostAPI

/// Chooses the streams that are compared with the database next.
///
/// In quiet times a share of all streams each second, so that events lost without a trace are found within as many seconds as that takes.
/// After a node or the bus was lost, or a comparison failed, all of them, as fast as possible.
struct Sweep {
    private var remaining: [StreamID] = []
    private var isUrgent = false
    private var lastAt: Relay.Time = 0

    /// The pause between reads in quiet times.
    private static let pause: Relay.Time = 1000
    /// The pause in haste, which leaves the database time for other work.
    private static let urgentPause: Relay.Time = 20

    /// Begins with those that an earlier comparison of all has left: begun again and again, it would otherwise never come to them.
    mutating func begin(_ streams: some Collection<StreamID>) {
        let all = Set(streams)
        let left = isUrgent ? remaining.filter(all.contains) : []
        remaining = all.subtracting(left) + left
        isUrgent = true
    }

    /// Compares streams once more that couldn't be.
    mutating func again(_ streams: [StreamID]) {
        // All may have been begun anew meanwhile.
        let waiting = Set(remaining)
        remaining += streams.filter { !waiting.contains($0) }
        isUrgent = true
    }

    /// Returns the streams to compare now; nil for none.
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
