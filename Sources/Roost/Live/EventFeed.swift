import NIOConcurrencyHelpers
import RoostAPI

/// Passes events on to all of their followers.
final class EventFeed: Sendable {
    private struct Reader {
        let queue: EventQueue
        let signals: AsyncStream<Void>.Continuation
    }

    private struct State {
        var readers: [Int: Reader] = [:]
        var lastNumber = 0
        var hasEnded = false
    }

    private let state = NIOLockedValueBox(State())

    /// Events from now on.
    func events() -> ChatEvents {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let queue = EventQueue()
        let number = state.withLockedValue { state -> Int? in
            guard !state.hasEnded else { return nil }
            state.lastNumber += 1
            state.readers[state.lastNumber] = Reader(queue: queue, signals: continuation)
            return state.lastNumber
        }
        if let number {
            continuation.onTermination = { [weak self] _ in
                _ = self?.state.withLockedValue { $0.readers.removeValue(forKey: number) }
            }
        } else {
            continuation.finish()
        }
        return ChatEvents(signals: stream, queue: queue)
    }

    func send(_ event: ChatEvent, at position: StreamPosition?) {
        let readers = state.withLockedValue { $0.readers.values.map(\.self) }
        // Waking a task needs its lock, which is held while the task is cancelled, and cancellation waits for the lock above.
        for reader in readers {
            reader.queue.add(event, at: position)
            reader.signals.yield()
        }
    }

    /// Ends all sequences once their buffered events have been read.
    func end() {
        let readers = state.withLockedValue { state in
            state.hasEnded = true
            defer { state.readers = [:] }
            return state.readers.values.map(\.self)
        }
        for reader in readers { reader.signals.finish() }
    }
}

/// The channel and the seq of an event.
struct StreamPosition: Hashable, Sendable {
    var channel: ChannelID
    var seq: Seq
}

/// The events that one reader hasn't taken yet, up to a limit. When it is full, they are replaced by one event that says what was missed.
final class EventQueue: Sendable {
    static let countMax = 1000

    private struct State {
        var events: [(event: ChatEvent, position: StreamPosition?)] = []
        /// How many of them have been taken.
        var taken = 0
    }

    private let state = NIOLockedValueBox(State())

    func add(_ event: ChatEvent, at position: StreamPosition?) {
        state.withLockedValue { state in
            state.events.removeFirst(state.taken)
            state.taken = 0
            if state.events.count == Self.countMax { state.events = [(Self.missed(state.events), nil)] }
            state.events.append((event, position))
        }
    }

    func take() -> ChatEvent? {
        state.withLockedValue { state in
            guard state.taken < state.events.count else { return nil }
            state.taken += 1
            return state.events[state.taken - 1].event
        }
    }

    /// Replaces unread events by one `missed`, with the position of the first event of each channel.
    private static func missed(_ events: [(event: ChatEvent, position: StreamPosition?)]) -> ChatEvent {
        var after: [ChannelID: Seq] = [:]
        for (event, position) in events {
            if case .missed(let earlier) = event { after.merge(earlier) { min($0, $1) } }
            if let position {
                after[position.channel] = min(after[position.channel] ?? .max, position.seq.subtractingWithSaturation(1))
            }
        }
        return .missed(after: after)
    }
}
