import Foundation
import RoostAPI
import Testing

@testable import Roost

/// Watches that have no caller left when the server starts them: they mustn't show the user as watching.
@Suite("Sync: watches that are given up")
struct GivenUpWatchTests {
    private static let general = Harness.channel

    /// How a call is given up.
    enum End: CaseIterable, Sendable { case cancelled, unanswered }

    private func state(_ id: ChannelID = general) -> WatchedChannel {
        WatchedChannel(
            config: ChannelPolicy.presets[0], channel: view(id).channel, online: 1, watcherCount: 1, watchers: [:], members: [:],
            read: [:], messages: MessagePage(messages: [], hasOlder: false, hasNewer: false, seq: 1),
            ownCapabilities: [.channelRead, .channelWatch])
    }

    /// A channel that the user isn't in, with the user's permissions.
    private func view(_ id: ChannelID, _ capabilities: [Permission] = [.channelRead, .channelWatch]) -> ChannelView {
        let channel = Channel(
            channelId: id, type: .livestream, counters: counters(1, messages: 0), createdBy: "bob",
            createdAt: Timestamp(milliseconds: 0), updatedAt: Timestamp(milliseconds: 0))
        return ChannelView(channel: channel, ownCapabilities: capabilities)
    }

    private func connected() async throws -> Harness {
        var client = try await Harness()
        try await client.connectWithChannel()
        _ = client.take()
        return client
    }

    /// Abandons the call that was sent last.
    private func giveUp(_ token: CallToken, _ client: inout Harness, _ end: End) async throws {
        switch end {
        case .cancelled: try await client.feed(.cancel(token))
        case .unanswered: try await client.feed(.timer(.call(client.sync.lastCall)))
        }
    }

    private struct SentUnwatch: Decodable {
        struct Fields: Decodable { let channel: ChannelID? }
        let operation: String
        let with: Fields
    }

    /// The channels of the unwatch calls sent since the last query.
    private func unwatched(by client: inout Harness) -> [ChannelID] {
        client.take().compactMap { output in
            guard case .send(let bytes) = output, let call = try? JSONDecoder().decode(SentUnwatch.self, from: Data(bytes)) else {
                return nil
            }
            return call.operation == UnwatchChannel.name ? call.with.channel : nil
        }
    }

    @Test("ST-01 ST-10 a watch that is cancelled, or has no answer in time, is ended at once", arguments: End.allCases)
    func named(end: End) async throws {
        var client = try await connected()
        try await client.feed(.call(1, WatchChannel(channel: "community:general")))
        try await giveUp(1, &client, end)
        #expect(unwatched(by: &client) == [Self.general])
        try await client.answer("channel.watch", with: state())
        try await client.answer("channel.unwatch", with: Done())
        #expect(client.sync.watched.isEmpty && unwatched(by: &client) == [])
        // The app may watch it again.
        try await client.feed(.call(2, WatchChannel(channel: Self.general)))
        try await client.answer("channel.watch", with: state())
        #expect(client.sync.watched == [Self.general] && unwatched(by: &client) == [])
    }

    @Test("ST-01 ST-10 SB-63 a watch that something else has, or has requested, isn't ended", arguments: End.allCases)
    func wanted(end: End) async throws {
        var client = try await connected()
        // By the app, earlier.
        try await client.feed(.call(1, WatchChannel(channel: Self.general)))
        try await client.answer("channel.watch", with: state())
        try await client.feed(.call(2, WatchChannel(channel: Self.general)))
        try await giveUp(2, &client, end)
        try await client.answer("channel.watch", with: state())
        #expect(client.sync.watched == [Self.general] && unwatched(by: &client) == [])
        // By a live object.
        try await client.feed(.hold(3, "b", by: 5))
        try await client.answer("channel.watch", with: state("b"))
        try await client.feed(.call(4, WatchChannel(channel: "b")))
        try await giveUp(4, &client, end)
        try await client.answer("channel.watch", with: state("b"))
        #expect(unwatched(by: &client) == [])
        // By a call in flight: whether it has the channel watched is known when it ends.
        try await client.feed(.call(5, WatchChannel(channel: "c")))
        try await client.feed(.call(6, WatchChannel(channel: "c")))
        try await giveUp(6, &client, end)
        #expect(unwatched(by: &client) == [])
        try await client.refuse("channel.watch", with: RoostError(.overloaded, "Later."))
        #expect(unwatched(by: &client) == ["c"])
    }

