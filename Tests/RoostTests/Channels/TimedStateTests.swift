import Foundation
import Logging
import RoostAPI
import Synchronization
import Testing

@testable import Roost

/// A silence and a rate limit end by the clock, without an event.
@MainActor @Suite("Channels: ends of silences and rate limits in lists", .timeLimit(.minutes(5)))
struct TimedStateTests {
    private let clock = ManualClock()

    private func chat(_ server: ScriptedServer = ScriptedServer { _ in .nothing }) -> Chat {
        var configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = server
        configuration.clock = clock
        return Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
    }

    /// A channel that is silenced and rate-limited until some seconds of the clock.
    private func channel(_ id: ChannelID, silencedUntil silence: Int64? = nil, limitedUntil limit: Int64? = nil) -> Channel {
        let start = Timestamp(milliseconds: 0)
        var channel = Channel(
            channelId: id, type: .community, counters: counters(1, messages: 0), createdBy: "bob", createdAt: start,
            updatedAt: start)
        channel.mutedUntil = silence.map { Timestamp(milliseconds: $0 * 1000) }
        channel.rateLimitedUntil = limit.map { Timestamp(milliseconds: $0 * 1000) }
        (channel.isMuted, channel.isRateLimited) = (silence != nil, limit != nil)
        return channel
    }

    private func writes(_ channel: Channel) -> [StoreWrite] {
        var own = membership(readSeq: 1, readCount: 0, userSeq: 1)
        own.channelId = channel.channelId
        return [.channel(channel), .membership(own)]
    }

    /// Advances the clock once a task sleeps until a second of it.
    private func advance(to second: Int64, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        try await until(sourceLocation: sourceLocation) { clock.ends.contains(.seconds(second)) }
        clock.advance(by: .milliseconds(second * 1000 - clock.timestamp.milliseconds))
    }

    /// The ids of the channels that a list shows as silenced, and as rate-limited.
    private func states(_ items: [ChannelItem]) -> [[ChannelID]] {
        [items.filter(\.channel.isMuted).map(\.id), items.filter(\.channel.isRateLimited).map(\.id)]
    }

    @Test("AM-07 AM-08 AM-30 R08 a list from the store shows and reports the end of each silence and rate limit, without an event")
    func stored() async throws {
        let chat = chat()
        let store = try await chat.driver.prepare().store
        try await store.write(writes(channel("a", silencedUntil: 10, limitedUntil: 20)) + writes(channel("b", limitedUntil: 15)))
        let list = chat.channels()
        try await list.loaded()
        var updates: [ListUpdate<ChannelItem>] = []
        let token = list.observe { updates.append($0) }
        #expect(list.items.map(\.id) == ["b", "a"] && states(list.items) == [["a"], ["b", "a"]])

        // A silence that starts later and ends earlier.
        try await until { clock.ends.contains(.seconds(10)) }
        try await store.write(writes(channel("c", silencedUntil: 5)))
        try await until { updates.count == 2 }
        try await advance(to: 5)
        try await until { updates.count == 3 }
        #expect(updates[2].updated == [0] && states(list.items) == [["a"], ["b", "a"]])

        try await until { clock.ends.contains(.seconds(10)) }
        clock.advance(by: .milliseconds(4999))
        await letOthersRun()
        #expect(updates.count == 3)
        clock.advance(by: .milliseconds(1))
        try await until { updates.count == 4 }
        #expect(updates[3].updated == [2] && states(list.items) == [[], ["b", "a"]])
        // This limit ends before its time.
        try await store.write([.channel(channel("b"))])
        try await until { updates.count == 5 }
        try await advance(to: 15)
        try await advance(to: 20)
        try await until { updates.count == 6 }
        #expect(updates[5].updated == [2] && states(updates[5].items) == [[], []])
        try await until { clock.ends.isEmpty }
        token.invalidate()
    }

    @Test("AM-48 R08 a list from the store shows what a muted member's role may do again when the mute ends, without an event")
    func mute() async throws {
        let chat = chat()
        let store = try await chat.driver.prepare().store
        var own = membership(readSeq: 1, readCount: 0, userSeq: 1)
        own.channelId = "a"
        own.mutedUntil = Timestamp(milliseconds: 10_000)
        let byRole = Capabilities.ByRole(permissions: ["member": [.channelRead, .messageSend]], channelSeq: 1)
        try await store.write([.channel(channel("a")), .membership(own), .roleCapabilities("a", byRole)])
        let list = chat.channels()
        try await list.loaded()
        #expect(list.items.map(\.ownCapabilities) == [[.channelRead]])
        try await advance(to: 10)
        try await until { list.items.map(\.ownCapabilities) == [[.channelRead, .messageSend]] }
        try await until { clock.ends.isEmpty }
    }

