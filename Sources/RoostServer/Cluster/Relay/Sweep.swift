import RoostAPI

/// Chooses the streams that are compared with the database next.
///
/// In quiet times it takes a share of all streams each second, in turn: events lost without a trace are found within as many seconds as one
/// round takes. After a node or the bus was lost, or a comparison failed, it takes all of them, as fast as possible.
struct Sweep {
    /// Those to be compared as fast as possible.
    private var urgent: [StreamID] = []
    /// All streams from `first` on, the one whose turn is next in front. A stream is appended when it is opened, and again after its turn: if
    /// the order changed each time, the first of one round could be the last of the next. Closed streams are dropped when their turn comes.
    private var order: [StreamID] = []
    private var first = 0
    private var ordered: Set<StreamID> = []
    private var lastAt: Relay.Time = 0

    /// The pause between reads in quiet times.
    private static let pause: Relay.Time = 1000
    /// The pause between urgent reads, which leaves the database time for other work.
    private static let urgentPause: Relay.Time = 20

    /// Adds a stream that was opened.
    mutating func follow(_ stream: StreamID) {
        if ordered.insert(stream).inserted { order.append(stream) }
    }

    /// Starts comparing all streams, beginning with those that an earlier comparison of all has left: if restarted again and again, it would
    /// otherwise never reach them.
    mutating func begin(_ streams: some Collection<StreamID>) {
        let all = Set(streams)
        let left = urgent.filter(all.contains)
        urgent = all.subtracting(left) + left
    }

    /// Queues streams again whose comparison failed.
    mutating func again(_ streams: [StreamID]) {
        // A comparison of all may have started over meanwhile.
        let waiting = Set(urgent)
        urgent += streams.filter { !waiting.contains($0) }
    }

    /// Returns the streams to compare now; nil for none.
    ///
    /// - Parameter open: The streams that are open.
    mutating func next<Value>(of open: [StreamID: Value], at now: Relay.Time, _ settings: Relay.Settings) -> [StreamID]? {
        let isUrgent = !urgent.isEmpty
        guard now - lastAt >= (isUrgent ? Self.urgentPause : Self.pause) else { return nil }
        lastAt = now
        guard isUrgent else {
            let part = takeTurns(settings.sweepPerSecond, of: open)
            return part.isEmpty ? nil : part
        }
        let part = Array(urgent.suffix(settings.sweepAtOnce))
        urgent.removeLast(part.count)
        return part
    }

    private mutating func takeTurns<Value>(_ count: Int, of open: [StreamID: Value]) -> [StreamID] {
        var part: [StreamID] = []
        while part.count < count, first < order.count {
            let stream = order[first]
            first += 1
            if open[stream] != nil { part.append(stream) } else { ordered.remove(stream) }
        }
        order += part
        // Rarely enough that each stream is moved about once per round.
        if first >= order.count / 2 {
            order.removeFirst(first)
            first = 0
        }
        return part
    }
}
