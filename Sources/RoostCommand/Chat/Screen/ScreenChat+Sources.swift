import Dispatch
import Foundation
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
                for await signal in await UnixSignalsSequence(trapping: .sigwinch, .sigcont, .sigterm, .sighup, .sigint) {
                    switch signal {
                    case .sigwinch: events.yield(.resized)
                    case .sigcont: events.yield(.continued)
                    default: events.yield(.stop)
                    }
                }
            },
            Task { await Self.watchSuspensions(events) },
            Task {
                while !Task.isCancelled {
                    try? await Task.sleep(for: .seconds(1))
                    events.yield(.tick)
                }
            },
        ]
    }

    /// SIGTSTP, which the signals package lacks.
    private nonisolated static func watchSuspensions(_ events: AsyncStream<Event>.Continuation) async {
        let (signals, signal) = AsyncStream.makeStream(of: Void.self)
        let source = DispatchSource.makeSignalSource(signal: SIGTSTP, queue: DispatchQueue(label: "suspensions"))
        source.setEventHandler { signal.yield() }
        source.resume()
        defer { source.cancel() }
        for await _ in signals { events.yield(.suspended) }
    }

    /// Emits an event if nothing follows a key that may begin a longer sequence. An arrow key split into two packets arrives within this time.
    func watchForPause() {
        guard keys.isEscapeOpen else { return }
        let number = keyCount
        Task {
            try? await Task.sleep(for: .milliseconds(30))
            events.yield(.paused(number))
        }
    }

    func observe() -> [ObservationToken] {
        let (events, channel) = (events, room.channel.id)
        return [
            list.observe { _ in events.yield(.messages) },
            room.channel.observe { _ in events.yield(.channel) },
            channels.observe { _ in events.yield(.channels) }, room.chat.outbox.observe { _ in events.yield(.outbox) },
            typing.observe { _ in events.yield(.typing) }, presence.observe { events.yield(.online($0, channel)) },
            receipts.observe { _ in events.yield(.messages) },
            room.chat.connection.observe { events.yield(.status($0)) },
        ]
    }
}
