import RoostAPI
import Testing

@testable import Roost

/// Marks as read and drafts, which are done once even if a reply is lost: another device may have reversed them since.
@Suite("Outbox: reading and drafts have keys")
struct KeyedReadingTests {
    private static let channel = Harness.channel

    private func mark(_ seq: Seq) -> OutboxOperation { .read(MarkRead(channel: Self.channel, seq: seq)) }
    private func draft(_ text: String) -> OutboxOperation { .draft(SetDraft(channel: Self.channel, text: text)) }

    private func lose(_ client: inout Harness) async throws {
        try await client.feed(.transport(client.sync.connection, .closed(code: 1006, reason: "")))
        client.forgetCalls()
    }

    /// Reconnects, with changes on the user's own stream.
    private func reconnect(_ client: inout Harness, _ own: Changes, at now: Timestamp = Timestamp(milliseconds: 0)) async throws {
        try await client.connect(at: now)
        try await client.answer("stream.resume", with: Resumption(user: own, channels: [], hasMore: false))
    }

    /// Another device has marked the messages as unread again.
    private let unmarked = changes(user: 5, [membership(readSeq: 1, readCount: 0, channelSeq: 3, userSeq: 5)])

    @Test("AM-45 I4 a mark whose reply was lost doesn't undo a later mark as unread by another device", arguments: [true, false])
    func markIsDoneOnce(isRestarted: Bool) async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.enqueue(mark(3))
        let keys = try #require(client.keys["reading.mark"])
        #expect(keys.count == 1 && keys[0]?.count == 36)
        #expect(try await client.unread() == 0)
        try await lose(&client)
        if isRestarted { client = try await client.restarted() }
        try await reconnect(&client, unmarked)
        #expect(client.keys["reading.mark"]?.suffix(1) == keys[...])
        try await client.answerDone("reading.mark")
        #expect(try await client.unread() == 2)
        #expect(try await client.outbox.items() == [] && client.calls.isEmpty)
    }

    @Test("AM-45 of marks that haven't been sent the highest is kept, without a key; one that may have been sent keeps its own")
    func coalesced() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.enqueue(mark(2))
        try await lose(&client)
        for seq in [3, 4, 5] as [Seq] { try await client.enqueue(mark(seq)) }
        let items = try await client.outbox.items()
        #expect(items.map(\.operation) == [mark(2), mark(5)])
        #expect(items.map { $0.key != nil } == [true, false])
        try await reconnect(&client, changes(user: 1))
        try await client.answerDone("reading.mark")
        try await client.answer("reading.mark", with: UnreadCount(channelId: Self.channel, unreadCount: 0, readSeq: 5))
        let keys = try #require(client.keys["reading.mark"]).compactMap(\.self)
        #expect(keys.count == 3 && keys[0] == keys[1] && keys[1] != keys[2])
        #expect(try await client.outbox.items() == [])
    }

    @Test("AM-45 a mark with a connection is written once, with the parts of its key, and removed")
    func cheap() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        _ = client.take()
        try await client.enqueue(mark(3))
        try await client.answer("reading.mark", with: UnreadCount(channelId: Self.channel, unreadCount: 0, readSeq: 3))
        let writes = client.take().compactMap { if case .outbox(let write) = $0 { write } else { nil } }
        let isPut = if case .put = writes.first { true } else { false }
        let isDone = if case .done = writes.last { true } else { false }
        #expect(writes.count == 2 && isPut && isDone)
    }

    @Test("EM-35 I4 a draft whose reply was lost doesn't replace a later one of another device")
    func draftIsDoneOnce() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.enqueue(draft("old"))
        try await client.feed(.timer(.draft(Self.channel)))
        let keys = try #require(client.keys["draft.set"])
        #expect(keys.map { $0?.count } == [36])
        try await lose(&client)
        let newer = ChannelDraft(channelId: Self.channel, text: "newer", updatedAt: Timestamp(milliseconds: 9), userSeq: 5)
        try await reconnect(
            &client, Changes(stream: .user(Harness.user), rows: Rows([newer]), seq: 5, hasMore: false))
        #expect(client.keys["draft.set"] == keys + keys)
        try await client.answerDone("draft.set")
        #expect(try await client.store.read { try $0.draft(of: Self.channel)?.text } == "newer")
        #expect(try await client.outbox.items() == [])
    }

    @Test("AM-45 EM-35 of very many marks some are first sent without a key, and repeated with one; a person's decisions have one")
    func many() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        let last = Seq(KeyAllowance.atOnce + 3)
        for seq in 3..<last {
            try await client.enqueue(mark(seq))
            try await client.answer("reading.mark", with: UnreadCount(channelId: Self.channel, unreadCount: 0, readSeq: seq))
        }
        try await client.enqueue(mark(last))
        let keys = try #require(client.keys["reading.mark"])
        #expect(keys.dropLast().allSatisfy { $0 != nil } && keys.last == .some(nil) && keys.count == KeyAllowance.atOnce + 1)
        try await lose(&client)
        // An hour later there are some more.
        try await reconnect(&client, changes(user: 1), at: Timestamp(milliseconds: 3_600_000))
        #expect(client.keys["reading.mark"]?.last??.count == 36)
        try await client.answerDone("reading.mark")
        try await client.enqueue(mark(last + 1))
        #expect(client.keys["reading.mark"]?.last??.count == 36)
        try await client.enqueue(.hide(HideChannel(channel: Self.channel)))
        try await client.answerDone("reading.mark")
        #expect(client.keys["channel.hide"]?.last??.count == 36)
    }

    @Test(
        "AM-45 a mark whose key has expired is still carried out, and the user isn't asked about it; for a person's decision they are"
    )
    func expired() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        let expired = RoostError(.keyExpired, "It is older than a week.", field: IdempotencyKey.member)
        try await client.enqueue(mark(3))
        try await client.refuse("reading.mark", with: expired)
        #expect(client.keys["reading.mark"]?.map { $0 == nil } == [false, true])
        try await client.answer("reading.mark", with: UnreadCount(channelId: Self.channel, unreadCount: 0, readSeq: 3))
        #expect(try await client.outbox.items() == [])
        try await client.enqueue(.hide(HideChannel(channel: Self.channel)))
        try await client.refuse("channel.hide", with: expired)
        #expect(try await client.outbox.items().map(\.failure) == [expired])
    }

    @Test("I18 keys of frequent operations are limited by the hour, whatever the server's clock does")
    func allowance() {
        var allowance = KeyAllowance()
        let start: Int64 = 1_800_000_000_000
        func taken(at milliseconds: Int64) -> Int {
            var count = 0
            while count < 1000, allowance.take(at: Timestamp(milliseconds: milliseconds)) { count += 1 }
            return count
        }
        #expect([0, start, start, start + 119_000].map { taken(at: $0) } == [100, 100, 0, 0])
        #expect(taken(at: start + 3_600_000) == 30)
        #expect([start, start + 120_000, .max, .min, 0].map { taken(at: $0) } == [0, 1, 100, 0, 100])
        let week = (0..<168 as Range<Int64>).map { hour in taken(at: hour * 3_600_000 + 1) }
        #expect(week.reduce(0, +) < Limits.idempotencyKeysPerUser * 6 / 10)
    }
}
