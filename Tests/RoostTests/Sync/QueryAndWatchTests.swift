import Foundation
import RoostAPI
import Testing

@testable import Roost

/// Channels watched by a query, and no longer wanted before the server has answered.
@Suite("Sync: watching by a query")
struct QueryAndWatchTests {
    /// A channel that the user isn't in, with the user's permissions.
    private func view(_ id: ChannelID, _ capabilities: [Permission] = [.channelRead, .channelWatch]) -> ChannelView {
        let channel = Channel(
            channelId: id, type: .livestream, counters: counters(1, messages: 0), createdBy: "bob",
            createdAt: Timestamp(milliseconds: 0), updatedAt: Timestamp(milliseconds: 0))
        return ChannelView(channel: channel, ownCapabilities: capabilities)
    }

    /// Returns the channels watched again after a reconnect.
    private func renewed(_ client: inout Harness) async throws -> [ChannelID] {
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        client.forgetCalls()
        _ = client.take()
        try await client.connect()
        let resumption = Resumption(user: changes(user: client.sync.saved.userCursor), channels: [], hasMore: false)
        try await client.answer("stream.resume", with: resumption)
        return client.take().compactMap { output in
            guard case .send(let bytes) = output else { return nil }
            return try? JSONDecoder().decode(SentWatch.self, from: Data(bytes)).watched
        }
    }

    private struct SentWatch: Decodable {
        struct Fields: Decodable { let channel: ChannelID? }
        let operation: String
        let with: Fields
        var watched: ChannelID? { operation == WatchChannel.name ? with.channel : nil }
    }

    private func begin(_ client: inout Harness, _ query: QueryChannels = QueryChannels(membership: .all)) async throws {
        try await client.feed(.call(1, QueryAndWatchChannels(query: query)))
    }

    @Test("ST-09 R39 the channels of a query that the user may watch are watched again after a reconnect")
    func renewal() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await begin(&client)
        let page = Page(items: [view("a"), view("b"), view("closed", [.channelRead])])
        try await client.answer("channel.queryAndWatch", with: page)
        #expect(client.sync.watched == ["a", "b"])
        #expect(try await renewed(&client) == ["a", "b"])
    }

    @Test("ST-01 ST-09 SB-63 the start of a watch is reported, whatever requested it and after a reconnect, and so is its end")
    func told() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        func reported(by client: inout Harness) -> [Sync.Output] {
            client.take().filter { output in
                switch output {
                case .watching, .unwatched: true
                default: false
                }
            }
        }
        try await begin(&client)
        #expect(reported(by: &client) == [])
        try await client.answer("channel.queryAndWatch", with: Page(items: [view("a"), view("closed", [.channelRead])]))
        #expect(reported(by: &client) == [.watching("a")])
        let state = WatchedChannel(
            config: ChannelPolicy.presets[0], channel: view("b").channel, online: 1, watcherCount: 1, watchers: [:], members: [:],
            read: [:], messages: MessagePage(messages: [], hasOlder: false, hasNewer: false, seq: 1), ownCapabilities: [])
        try await client.feed(.call(2, WatchChannel(channel: "livestream:b")))
        try await client.answer("channel.watch", with: state)
        #expect(reported(by: &client) == [.watching("b")])
        try await client.feed(.hold(3, "b", by: 1))
        try await client.answer("channel.watch", with: state)
        #expect(reported(by: &client) == [.watching("b")])

        #expect(try await renewed(&client) == ["a", "b"])
        try await client.answer("channel.watch", with: state)
        try await client.refuse("channel.watch", with: RoostError(.notPermitted, "No."))
        #expect(reported(by: &client) == [.watching("a")])
        try await client.receive(UnwatchedFrame(unwatched: .init(channel: "a")))
        #expect(reported(by: &client) == [.unwatched("a")])
    }

    @Test("ST-09 ST-10 a channel unwatched during the query isn't watched when that is answered, nor after a reconnect")
    func unwatchedMeanwhile() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await begin(&client)
        // By another of its names, and one after the other: the first one stays ended.
        try await client.feed(.call(2, UnwatchChannel(channel: "livestream:a")))
        try await client.feed(.call(3, UnwatchChannel(channel: "c")))
        // The server carries them out in this order, and watches neither.
        #expect(
            client.calls.sorted { $0.key < $1.key }.map(\.value).suffix(3) == [
                "channel.queryAndWatch", "channel.unwatch", "channel.unwatch",
            ])
        try await client.answer("channel.queryAndWatch", with: Page(items: [view("a"), view("b"), view("c")]))
        for _ in 0..<2 { try await client.answer("channel.unwatch", with: Done()) }
        #expect(client.sync.watched == ["b"])
        #expect(try await renewed(&client) == ["b"])
    }

    @Test("ST-09 ST-10 two queries in flight both leave out an unwatched channel, and a later one watches it again")
    func severalQueries() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await begin(&client)
        try await client.feed(.call(2, QueryAndWatchChannels(query: QueryChannels(limit: 1))))
        try await client.feed(.call(3, UnwatchChannel(channel: "a")))
        try await client.feed(.call(4, QueryAndWatchChannels(query: QueryChannels(limit: 2))))
        try await client.answer("channel.queryAndWatch", with: Page(items: [view("a"), view("b")]))
        try await client.answer("channel.queryAndWatch", with: Page(items: [view("a")]))
        #expect(client.sync.watched == ["b"])
        try await client.answer("channel.unwatch", with: Done())
        try await client.answer("channel.queryAndWatch", with: Page(items: [view("a")]))
        #expect(client.sync.watched == ["a", "b"])
    }

    @Test("ST-09 ST-10 a query that is refused, or lost with its connection, watches nothing")
    func refusedOrLost() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await begin(&client)
        try await client.refuse("channel.queryAndWatch", with: RoostError(.overloaded, "Later."))
        try await begin(&client)
        #expect(try await renewed(&client) == [])
        #expect(client.sync.watched == [])
    }
}
