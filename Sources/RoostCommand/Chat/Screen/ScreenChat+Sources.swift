import Roost
import RoostAPI
import UnixSignals

/// The sources of a screen's events.
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
        let (events, channel) = (events, room.channel.id)
        return [
            list.observe { _ in events.yield(.messages) },
            room.channel.observe { _ in events.yield(.channel) },
            channels.observe { _ in events.yield(.channels) },
            typing.observe { _ in events.yield(.typing) }, presence.observe { events.yield(.online($0, channel)) },
            receipts.observe { _ in events.yield(.messages) },
            room.chat.connection.observe { events.yield(.status($0)) },
        ]
    }
}
