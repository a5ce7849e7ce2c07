import Dispatch
import RoostAPI
import RoostServer
import RoostTestSupport
import Testing

/// Channels are found outside the writer and watched in it: what happens between the two.
@Suite struct QueryAndWatchTests {
    /// Holds up a server's writer while calls are made, and releases it once that many operations are queued.
    private func holdingWriter<Value: Sendable>(
        of server: TestServer, until count: Int, _ ask: (_ queued: (Int) async throws -> Void) async throws -> Value
    ) async throws -> Value {
        let (isHeld, isFree) = (Mailbox<Bool>(), DispatchSemaphore(value: 0))
        async let held: Void = server.perform { _ in
            isHeld.put(true)
            // A failed test never releases it.
            _ = isFree.wait(timeout: .now() + 20)
        }
        guard await isHeld.next() == true else { throw Missed("the writer") }
        defer { isFree.signal() }
        func queued(_ count: Int) async throws {
            try await eventually("\(count) operations wait for the writer") {
                let page = try MetricsText(try await server.request("GET", "/metrics").body)
                return page.value("roost_queue_length", ["queue": "write"]) == Double(count)
            }
        }
        let value = try await ask(queued)
        try await queued(count)
        isFree.signal()
        try await held
        return value
    }

    @Test(
        "ST-09 I3 I4 a query that watches searches while the writer is busy, and a write before its watch is neither missed nor sent twice"
    )
    func messageBetween() async throws {
        let server = try await TestServer()
        let (ann, bob) = (try await server.socket("ann"), try await server.socket("bob"))
        try await bob.call(CreateChannel(channel: "stage", type: .livestream))
        let query = QueryAndWatchChannels(query: QueryChannels(membership: .all))
        let (sent, watched) = try await holdingWriter(of: server, until: 2) { queued in
            let sent = try await bob.post(SendMessage(channel: "stage", clientId: "1", text: "between"))
            try await queued(1)
            return (sent, try await ann.post(query))
        }
        let message = try await bob.reply(to: sent, as: Message.self)
        let page = try await ann.reply(to: watched, as: Page<ChannelView>.self)
        #expect(page.items.map(\.lastMessage) == [message] && page.items.map(\.channel.counters.seq) == [message.seq])
        #expect(await ann.events == [])
        let next = try await bob.send("stage", "2")
        #expect(try await ann.nextEvent().rows.messages == [next])
        try await ann.call(GetMe())
        #expect(await ann.events == [])
        try await server.stop()
    }

    @Test("ST-09 I9 a user removed between the query and the watch neither gets the channel nor watches it")
    func removedBetween() async throws {
        let server = try await TestServer()
        let (ann, bob) = (try await server.socket("ann"), try await server.socket("bob"))
        for id in ["kept", "lost"] as [ChannelID] { try await bob.call(CreateChannel(channel: id, users: ["ann"])) }
        let (removed, watched) = try await holdingWriter(of: server, until: 2) { queued in
            let removed = try await bob.post(RemoveMembers(channel: "lost", users: ["ann"]))
            try await queued(1)
            return (removed, try await ann.post(QueryAndWatchChannels(query: QueryChannels())))
        }
        _ = try await bob.reply(to: removed, as: MemberResults.self)
        let page = try await ann.reply(to: watched, as: Page<ChannelView>.self)
        #expect(page.items.map(\.channel.channelId) == ["kept"])
        let before = await ann.events.count
        try await bob.send("lost", "1")
        let sent = try await bob.send("kept", "2")
        try await ann.call(GetMe())
        #expect(await ann.events.dropFirst(before).map(\.rows.messages) == [[sent]])
        #expect(try await bob.call(ListWatchers(channel: "lost")).watcherCount == 0)
        #expect(try await bob.call(ListWatchers(channel: "kept")).watcherCount == 1)
        try await server.stop()
    }

    @Test("ST-09 a query's results count towards its user's memory until its turn is over")
    func heldBytes() async throws {
        let server = try await TestServer()
        let ann = try await server.socket("ann")
        let metadata: JSONValue = ["text": .string(String(repeating: "x", count: 60_000))]
        for id in ["a", "b"] as [ChannelID] { try await ann.call(CreateChannel(channel: id, metadata: metadata)) }
        func heldBytes() async throws -> Double? {
            try MetricsText(try await server.request("GET", "/metrics").body).value("roost_held_bytes")
        }
        let call = try await holdingWriter(of: server, until: 1) { queued in
            let call = try await ann.post(QueryAndWatchChannels(query: QueryChannels()))
            try await queued(1)
            #expect(try await heldBytes() ?? 0 > 120_000)
            return call
        }
        #expect(try await ann.reply(to: call, as: Page<ChannelView>.self).items.count == 2)
        try await eventually("nothing is held") { try await heldBytes() == 0 }
        try await server.stop()
    }