    @Test("AM-07 for a silence without an end, and one that is over, a list waits for nothing")
    func endless() async throws {
        let chat = chat()
        var endless = channel("a", limitedUntil: -1)
        endless.mutedUntil = .forever
        try await chat.driver.prepare().store.write(writes(endless))
        let list = chat.channels()
        try await list.loaded()
        await letOthersRun()
        #expect(states(list.items) == [["a"], []] && clock.ends.isEmpty)
    }

    @Test("AM-07 AM-08 AM-33 R08 a list from the server shows and reports the end of a silence and of a rate limit, without asking")
    func asked() async throws {
        let views = [channel("a", silencedUntil: 5), channel("b", limitedUntil: 7)].map {
            ChannelView(channel: $0, membership: nil)
        }
        let server = ScriptedServer { call in
            call.operation == "channel.query" ? .result(Page(items: views)) : .nothing
        }
        let chat = chat(server)
        try await chat.connect()
        let list = chat.channels(matching: ChannelQuery(membership: .all))
        try await list.loaded()
        var updates: [ListUpdate<ChannelItem>] = []
        let token = list.observe { updates.append($0) }
        #expect(states(list.items) == [["a"], ["b"]])
        try await advance(to: 5)
        try await until { updates.count == 2 }
        #expect(updates[1].updated == [1] && states(list.items) == [[], ["b"]])
        try await advance(to: 7)
        try await until { updates.count == 3 }
        #expect(updates[2].updated == [0] && states(list.items) == [[], []])
        #expect(await server.operations().count { $0 == "channel.query" } == 1)
        token.invalidate()
        await chat.disconnect()
    }

    @Test("AM-07 a wait for a time notices within a minute that the device's clock was set forward past it")
    func clockSetForward() async throws {
        let now = Mutex(Timestamp(milliseconds: 0))
        var environment = chat().driver.environment
        environment.now = { now.withLock { $0 } }
        let (ended, end) = AsyncStream.makeStream(of: Void.self)
        let token = environment.waiting(until: Timestamp(milliseconds: 86_400_000)) { end.finish() }
        try await until { clock.ends.contains(.seconds(60)) }
        now.withLock { $0 = Timestamp(milliseconds: 90_000_000) }
        clock.advance(by: .seconds(60))
        for await _ in ended {}
        token.invalidate()
    }

    @Test("AM-07 AM-08 if the device's clock is set back, a silence is shown until that clock reaches its end, and no longer")
    func clockSetBack() async throws {
        let chat = chat()
        let store = try await chat.driver.prepare().store
        try await store.write(writes(channel("a", silencedUntil: 10, limitedUntil: 20)))
        let list = chat.channels()
        try await list.loaded()
        var updates: [ListUpdate<ChannelItem>] = []
        let token = list.observe { updates.append($0) }
        #expect(states(list.items) == [["a"], ["a"]])
        try await until { clock.ends.contains(.seconds(10)) }
        clock.advance(by: .seconds(4))
        // It is second 1 of the day again: the end is 9 seconds away.
        clock.setTimeOfDay(by: .seconds(-3))
        clock.advance(by: .seconds(6))
        try await until { clock.ends.contains(.seconds(13)) }
        #expect(updates.count == 1 && states(list.items) == [["a"], ["a"]])
        clock.advance(by: .seconds(3))
        try await until { updates.count == 2 }
        #expect(states(list.items) == [[], ["a"]])

        // Set back before an end that was shown: a row that is read again follows the clock, and ends again.
        try await until { clock.ends.contains(.seconds(23)) }
        clock.setTimeOfDay(by: .seconds(-5))
        try await store.write(writes(channel("a", silencedUntil: 10, limitedUntil: 21)))
        try await until { updates.count == 3 }
        #expect(states(list.items) == [["a"], ["a"]])
        try await until { clock.ends.contains(.seconds(18)) }
        clock.advance(by: .seconds(5))
        try await until { updates.count == 4 }
        #expect(states(list.items) == [[], ["a"]])
        token.invalidate()
    }

    @Test("AM-29 a list that waits for the end of a silence is freed once it has no owner")
    func freed() async throws {
        let chat = chat()
        try await chat.driver.prepare().store.write(writes(channel("a", silencedUntil: 10)))
        weak var freed: ChannelList?
        do {
            let list = chat.channels()
            try await list.loaded()
            try await until { clock.ends.contains(.seconds(10)) }
            freed = list
        }
        try await until { freed == nil }
    }
}
