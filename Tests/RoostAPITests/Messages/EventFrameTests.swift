import Foundation
import RoostAPI
import Testing

/// The smallest form of an event, and events that need another form.
@Suite("Events on sockets")
struct EventFrameTests {
    private static let time = Timestamp(milliseconds: 1_772_368_205_250)

    private static func message(_ text: String = "hello", clientId: ClientID = "7f1c-1", changeSeq: Seq = 3) -> Message {
        Message(
            messageId: MessageID(rawValue: 382_489_492_373_635_072), channelId: "general", seq: 3, changeSeq: changeSeq,
            sender: "ann",
            clientId: clientId, text: text, createdAt: time)
    }

    /// The event as the server makes it.
    private static func event(_ message: Message = message()) -> Event {
        let counters = ChannelCounters(seq: 3, memberCount: 2, messageCount: 1, lastActivity: time, lastMessageAt: time)
        return Event(
            kind: .messageNew, stream: .channel("general"), seq: 3, actor: "ann", rows: Rows(counters: counters, [message]))
    }

    private static func text(_ event: Event) throws -> String {
        String(decoding: try JSONWriter.bytes(of: EventFrame(watching: true, event: event)), as: UTF8.self)
    }

    private static func read(_ text: String) throws -> Event {
        try JSONDecoder().decode(EventFrame.self, from: Data(text.utf8)).event
    }

    @Test("a new message is sent alone, and the rest of its event follows from it")
    func alone() throws {
        let text = try Self.text(Self.event())
        #expect(
            text == #"{"watching":true,"message":{"messageId":"382489492373635072","channelId":"general","#
                + #""seq":3,"sender":"ann","clientId":"7f1c-1","text":"hello","createdAt":"2026-03-01T12:30:05.250Z"}}"#
        )
        var expected = Self.event()
        expected.rows.counters = nil
        #expect(try Self.read(text) == expected)
        #expect(try Self.text(expected) == text)
    }

    @Test("an event that says more than its message has all its members")
    func whole() throws {
        let changes: [(inout Event) -> Void] = [
            { $0.kind = .messageUpdated }, { $0.stream = .channel("other") }, { $0.stream = .user("ann") }, { $0.seq = 4 },
            { $0.after = 1 }, { $0.actor = "bob" }, { $0.actor = nil }, { $0.rows.messages = nil },
            { $0.rows.messages = [Self.message(), Self.message()] }, { $0.rows.messages = [Self.message(changeSeq: 4)] },
            { $0.rows.counters?.seq = 2 }, { $0.rows.counters?.lastActivity = Timestamp(milliseconds: 0) },
            { $0.rows.counters?.lastMessageAt = nil }, { $0.rows.capabilities = ["member": []] },
            { $0.rows.ownCapabilities = ["general": []] }, { $0.rows.purged = [PurgedMessage(seq: 1, changeSeq: 3, counts: true)] },
        ]
        for (number, change) in changes.enumerated() {
            var event = Self.event()
            change(&event)
            let text = try Self.text(event)
            #expect(try text.contains(#""rows":{"#) && Self.read(text) == event, "change \(number): \(text)")
        }
    }

    @Test("a new message adds itself to the counters, and only to them")
    func counters() {
        var counters = ChannelCounters(
            seq: 2, memberCount: 7, messageCount: 5, ordinal: 6, lastActivity: Timestamp(milliseconds: 0), lastMessageAt: nil)
        counters.add(Self.message())
        #expect(
            counters
                == ChannelCounters(
                    seq: 3, memberCount: 7, messageCount: 6, ordinal: 7, lastActivity: Self.time, lastMessageAt: Self.time))
    }

    @Test("an event of 200 bytes of text has at most 400, with a client id as the SDK makes it")
    func size() throws {
        let text = try Self.text(Self.event(Self.message(String(repeating: "x", count: 200), clientId: .random())))
        #expect(text.utf8.count <= 400)
    }
}
