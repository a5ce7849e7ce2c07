import Roost
import UnixSignals

/// Where the events of a screen come from.
extension ScreenChat {
    func produceEvents() -> [Task<Void, Never>] {
        let events = events
        return [
            Task {
                for await bytes in StandardInput.bytes() { events.yield(.typed(bytes)) }
                events.yield(.stop)
            },
            Task {
                for await signal in await UnixSignalsSequence(trapping: .sigwinch, .sigterm, .sighup, .sigint) {
                    events.yield(signal == .sigwinch ? .resized : .stop)
                }
            },
            Task {
                while !Task.isCancelled {
                    try? await Task.sleep(for: .seconds(1))
                    events.yield(.tick)
                }
            },
        ]
    }

    func observe() -> [ObservationToken] {
        let events = events
        return [
            list.observe { events.yield(.messages($0.items)) },
            room.channel.observe { events.yield(.channel($0)) },
            channels.observe { events.yield(.channels($0.items)) },
            room.chat.connection.observe { events.yield(.status($0)) },
        ]
    }
}
