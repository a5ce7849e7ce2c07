import RoostAPI
import RoostServer
import RoostTestSupport
import Testing

/// Messages hidden from a member stay hidden when they change, and the stream has no gap there.
@Suite struct HistoryFloorTests {
    @Test("SB-26 SB-14 R23 I10 an edit of a hidden message doesn't reach the user who hid it, and leaves no gap")
    func hidden() async throws {
        let server = try await TestServer()
        let ann = try await server.socket("ann")
        let phone = try await server.socket("bob")
        let laptop = try await server.socket("bob")
        let cat = try await server.socket("cat")
        try await ann.call(CreateChannel(channel: "general", users: ["bob", "cat"]))
        let old = try await ann.call(SendMessage(channel: "general", clientId: "1", text: "secret"))
        try await laptop.call(WatchChannel(channel: "general"))
        try await cat.call(HideChannel(channel: "general"))
        try await phone.call(HideChannel(channel: "general", hidePreviousMessages: true))
        // The same holds for a socket connected after the message was hidden.
        let tablet = try await server.socket("bob")
        for socket in [ann, phone, laptop, cat, tablet] { _ = try await socket.eventsSoFar() }

        let edited = try await ann.call(EditMessage(channel: "general", message: old.messageId, text: "still secret"))
        let new = try await ann.call(SendMessage(channel: "general", clientId: "2", text: "news"))
        let corrected = try await ann.call(EditMessage(channel: "general", message: new.messageId, text: "good news"))
        let deleted = try await ann.call(DeleteMessage(channel: "general", message: old.messageId))
        let kinds: [Event.Kind] = [.messageUpdated, .messageNew, .messageUpdated, .messageDeleted]
        let messages = [edited, new, corrected, deleted]
        // The answers have no counters; ann's own events do, except that of the new message, which has only the message.
        let counters = await ann.events.map(\.rows.counters)
        #expect(counters.map { $0?.seq } == [3, nil, 5, 6])
        let whole = zip(zip(kinds, messages), counters).map { change, counters in
            Event(
                kind: change.0, stream: .channel("general"), seq: change.1.changeSeq, actor: "ann",
                rows: Rows(counters: counters, [change.1]))
        }
        var shown = whole
        for hidden in [0, 3] {
            shown[hidden].rows.messages = nil
            shown[hidden].actor = nil
        }
        let expected = [
            (cat, Self.frames(whole)), (phone, Self.frames(shown)), (tablet, Self.frames(shown)),
            (laptop, Self.frames(shown, isWatching: true)),
        ]
        for (socket, frames) in expected { for frame in frames { #expect(await socket.nextText() == frame) } }
        try await server.stop()
    }

    @Test("SB-14 D-11 R23 I10 newcomers who don't see the history don't see it change either")
    func newcomer() async throws {
        let server = try await TestServer { $0.options.showsHistoryToNewMembers = false }
        let ann = try await server.socket("ann")
        let bob = try await server.socket("bob")
        let cat = try await server.socket("cat")
        try await ann.call(CreateChannel(channel: "general", users: ["cat"]))
        let old = try await ann.call(SendMessage(channel: "general", clientId: "1", text: "secret"))
        try await bob.call(JoinChannel(channel: "general"))
        let edited = try await ann.call(EditMessage(channel: "general", message: old.messageId, text: "still secret"))
        // A new membership doesn't bring back the history before the first one.
        try await bob.call(LeaveChannel(channel: "general"))
        try await bob.call(JoinChannel(channel: "general"))
        let again = try await ann.call(EditMessage(channel: "general", message: old.messageId, text: "secret still"))
        let new = try await ann.call(SendMessage(channel: "general", clientId: "2", text: "news"))
        func messages(_ socket: RawSocket) async throws -> [[Message]?] {
            var messages: [[Message]?] = []
            while messages.last != [new] {
                let event = try await socket.nextEvent()
                if event.kind.rawValue.hasPrefix("message.") { messages.append(event.rows.messages) }
            }
            return messages
        }
        #expect(try await messages(cat) == [[old], [edited], [again], [new]])
        #expect(try await messages(bob) == [nil, nil, [new]])
        try await server.stop()
    }

    /// The frames that carry events to a socket.
    private static func frames(_ events: [Event], isWatching: Bool = false) -> [String] {
        events.map { event in
            var json = JSONBytes()
            EventFrame(watching: isWatching, event: event).write(to: &json)
            return String(decoding: json.bytes, as: UTF8.self)
        }
    }
}

extension RawSocket {
    /// Takes all events sent by now: a call's answer follows them.
    fileprivate func eventsSoFar() async throws -> [Event] {
        try await call(GetMe())
        var taken: [Event] = []
        while !events.isEmpty { taken.append(try await nextEvent()) }
        return taken
    }
}
