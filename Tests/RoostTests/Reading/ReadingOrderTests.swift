import RoostAPI
import Testing

@testable import Roost

/// What is sent to the server about reading, after an earlier mark as unread, and what isn't sent twice.
@Suite("Sync: the order of reading and marking")
struct ReadingOrderTests {
    private static let channel = Harness.channel

    private func client() async throws -> Harness {
        var client = try await Harness()
        try await client.connectWithChannel()
        _ = client.take()
        return client
    }

    private func disconnect(_ client: inout Harness) async throws {
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        client.forgetCalls()
    }

    private func reconnect(_ client: inout Harness, _ own: [Membership] = []) async throws {
        try await client.connect()
        let seq = own.last?.userSeq ?? client.sync.saved.userCursor
        try await client.answer(
            "stream.resume", with: Resumption(user: changes(user: seq, own), channels: [], hasMore: false))
    }

    private func replies(to token: CallToken, _ client: inout Harness) -> [Result<[UInt8], RoostError>] {
        client.take().compactMap { if case .reply(token, let result) = $0 { result } else { nil } }
    }

    private let unread = OutboxOperation.unread(MarkUnread(channel: Harness.channel, seq: 3))
    private let marked = UnreadCount(channelId: Harness.channel, unreadCount: 1, readSeq: 2)
    private let read = UnreadCount(channelId: Harness.channel, unreadCount: 0, readSeq: 3)
    /// The mark as the server reports it.
    private func reported(_ readSeq: Seq, userSeq: Seq) -> Membership {
        membership(readSeq: readSeq, readCount: Int(readSeq) - 1, channelSeq: 3, userSeq: userSeq)
    }

    @Test("AM-45 a channel that is read after it was marked as unread is read, online and offline: the mark is sent first")
    func readAfterMark() async throws {
        for isOffline in [true, false] {
            var client = try await client()
            try await client.enqueue(.read(MarkRead(channel: Self.channel, seq: 3)))
            try await client.receive(mine(2, .readingMarked, reported(3, userSeq: 2)))
            try await client.answer("reading.mark", with: read)
            if isOffline { try await disconnect(&client) }
            try await client.enqueue(unread)
            try await client.feed(.startReading(7, Self.channel))
            #expect(try await client.unread() == 0)
            // The server reports again how far it was read before.
            if isOffline { try await reconnect(&client, [reported(3, userSeq: 3)]) }
            #expect(client.calls.values.sorted() == ["reading.markUnread"])
            let next = client.sync.saved.userCursor + 1
            try await client.receive(mine(next, .readingUnmarked, reported(2, userSeq: next)))
            try await client.answer("reading.markUnread", with: marked)
            #expect(client.calls.values.sorted() == ["reading.start"])
            try await client.answer("reading.start", with: read)
            #expect(client.sync.reading[Self.channel] == 3 && client.sync.readingRetries.isEmpty)
            #expect(try await client.unread() == 0)
            #expect(replies(to: 7, &client) == [.success([])])
        }
    }

    @Test("AM-45 an answer to a start before the mark, and the end reported for it, aren't those of the start after the mark")
    func begunTwice() async throws {
        var client = try await client()
        try await client.feed(.startReading(7, Self.channel))
        try await client.enqueue(unread)
        try await client.feed(.startReading(8, Self.channel))
        try await client.answer("reading.start", with: read)
        try await client.receive(ReadingEndedFrame(readingEnded: .init(channel: Self.channel)))
        #expect(client.sync.reading[Self.channel] == 0)
        try await client.answer("reading.markUnread", with: marked)
        #expect(client.calls.values.sorted() == ["reading.start", "reading.stop"])
        try await client.answer("reading.start", with: read)
        #expect(client.sync.reading[Self.channel] == 3)
        #expect(replies(to: 8, &client) == [.success([])])
    }

    @Test(
        "AM-45 late news of another device's mark as unread doesn't end reading that has started again since",
        arguments: [true, false])
    func lateNews(isNotice: Bool) async throws {
        var client = try await client()
        try await client.receive(mine(2, .readingMarked, reported(3, userSeq: 2)))
        try await client.feed(.startReading(7, Self.channel))
        try await client.answer("reading.start", with: read)
        try await client.feed(.startReading(8, Self.channel))
        if isNotice {
            try await client.receive(ReadingEndedFrame(readingEnded: .init(channel: Self.channel)))
        } else {
            try await client.receive(mine(3, .readingUnmarked, reported(2, userSeq: 3)))
        }
        #expect(client.calls.values.sorted() == ["reading.start"])
        try await client.answer("reading.start", with: read)
        #expect(client.sync.reading[Self.channel] == 3 && client.calls.isEmpty)
        #expect(try await client.unread() == 0)
        #expect(replies(to: 8, &client) == [.success([])])
    }

    @Test("AM-45 a mark as unread by another device during an outage ends reading, also if a repeated start was unanswered")
    func markDuringOutage() async throws {
        var client = try await client()
        try await client.receive(mine(2, .readingMarked, reported(3, userSeq: 2)))
        try await client.feed(.startReading(7, Self.channel))
        try await client.answer("reading.start", with: read)
        try await client.feed(.startReading(8, Self.channel))
        try await disconnect(&client)
        try await reconnect(&client, [reported(2, userSeq: 3)])
        #expect(client.sync.reading[Self.channel] == nil && !client.calls.values.contains("reading.start"))
    }

