import RoostAPI
import Testing

@testable import Roost

/// A channel that the app and live objects watch at the same time: each ends only its own watch.
@Suite("Sync: several watches of a channel")
struct WatchHolderTests {
    private static let general = Harness.channel

    private let state = WatchedChannel(
        config: ChannelPolicy.presets[0], channel: channel(counters(3, messages: 2)), online: 1, watcherCount: 1, watchers: [:],
        members: [:], read: [:], messages: MessagePage(messages: [], hasOlder: false, hasNewer: false, seq: 3),
        ownCapabilities: [.channelRead, .channelWatch])

    /// A client with a live object, number 5, that watches the channel.
    private func holding() async throws -> Harness {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.feed(.hold(1, Self.general, by: 5))
        try await client.answer("channel.watch", with: state)
        _ = client.take()
        return client
    }

    private func unwatchCount(_ client: Harness) -> Int { client.calls.values.count { $0 == "channel.unwatch" } }

    @Test("ST-10 SB-63 a live object that is released while the app starts to watch the channel ends nothing")
    func releasedMeanwhile() async throws {
        var client = try await holding()
        try await client.feed(.call(2, WatchChannel(channel: "community:general")))
        try await client.feed(.release(5))
        #expect(unwatchCount(client) == 0 && client.sync.wantsWatch(of: Self.general))
        try await client.answer("channel.watch", with: state)
        #expect(client.sync.watched == [Self.general] && unwatchCount(client) == 0)
        // The app ends it, once.
        try await client.feed(.call(3, UnwatchChannel(channel: Self.general)))
        #expect(unwatchCount(client) == 1 && client.sync.watches.ending.isEmpty)
    }

    @Test("ST-09 ST-10 SB-63 nor does one that is released during a query, unless its answer lacks the channel")
    func releasedDuringQuery() async throws {
        for isFound in [true, false] {
            var client = try await holding()
            try await client.feed(.call(2, QueryAndWatchChannels(query: QueryChannels(membership: .all))))
            try await client.feed(.release(5))
            #expect(unwatchCount(client) == 0)
            let view = ChannelView(channel: state.channel, ownCapabilities: [.channelRead, .channelWatch])
            try await client.answer("channel.queryAndWatch", with: Page(items: isFound ? [view] : []))
            #expect(client.sync.watched == (isFound ? [Self.general] : []))
            #expect(unwatchCount(client) == (isFound ? 0 : 1))
        }
    }

    @Test("ST-10 AM-46 a deleted channel is no longer watched or read: nothing is sent about it when the screen closes")
    func deleted() async throws {
        var client = try await holding()
        try await client.feed(.startReading(2, Self.general))
        try await client.answer("reading.start", with: Done())
        #expect(client.sync.reading[Self.general] != nil && client.sync.wantsWatch(of: Self.general))
        _ = client.take()
        let deleted = channel(counters(4, messages: 2), deletedAt: Timestamp(milliseconds: 40))
        try await client.receive(
            Event(kind: .channelDeleted, stream: .channel(Self.general), seq: 4, actor: "bob", rows: Rows(channel: deleted)))
        #expect(client.sync.reading[Self.general] == nil && !client.sync.wantsWatch(of: Self.general))
        #expect(client.take().contains(.unwatched(Self.general)))
        try await client.feed(.stopReading(3, Self.general, id: 1, at: Timestamp(milliseconds: 50)))
        #expect(client.calls.isEmpty)
        #expect(try await client.outbox.count() == 0)
    }

    /// How a call that watches nothing ends.
    enum Failure: CaseIterable, Sendable { case refused, unanswered, cancelled }

    @Test("ST-10 SB-63 if the app's watch fails, that of a released live object ends", arguments: Failure.allCases)
    func failed(failure: Failure) async throws {
        var client = try await holding()
        try await client.feed(.call(2, WatchChannel(channel: Self.general)))
        try await client.feed(.release(5))
        #expect(unwatchCount(client) == 0)
        switch failure {
        case .refused: try await client.refuse("channel.watch", with: RoostError(.overloaded, "Later."))
        case .unanswered: try await client.feed(.timer(.call(client.sync.lastCall)))
        case .cancelled: try await client.feed(.cancel(2))
        }
        #expect(unwatchCount(client) == 1 && !client.sync.wantsWatch(of: Self.general))
    }

    @Test("ST-10 SB-63 when the app stops watching, a live object continues, and the server isn't notified until it is released")
    func unwatched() async throws {
        var client = try await holding()
        try await client.feed(.call(2, WatchChannel(channel: Self.general)))
        try await client.answer("channel.watch", with: state)
        _ = client.take()
        try await client.feed(.call(3, UnwatchChannel(channel: "community:general")))
        let replies = client.take().compactMap { if case .reply(3, .success(let bytes)) = $0 { bytes } else { nil } }
        #expect(try replies.map { try ReplyResult<Done>.decode($0) } == [Done()])
        #expect(unwatchCount(client) == 0 && client.sync.watched.isEmpty && client.sync.wantsWatch(of: Self.general))
        try await client.feed(.release(5))
        #expect(unwatchCount(client) == 1 && !client.sync.wantsWatch(of: Self.general))
    }

    @Test("ST-10 SB-63 if the live object's watch is refused after the app stopped watching, the server is notified then")
    func refusedHold() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.feed(.call(2, WatchChannel(channel: Self.general)))
        try await client.answer("channel.watch", with: state)
        try await client.feed(.hold(1, Self.general, by: 5))
        try await client.feed(.call(3, UnwatchChannel(channel: Self.general)))
        #expect(unwatchCount(client) == 0)
        try await client.refuse("channel.watch", with: RoostError(.overloaded, "Later."))
        #expect(unwatchCount(client) == 1)
    }

    @Test("SB-63 if a live object repeats its request and is refused, the server ends what it still watches for it")
    func refusedRepetition() async throws {
        var client = try await holding()
        try await client.feed(.hold(2, Self.general, by: 5))
        try await client.refuse("channel.watch", with: RoostError(.overloaded, "Later."))
        try await client.feed(.release(5))
        #expect(unwatchCount(client) == 1 && !client.sync.wantsWatch(of: Self.general) && client.sync.watches.ending.isEmpty)
    }
}