    @Test("ST-09 a query refused before its turn is answered, and counted once under its own operation")
    func refusedQuery() async throws {
        let server = try await WatchedServer.start()
        let ann = try await server.socket("ann")
        let refusal = await #expect(throws: RoostError.self) {
            try await ann.call(QueryAndWatchChannels(query: QueryChannels(cursor: "wrong")))
        }
        #expect(refusal?.code == .invalidArgument && refusal?.field == "query.cursor")
        try await ann.call(QueryAndWatchChannels(query: QueryChannels()))
        let page = try await server.metrics()
        let name = ["operation": QueryAndWatchChannels.name]
        #expect(page.value("roost_operations_total", name) == 2)
        #expect(page.value("roost_refusals_total", name.merging(["code": "invalid_argument"]) { $1 }) == 1)
        await ann.close()
        try await server.stop()
    }

    @Test("ST-09 ST-10 a channel unwatched during the query isn't watched after it")
    func unwatchedMeanwhile() async throws {
        let server = try await TestServer()
        let (ann, bob) = (try await server.socket("ann"), try await server.socket("bob"))
        for id in ["a", "b"] as [ChannelID] { try await bob.call(CreateChannel(channel: id, type: .livestream)) }
        for _ in 0..<10 {
            let watch = try await ann.post(QueryAndWatchChannels(query: QueryChannels(membership: .all)))
            let unwatch = try await ann.post(UnwatchChannel(channel: "a"))
            let page = try await ann.reply(to: watch, as: Page<ChannelView>.self)
            #expect(page.items.map(\.channel.channelId) == ["b", "a"])
            _ = try await ann.reply(to: unwatch, as: Done.self)
            #expect(try await bob.call(ListWatchers(channel: "a")).watcherCount == 0)
            #expect(try await bob.call(ListWatchers(channel: "b")).watcherCount == 1)
        }
        try await server.stop()
    }

    @Test("ST-09 I3 I4 a client that watches by a query while others send gets every later message once")
    func manyMessages() async throws {
        let server = try await TestServer()
        let bob = try await server.socket("bob")
        try await bob.call(CreateChannel(channel: "stage", type: .livestream))
        for _ in 0..<4 {
            let servers = (0..<10).map { _ in server }
            #expect(try await QueryWatchers.failures(watching: "stage", on: servers, while: bob) == [])
        }
        try await server.stop()
    }

    @Test(
        "ST-09 ST-10 a connection watches 2,000 channels at most; repeats and replacements of watched channels are allowed"
    )
    func limit() async throws {
        let server = try await WatchedServer.start()
        let (ann, bob) = (try await server.socket("ann"), try await server.socket("bob"))
        let (max, pageSize) = (Limits.watchedChannels, Limits.channelPage.max)
        var calls: [Int64] = []
        for number in 0..<max {
            calls.append(try await bob.post(CreateChannel(channel: ChannelID("c\(number)"), type: .livestream)))
        }
        for call in calls { _ = try await bob.reply(to: call, as: ChannelView.self) }
        var query = QueryAndWatchChannels(query: QueryChannels(membership: .all, limit: pageSize))
        for _ in 0..<max / pageSize { query.query.cursor = try await ann.call(query).nextCursor }
        let cid = try await server.socket("cid")
        try await cid.call(CreateChannel(channel: "more", type: .livestream))
        for name in ["c7", "livestream:c7"] as [ChannelID] {
            #expect(try await ann.call(WatchChannel(channel: name, limit: 0)).channel.channelId == "c7")
        }
        let refusal = await #expect(throws: RoostError.self) { _ = try await ann.call(WatchChannel(channel: "more", limit: 0)) }
        #expect(refusal?.code == .limitExceeded && refusal?.limit == Int64(max))
        let another = QueryAndWatchChannels(query: QueryChannels(membership: .all, limit: 1))
        let refused = await #expect(throws: RoostError.self) { _ = try await ann.call(another) }
        #expect(refused?.code == .limitExceeded)
        try await ann.call(UnwatchChannel(channel: "c7"))
        #expect(try await ann.call(WatchChannel(channel: "more", limit: 0)).watcherCount == 1)
        // Other connections have their own counts.
        #expect(try await cid.call(WatchChannel(channel: "c7", limit: 0)).watcherCount == 1)
        // Of two calls sent together the second begins when the first is answered, and is refused.
        try await ann.call(UnwatchChannel(channel: "more"))
        let both = try await ann.refusals(of: [WatchChannel(channel: "c7", limit: 0), WatchChannel(channel: "more", limit: 0)])
        #expect(both.map { $0?.code } == [nil, .limitExceeded])
        // Calls refused before they run are counted like all others.
        let page = try await server.metrics()
        let counts = [WatchChannel.name, QueryAndWatchChannels.name].map {
            page.value("roost_refusals_total", ["operation": $0, "code": "limit_exceeded"])
        }
        #expect(counts == [2, 1])
        try await server.stop()
    }
}
