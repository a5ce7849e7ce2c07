import RoostAPI
import RoostCore
import Testing

@testable import RoostServer

/// Ids that are equal as texts, and differ in their bytes.
@Suite("Spellings of ids")
struct IDSpellingTests {
    @Test(
        "AM-13 a member gets no events of another channel whose id is equal to their channel's as a text, and keeps theirs if it is deleted"
    )
    func channels() {
        let (one, other): (ChannelID, ChannelID) = ("\u{105c9}", "\u{105d2}\u{307}")
        var subscriptions = Subscriptions<String>()
        func receivers(of notices: [Notice]) -> [String] {
            var sockets: [String] = []
            for step in EventFrames.steps(for: [Committed(notices: notices, answer: .waiting {})]) {
                subscriptions.deliver(step) { action in
                    if case .send(_, _, let socket) = action { sockets.append(socket) }
                }
            }
            return sockets
        }
        func event(in channel: ChannelID, _ seq: Seq) -> Notice {
            let event = Event(kind: .channelUpdated, stream: .channel(channel), seq: seq, actor: "ann", rows: Rows())
            return .event(event, .channel(channel, Readers(others: .user)))
        }
        for (number, user, channel) in [(1, "ann", one), (2, "mal", other)] as [(Int64, String, ChannelID)] {
            let connection = ConnectionID(rawValue: number)
            subscriptions.add(user, as: connection)
            _ = receivers(of: [.connected(connection, UserID(user), UserStreams(user: 0, channels: [channel: 1]))])
        }
        #expect(receivers(of: [event(in: one, 2)]) == ["ann"])
        #expect(receivers(of: [event(in: other, 2)]) == ["mal"])
        _ = receivers(of: [.channelDeleted(other)])
        #expect(receivers(of: [event(in: one, 3)]) == ["ann"])
    }
}