    @Test("AM-45 a mark as unread that is refused or given up doesn't hold up reading, and neither does the end of the connection")
    func markFails() async throws {
        var refused = try await client()
        try await refused.enqueue(unread)
        try await refused.feed(.startReading(7, Self.channel))
        try await refused.refuse("reading.markUnread", with: RoostError(.featureDisabled, "No."))
        #expect(refused.calls.values.sorted() == ["reading.start"])

        var discarded = try await client()
        try await discarded.enqueue(unread)
        try await discarded.feed(.startReading(7, Self.channel))
        let item = try #require(discarded.sync.queues[Self.channel]?.items.keys.first)
        try await discarded.feed(.discard(.operation(item, of: Self.channel)))
        #expect(discarded.calls.values.contains("reading.start"))

        var disconnected = try await client()
        try await disconnected.enqueue(unread)
        try await disconnected.feed(.startReading(7, Self.channel))
        _ = disconnected.take()
        try await disconnect(&disconnected)
        #expect(replies(to: 7, &disconnected) == [.success([])])
        try await reconnect(&disconnected)
        try await disconnected.answer("reading.markUnread", with: marked)
        #expect(disconnected.calls.values.sorted() == ["reading.start"])
    }

    @Test(
        "AM-45 I4 leaving a screen marks nothing that the server reports as read: another device may have marked it as unread since"
    )
    func leavesAsItWas() async throws {
        // Reported during the reading, and before.
        for isReported in [true, false] {
            var client = try await client()
            try await client.receive(mine(2, .readingMarked, reported(3, userSeq: 2)))
            if isReported {
                try await client.feed(.startReading(7, Self.channel))
                try await client.answer("reading.start", with: read)
            }
            try await disconnect(&client)
            if !isReported { try await client.feed(.startReading(7, Self.channel)) }
            try await client.feed(
                .stopReading(8, Self.channel, id: 1, at: Timestamp(milliseconds: 0), serverReadSeq: isReported ? 0 : 3))
            #expect(replies(to: 8, &client) == [.success([])])
            #expect(try await client.outbox.items() == [])
            #expect(try await client.unread() == 0)
            try await reconnect(&client, [reported(1, userSeq: 5)])
            #expect(try await client.unread() == 2)
        }
        // Later messages aren't read yet according to the server.
        var client = try await client()
        try await client.feed(.startReading(7, Self.channel))
        try await client.answer("reading.start", with: read)
        try await client.receive(sent(message(4, "three"), messages: 3))
        try await client.feed(.stopReading(8, Self.channel, id: 1, at: Timestamp(milliseconds: 0), serverReadSeq: 3))
        #expect(try await client.outbox.items().map(\.operation) == [.read(MarkRead(channel: Self.channel, seq: 4))])
    }

    @Test(
        "AM-45 marking all of a channel unknown to this device is sent at once or not at all: later it would mark unseen messages")
    func marksNothingLater() async throws {
        func marksAll(of channel: ChannelID, _ client: inout Harness) async throws {
            try await client.feed(.enqueue(70, .read(MarkRead(channel: channel)), id: 70, at: Timestamp(milliseconds: 0)))
            let (answers, kept) = (replies(to: 70, &client), try await client.outbox.items())
            #expect(answers == [.success([])] && kept == [])
        }
        // The cache is gone, and there is no connection yet.
        var empty = try await Harness()
        try await marksAll(of: Self.channel, &empty)
        try await empty.connect()
        try await marksAll(of: Self.channel, &empty)
        try await empty.answer(
            "stream.resume", with: Resumption(user: changes(user: 1), channels: [fresh()], hasMore: false))
        #expect(empty.calls.isEmpty)
        #expect(try await empty.unread() == 2)

        // The server knows the channel by this name, and this device doesn't.
        var client = try await client()
        try await marksAll(of: "community:general", &client)
        #expect(client.calls.values.sorted() == ["reading.mark"])
        try await disconnect(&client)
        try await reconnect(&client)
        #expect(client.calls.isEmpty)
    }

    @Test("AM-45 messages that the server reports as read are marked again only after a pending mark as unread")
    func marksWhatIsNew() async throws {
        var client = try await client()
        try await disconnect(&client)
        let mark = OutboxOperation.read(MarkRead(channel: Self.channel, seq: 3))
        try await client.feed(.enqueue(70, mark, id: 70, at: Timestamp(milliseconds: 0), serverReadSeq: 3))
        #expect(replies(to: 70, &client) == [.success([])])
        #expect(try await client.outbox.items() == [])
        try await client.enqueue(unread)
        try await client.feed(.enqueue(71, mark, id: 71, at: Timestamp(milliseconds: 0), serverReadSeq: 3))
        #expect(try await client.outbox.items().map(\.operation) == [unread, mark])
    }

    @Test(
        "AM-45 opening a channel offline that the server reports as all read sends nothing; marking it does after a mark as unread")
    @MainActor func opensOffline() async throws {
        let server = ScriptedServer { _ in .error(.notFound("operation")) }
        let chat = try await server.connectedInGeneral()
        let channel = chat.channel(Self.channel)
        try await until { channel.membership?.readSeq == 3 }
        await chat.disconnect()
        let outbox = try await chat.driver.files().outbox
        try await channel.startReading()
        try await channel.stopReading()
        try await channel.markRead()
        #expect(try await outbox.items() == [])
        try await channel.markUnread(from: 2)
        try await channel.markRead()
        let marks =
            [.unread(MarkUnread(channel: Self.channel, seq: 2)), .read(MarkRead(channel: Self.channel, seq: 3))]
            as [OutboxOperation]
        #expect(try await outbox.items().map(\.operation) == marks)
    }
}