    @Test("ST-01 ST-10 for a channel that the call was to create, the answer may name another one", arguments: End.allCases)
    func created(end: End) async throws {
        var client = try await connected()
        var operation = WatchChannel(channel: "messaging:plans")
        operation.create = CreateChannel(users: ["bob"])
        try await client.feed(.call(1, operation))
        try await giveUp(1, &client, end)
        #expect(unwatched(by: &client) == ["plans"])
        try await client.answer("channel.watch", with: state("older"))
        #expect(unwatched(by: &client) == ["older"] && client.sync.watched.isEmpty)
    }

    @Test("ST-09 ST-10 watches started by the late answer of a query are ended, except wanted ones", arguments: End.allCases)
    func query(end: End) async throws {
        var client = try await connected()
        try await client.feed(.call(1, WatchChannel(channel: "a")))
        try await client.answer("channel.watch", with: state("a"))
        try await client.feed(.call(2, QueryAndWatchChannels(query: QueryChannels(membership: .all))))
        // A watch that the app has ended after the query is ended.
        try await client.feed(.call(3, UnwatchChannel(channel: "ended")))
        let query = try #require(client.calls.first { $0.value == "channel.queryAndWatch" }?.key)
        try await client.feed(end == .cancelled ? .cancel(2) : .timer(.call(query)))
        _ = client.take()
        try await client.feed(.call(4, WatchChannel(channel: "b")))
        let found = Page(items: [view("a"), view("b"), view("c"), view("closed", [.channelRead]), view("d"), view("ended")])
        try await client.answer("channel.queryAndWatch", with: found)
        #expect(unwatched(by: &client) == ["c", "d"])
        try await client.answer("channel.watch", with: state("b"))
        #expect(client.sync.watched == ["a", "b"] && unwatched(by: &client) == [])
    }

    @Test(
        "ST-09 ST-10 a query that is abandoned and then refused, or lost with its connection, ends nothing",
        arguments: End.allCases)
    func lostQuery(end: End) async throws {
        for isRefused in [true, false] {
            var client = try await connected()
            try await client.feed(.call(1, QueryAndWatchChannels(query: QueryChannels(membership: .all))))
            try await giveUp(1, &client, end)
            if isRefused {
                try await client.refuse("channel.queryAndWatch", with: RoostError(.overloaded, "Later."))
            } else {
                try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
            }
            #expect(client.sync.calls.isEmpty && unwatched(by: &client) == [])
        }
    }

    @Test(
        "ST-10 SB-63 a watch requested by a live object is ended if no answer arrives, unless the app watches the channel",
        arguments: End.allCases)
    func held(end: End) async throws {
        for isWatched in [false, true] {
            var client = try await connected()
            if isWatched {
                try await client.feed(.call(1, WatchChannel(channel: Self.general)))
                try await client.answer("channel.watch", with: state())
            }
            try await client.feed(.hold(2, Self.general, by: 5))
            try await giveUp(2, &client, end)
            #expect(unwatched(by: &client) == (isWatched ? [] : [Self.general]))
            try await client.answer("channel.watch", with: state())
            try await client.feed(.release(5))
            #expect(unwatched(by: &client) == [] && client.sync.wantsWatch(of: Self.general) == isWatched)
        }
    }

    @Test("ST-10 SB-63 an answer to a live object whose watch the server has meanwhile ended leaves nothing watched")
    func endedMeanwhile() async throws {
        var client = try await connected()
        try await client.feed(.hold(1, Self.general, by: 5))
        try await client.receive(UnwatchedFrame(unwatched: .init(channel: Self.general)))
        try await client.answer("channel.watch", with: state())
        #expect(unwatched(by: &client) == [Self.general] && !client.sync.wantsWatch(of: Self.general))
    }
}
