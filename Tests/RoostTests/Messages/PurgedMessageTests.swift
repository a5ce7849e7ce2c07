import RoostAPI
import Testing

@testable import Roost

@Suite("Messages that were deleted for good")
struct PurgedMessageTests {
    /// One of the messages is deleted for good.
    private func purged(_ seq: Seq, at changeSeq: Seq, messages count: Int, ordinal: Int) -> Event {
        var counters = counters(changeSeq, messages: count)
        counters.ordinal = ordinal
        return Event(
            kind: .messageDeleted, stream: .channel(Harness.channel), seq: changeSeq, actor: nil,
            rows: Rows(counters: counters, [PurgedMessage(seq: seq, changeSeq: changeSeq, counts: true)]))
    }

    @Test("AM-43 the message and its count go with the event that says so; a repetition changes nothing (I4)")
    func goes() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        for _ in 0..<2 { try await client.receive(purged(2, at: 4, messages: 1, ordinal: 2)) }
        #expect(try await client.texts() == ["two"])
        #expect(try await client.unread() == 1)
        #expect(
            client.sync.saved.channels == [Harness.channel: Position(cursor: 4, windowStart: 0, messageCount: 1)])
        #expect(try await client.store.read { try ChannelQuery(hidden: .all).places(in: $0).map(\.unreadCount) } == [1])
        try await client.receive(purged(3, at: 5, messages: 0, ordinal: 2))
        #expect(try await client.unread() == 0)
        #expect(try await client.view()?.lastMessage == nil)
    }

    @Test("I8 messages read before aren't subtracted, nor ones that don't count")
    func read() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.receive(mine(2, .readingMarked, membership(readSeq: 2, readCount: 1, channelSeq: 3, userSeq: 2)))
        try await client.receive(purged(2, at: 4, messages: 1, ordinal: 2))
        #expect(try await client.unread() == 1)
        var event = purged(3, at: 5, messages: 0, ordinal: 2)
        event.rows.purged = [PurgedMessage(seq: 3, changeSeq: 5, counts: false)]
        try await client.receive(event)
        #expect(try await client.unread() == 1)
        #expect(try await client.texts() == [])
    }

    @Test("I7 a membership older than the channel here doesn't restore the count, and a newer one isn't subtracted twice")
    func streamsApart() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.receive(sent(message(4, "three"), messages: 3))
        try await client.receive(purged(4, at: 5, messages: 2, ordinal: 3))
        #expect(try await client.unread() == 2)
        // As of 4: the message was there.
        try await client.receive(mine(2, .readingMarked, membership(readSeq: 2, readCount: 1, channelSeq: 4, userSeq: 2)))
        #expect(try await client.unread() == 1)
        // As of 6, at which the message at 3 is gone too.
        try await client.receive(mine(3, .readingMarked, membership(readSeq: 2, readCount: 3, channelSeq: 6, userSeq: 3)))
        try await client.receive(purged(3, at: 6, messages: 1, ordinal: 3))
        #expect(try await client.unread() == 0)
    }

    @Test("I8 the sender's own count is right once the sender's membership arrives, before or after", arguments: [true, false])
    func own(isMarkedFirst: Bool) async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.receive(sent(message(4, "mine", by: "ann"), messages: 3))
        #expect(try await client.unread() == 2)
        let marked = mine(2, .readingMarked, membership(readSeq: 1, readCount: 1, channelSeq: 5, userSeq: 2))
        if isMarkedFirst { try await client.receive(marked) }
        #expect(try await client.unread() == 2)
        try await client.receive(purged(4, at: 5, messages: 2, ordinal: 3))
        if !isMarkedFirst { try await client.receive(marked) }
        #expect(try await client.unread() == 2)
        #expect(try await client.texts() == ["one", "two"])
    }

    @Test("I3 a page of history that was read before doesn't restore the message")
    func latePage() async throws {
        var client = try await Harness()
        try await client.connect()
        let window = fresh(
            messages: [message(9, "nine")], counters: counters(9, messages: 3), membership: membership(readSeq: 9, readCount: 3))
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [window], hasMore: false))
        try await client.feed(.loadMessages(1, Harness.channel, .older(than: .max), limit: 10))
        try await client.receive(purged(5, at: 10, messages: 2, ordinal: 3))
        try await client.answer(
            "message.list",
            with: MessagePage(messages: [message(4, "four"), message(5, "five")], hasOlder: false, hasNewer: true, seq: 9))
        #expect(try await client.texts() == ["four", "nine"])
        #expect(client.sync.saved.channels[Harness.channel]?.hasHole == false)
    }

    @Test("I3 messages sent and deleted for good while the client was away leave no hole; messages that it wasn't given do")
    func holes() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        // Sent at 4, and deleted at 5 together with the message at 2.
        var event = purged(4, at: 5, messages: 2, ordinal: 3)
        event.after = 3
        try await client.receive(event)
        #expect(client.sync.saved.channels[Harness.channel]?.hasHole == false)
        #expect(try await client.unread() == 2)
        // Sent at 6, which the client isn't given, while the message at 2 is deleted: as many messages as before.
        event = purged(2, at: 7, messages: 2, ordinal: 4)
        event.after = 5
        try await client.receive(event)
        #expect(client.sync.saved.channels[Harness.channel]?.hasHole == true)
    }
}
