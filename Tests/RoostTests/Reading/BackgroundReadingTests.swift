import RoostAPI
import Testing

@testable import Roost

/// Channels that the user was reading when the app moved to the background.
@Suite("Sync: reading while the app is in the background")
struct BackgroundReadingTests {
    private static let channel = Harness.channel

    /// A client whose user is reading the channel.
    private func reading() async throws -> Harness {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.feed(.startReading(7, Self.channel))
        try await client.answer("reading.start", with: UnreadCount(channelId: Self.channel, unreadCount: 0, readSeq: 2))
        return client
    }

    /// Ends the connection, as the app's move to the background does.
    private func suspend(_ client: inout Harness) async throws {
        try await client.feed(.pauseReading)
        try await client.feed(.stop)
        client.forgetCalls()
        _ = client.take()
    }

    private func connect(_ client: inout Harness) async throws {
        try await client.connect()
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [], hasMore: false))
    }

    @Test("AM-45 what arrives on a connection made in the background isn't read until the app is back")
    func connectedInBackground() async throws {
        var client = try await reading()
        try await suspend(&client)
        try await connect(&client)
        #expect(!client.calls.values.contains("reading.start"))
        #expect(try await client.unread() == 0)
        try await client.receive(sent(message(4, "three"), messages: 3))
        #expect(try await client.unread() == 1)
        // Nor in a channel whose screen is opened there; its caller doesn't wait.
        try await client.feed(.startReading(8, "other"))
        #expect(client.take().contains(.reply(8, .success([]))))
        #expect(!client.calls.values.contains("reading.start"))

        try await client.feed(.continueReading)
        #expect(client.calls.values.count { $0 == "reading.start" } == 2)
        #expect(try await client.unread() == 0)
    }

    @Test("AM-45 a session that began while the client catches up is paused too, and begins again once when the app is back")
    func whileCatchingUp() async throws {
        for isBackBefore in [false, true] {
            var client = try await Harness()
            try await client.connectWithChannel()
            try await client.feed(.stop)
            client.forgetCalls()
            try await client.connect()
            try await client.feed(.startReading(7, Self.channel))
            #expect(client.calls.values.contains("reading.start"))
            try await client.feed(.pauseReading)
            #expect(client.calls.values.contains("reading.stop"))
            try await client.answer("reading.start", with: UnreadCount(channelId: Self.channel, unreadCount: 0, readSeq: 2))
            try await client.answer("reading.stop", with: Done())
            if isBackBefore { try await client.feed(.continueReading) }
            try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [], hasMore: false))
            #expect(client.calls.values.contains("reading.start") == isBackBefore)
            if !isBackBefore { try await client.feed(.continueReading) }
            #expect(client.calls.values.count { $0 == "reading.start" } == 1)
        }
    }

    @Test("AM-45 reading continues on the connection that is made when the app is back")
    func back() async throws {
        var client = try await reading()
        try await suspend(&client)
        try await client.feed(.continueReading)
        #expect(client.calls.isEmpty)
        try await connect(&client)
        #expect(client.calls.values.sorted() == ["reading.start"])
        try await client.receive(sent(message(4, "three"), messages: 3))
        #expect(try await client.unread() == 0)
    }

    @Test("AM-45 a connection that lasts in the background is told that nobody reads, and then that the user does")
    func lasting() async throws {
        var client = try await reading()
        try await client.feed(.pauseReading)
        #expect(client.calls.values.sorted() == ["reading.stop"])
        try await client.answer("reading.stop", with: Done())
        try await client.receive(sent(message(4, "three"), messages: 3))
        #expect(try await client.unread() == 1)
        try await client.feed(.continueReading)
        #expect(client.calls.values.sorted() == ["reading.start"])
        #expect(try await client.unread() == 0)
    }

    @Test("AM-45 a server that can't be told now that nobody reads is told later, unless the app is back by then")
    func repeated() async throws {
        let unavailable = RoostError(.unavailable, "Later.")
        let unread = UnreadCount(channelId: Self.channel, unreadCount: 0, readSeq: 2)
        var client = try await reading()
        try await client.feed(.pauseReading)
        try await client.refuse("reading.stop", with: unavailable)
        #expect(client.calls.isEmpty)
        try await client.feed(.timer(.reading(Self.channel)))
        #expect(client.calls.values.sorted() == ["reading.stop"])
        try await client.refuse("reading.stop", with: unavailable)
        try await client.feed(.continueReading)
        try await client.answer("reading.start", with: unread)
        #expect(client.sync.readingRetries.isEmpty)
        try await client.feed(.timer(.reading(Self.channel)))
        #expect(client.calls.isEmpty)

        // The app moved to the background before the server had answered that the user reads.
        var starting = try await Harness()
        try await starting.connectWithChannel()
        try await starting.feed(.startReading(7, Self.channel))
        try await starting.feed(.pauseReading)
        try await starting.refuse("reading.stop", with: unavailable)
        try await starting.answer("reading.start", with: unread)
        #expect(starting.take().contains(.reply(7, .success([]))))
        try await starting.feed(.timer(.reading(Self.channel)))
        #expect(starting.calls.values.sorted() == ["reading.stop"])
        try await starting.answer("reading.stop", with: Done())
        #expect(starting.sync.readingRetries.isEmpty)
    }

    @Test("AM-45 the end of reading in the background marks what had arrived before")
    func stopped() async throws {
        var client = try await reading()
        try await suspend(&client)
        try await connect(&client)
        try await client.receive(sent(message(4, "three"), messages: 3))
        try await client.feed(.stopReading(9, Self.channel, id: 1, at: Timestamp(milliseconds: 0)))
        #expect(try await client.outbox.items().map(\.operation) == [.read(MarkRead(channel: Self.channel, seq: 3))])
        #expect(try await client.unread() == 1)
        // It doesn't begin again.
        try await client.feed(.continueReading)
        #expect(!client.calls.values.contains("reading.start"))
        #expect(try await client.unread() == 1)
    }
}
