import RoostAPI
import Synchronization
import Testing

@testable import Roost

/// The times up to which lists of watchers and numbers of online members were right, once they get no more changes.
@MainActor @Suite("Watching: until when shown data were right", .timeLimit(.minutes(5)))
struct WatchEndTests {
    private nonisolated static let refusal = RoostError(.notPermitted, "It is closed.")

    /// How a watch ends.
    enum End: CaseIterable, Sendable { case byApp, byServer, byMembership, byConnection }

    /// The server's state.
    private final class Room: Sendable {
        private let state = Mutex<(users: [UserID], isOpen: Bool)>((["ann", "bob"], true))
        var users: [UserID] { state.withLock { $0.users } }
        var isOpen: Bool { state.withLock { $0.isOpen } }
        func set(_ users: [UserID]) { state.withLock { $0.users = users } }
        func close() { state.withLock { $0.isOpen = false } }
    }

    private let room = Room()
    private let clock = ManualClock()

    private nonisolated static func answer(_ call: ScriptedServer.Call, _ room: Room) -> ScriptedServer.Answer {
        guard room.isOpen else { return .error(refusal) }
        let users = room.users
        switch call.operation {
        case "channel.listWatchers":
            return .result(WatcherPage(watchers: users.map { UserSummary(userId: $0) }, watcherCount: users.count))
        case "channel.watch":
            return .result(
                WatchedChannel(
                    config: ChannelPolicy.presets[0], channel: channel(counters(3, messages: 0)),
                    membership: membership(readSeq: 3, readCount: 0, channelSeq: 3, userSeq: 1), online: users.count,
                    watcherCount: users.count, watchers: [:], members: [:], read: [:],
                    messages: MessagePage(messages: [], hasOlder: false, hasNewer: false, seq: 3),
                    ownCapabilities: [.channelRead, .historyRead, .channelWatch]))
        case "channel.unwatch": return .result(Done())
        default: return .error(.notFound("operation"))
        }
    }

    private func server() -> ScriptedServer { ScriptedServer { [room] in Self.answer($0, room) } }

    /// A server that holds its answers to an operation until a sequence ends, except for the first one.
    private func server(holding operation: String, until gate: AsyncStream<Void>) -> ScriptedServer {
        let asked = Turn()
        return ScriptedServer { [room] call in
            let answer = Self.answer(call, room)
            return call.operation == operation && asked.next() > 0 ? .held(until: gate, answer) : answer
        }
    }

    /// Returns the chat at 100 seconds.
    private func connected(_ server: ScriptedServer) async throws -> Chat {
        let chat = try await server.connectedInGeneral(clock)
        clock.advance(by: .seconds(100))
        return chat
    }

    private func time(_ seconds: Int64) -> Timestamp { Timestamp(milliseconds: seconds * 1000) }

    private func watching(_ started: [UserID], stopped: [UserID] = [], count: Int = 3, isWhole: Bool = true) -> Signal {
        Signal(
            kind: .watchingChanged, channel: "general",
            watching: WatcherChange(watcherCount: count, started: started, stopped: stopped, isWhole: isWhole))
    }

    private func presence(_ count: Int) -> Signal {
        Signal(
            kind: .presenceChanged, channel: "general",
            presence: PresenceChange(onlineCount: count, online: [], offline: [], isWhole: true))
    }

    /// Ends the watch, 105 seconds after the clock's start, and advances the clock.
    ///
    /// - Returns: Until when the shown data were right.
    private func end(_ end: End, _ chat: Chat, _ server: ScriptedServer, asksForUser: Bool = false) async throws -> Timestamp {
        if asksForUser {
            // The client learns a moment later whom a list shows. A later request for them would be answered after what ends the watch.
            try await until { await chat.driver.machine?.userRequests.waiting.contains("cid") == true }
            // A pause that started only after the clock was advanced wouldn't be over.
            try await until { clock.ends.contains(.milliseconds(100_020)) }
        }
        clock.advance(by: .seconds(5))
        try await server.send(presence(2))
        try await until { await chat.driver.lastHeard == time(105) }
        if asksForUser {
            // The users have been requested by now. A later answer would be the last sign of life; answers arrive in the order of the calls.
            try await until { await server.calls.contains { $0.operation == "user.listChanged" } }
            _ = try await chat.call(ListWatchers(channel: "general"))
        }
        clock.advance(by: .seconds(2))
        switch end {
        case .byApp: try await chat.channel("general").unwatch()
        case .byServer: try await server.send(UnwatchedFrame(unwatched: .init(channel: "general")))
        case .byMembership:
            try await server.send(
                mine(2, .memberLeft, membership(readSeq: 3, readCount: 0, state: .none, channelSeq: 3, userSeq: 2)))
        case .byConnection:
            await chat.disconnect()
            // It may have changed since then.
            return time(105)
        }
        return time(107)
    }

    @Test("ST-14 a list of watchers says until when it was right once the watch has ended", arguments: End.allCases)
    func watchers(end: End) async throws {
        let server = server()
        let chat = try await connected(server)
        try await chat.channel("general").watch()
        let list = chat.channel("general").watchers()
        #expect(list.asOf == nil)
        try await list.loaded()
        #expect(list.asOf == nil && list.items.map(\.userId) == ["ann", "bob"])
        try await server.send(watching(["cid"]))
        try await until { list.items.count == 3 }
        let asOf = try await self.end(end, chat, server, asksForUser: true)
        try await until { list.asOf != nil }
        #expect(list.asOf == asOf)
        #expect(list.items.count == 3 && list.phase == .loaded)
        await chat.disconnect()
    }

    @Test("ST-14 a list of watchers of an unwatched channel says when it was requested; a watch brings it up to date")
    func unwatchedList() async throws {
        let server = server()
        let chat = try await connected(server)
        let list = chat.channel("general").watchers()
        try await list.loaded()
        #expect(list.asOf == time(100))
        room.set(["ann"])
        try await chat.channel("general").watch()
        try await until { clock.ends.contains(.milliseconds(100_250)) }
        clock.advance(by: .milliseconds(250))
        try await until { list.asOf == nil }
        #expect(list.items.map(\.userId) == ["ann"])
        try await chat.logOut()
        try await until { list.items.isEmpty }
        #expect(list.asOf == nil)
    }

    @Test("ST-14 ST-16 when the right to watch is gone, a list of watchers is refused and empty")
    func closed() async throws {
        let server = server()
        let chat = try await connected(server)
        try await chat.channel("general").watch()
        let list = chat.channel("general").watchers()
        try await list.loaded()
        var updates: [ListUpdate<UserSummary>] = []
        let token = list.observe { updates.append($0) }
        room.close()
        try await server.send(UnwatchedFrame(unwatched: .init(channel: "general")))
        try await until { clock.ends.contains(.milliseconds(100_250)) }
        clock.advance(by: .milliseconds(250))
        try await until { list.phase == .refused(Self.refusal) && list.items.isEmpty }
        #expect(list.watcherCount == 0 && list.lastActiveWatchers == [] && !list.hasMore && list.asOf == nil)
        #expect(updates.last?.items == [])
        token.invalidate()
        await chat.disconnect()
    }

    @Test("ST-14 ST-16 when the right to watch has gone with the membership, a list of watchers is refused and empty")
    func removed() async throws {
        let server = server()
        let chat = try await connected(server)
        try await chat.channel("general").watch()
        let list = chat.channel("general").watchers()
        try await list.loaded()
        room.close()
        // The server doesn't report the end of such a watch.
        try await server.send(
            mine(2, .memberLeft, membership(readSeq: 3, readCount: 0, state: .none, channelSeq: 3, userSeq: 2)))
        try await until { clock.ends.contains(.milliseconds(100_250)) }
        clock.advance(by: .milliseconds(250))
        try await until { list.phase == .refused(Self.refusal) && list.items.isEmpty }
        #expect(list.watcherCount == 0 && list.lastActiveWatchers == [] && list.asOf == nil)
        await chat.disconnect()
    }

    @Test("ST-14 R08 if signals were dropped, new watchers are requested")
    func missed() async throws {
        let server = server()
        let chat = try await connected(server)
        try await chat.channel("general").watch()
        let list = chat.channel("general").watchers()
        try await list.loaded()
        room.set(["ann", "bob", "cid"])
        chat.driver.signals.send(.signal(watching(["cid"])))
        for _ in 0..<100 { chat.driver.signals.send(.signal(watching([]))) }
        try await until { list.asOf == time(100) }
        try await until { clock.ends.contains(.milliseconds(100_250)) }
        #expect(list.items.map(\.userId) == ["ann", "bob"])
        clock.advance(by: .milliseconds(250))
        try await until { list.asOf == nil && list.items.map(\.userId) == ["ann", "bob", "cid"] }
        await chat.disconnect()
    }

    @Test("ST-14 R08 after an incomplete signal, a list of watchers asks again within seconds, and once")
    func incomplete() async throws {
        let server = server()
        let chat = try await connected(server)
        try await chat.channel("general").watch()
        let list = chat.channel("general").watchers()
        try await list.loaded()
        room.set(["ann", "cid"])
        for count in [3, 4] { try await server.send(watching([], count: count, isWhole: false)) }
        // A signal that is handled after the request is another reason to ask.
        try await until { list.watcherCount == 4 && clock.isSpreading }
        clock.advance(by: .milliseconds(499))
        await letOthersRun()
        #expect(list.items.map(\.userId) == ["ann", "bob"])
        clock.advance(by: .seconds(5))
        try await until { list.items.map(\.userId) == ["ann", "cid"] }
        clock.advance(by: .seconds(5))
        await letOthersRun()
        #expect(await server.operations().count { $0 == "channel.listWatchers" } == 2)
        await chat.disconnect()
    }

    @Test("ST-14 R08 a watcher who stops while the server is asked isn't brought back by the older answer")
    func olderWatchers() async throws {
        let (gate, opening) = AsyncStream.makeStream(of: Void.self)
        let server = server(holding: "channel.listWatchers", until: gate)
        let chat = try await connected(server)
        try await chat.channel("general").watch()
        let list = chat.channel("general").watchers()
        try await list.loaded()
        room.set(["ann", "bob", "cid"])
        chat.driver.signals.send(.watching("general"))
        try await until { clock.ends.contains(.milliseconds(100_250)) }
        clock.advance(by: .milliseconds(250))
        try await until { await server.operations().count { $0 == "channel.listWatchers" } == 2 }
        try await server.send(watching([], stopped: ["bob"], count: 2))
        try await until { list.items.map(\.userId) == ["ann"] }
        opening.finish()
        // Cid is only in the answer.
        try await until { list.items.map(\.userId).contains("cid") }
        #expect(list.items.map(\.userId) == ["ann", "cid"] && list.watcherCount == 2)
        await chat.disconnect()
    }

    @Test("SB-63 R08 a count of online members that arrives while the server is asked isn't replaced by the older answer")
    func olderCount() async throws {
        let (gate, opening) = AsyncStream.makeStream(of: Void.self)
        let server = server(holding: "channel.watch", until: gate)
        let chat = try await connected(server)
        let presence = chat.channel("general").presence()
        try await presence.loaded()
        try await server.send(UnwatchedFrame(unwatched: .init(channel: "general")))
        try await until { presence.asOf == time(100) && clock.ends.contains(.milliseconds(100_250)) }
        clock.advance(by: .milliseconds(250))
        try await until { await server.operations().count { $0 == "channel.watch" } == 2 }
        try await server.send(self.presence(7))
        try await until { presence.onlineCount == 7 }
        #expect(presence.asOf == time(100))
        opening.finish()
        // The count is current again once the answer has arrived.
        try await until { presence.asOf == nil }
        #expect(presence.onlineCount == 7)
        await chat.disconnect()
    }

    @Test(
        "SB-63 the number of online members says until when it was right",
        arguments: [End.byServer, .byMembership, .byConnection])
    func presence(end: End) async throws {
        let server = server()
        let chat = try await connected(server)
        let presence = chat.channel("general").presence()
        #expect(presence.asOf == nil)
        try await presence.loaded()
        #expect(presence.onlineCount == 2 && presence.asOf == nil)
        room.close()
        let asOf = try await self.end(end, chat, server)
        try await until { presence.asOf != nil }
        #expect(presence.asOf == asOf && presence.onlineCount == 2)
        await chat.disconnect()
    }

    @Test("SB-63 the number of online members is right again with the next connection, and when the server accepts the watch again")
    func presenceReturns() async throws {
        let server = server()
        let chat = try await connected(server)
        let presence = chat.channel("general").presence()
        try await presence.loaded()
        await chat.disconnect()
        try await until { presence.asOf == time(100) }
        room.set(["ann", "bob", "cid"])
        try await chat.connect()
        try await until { presence.asOf == nil && presence.onlineCount == 3 }
        try await server.send(UnwatchedFrame(unwatched: .init(channel: "general")))
        try await until { presence.asOf == time(100) && clock.ends.contains(.milliseconds(100_250)) }
        clock.advance(by: .milliseconds(250))
        try await until { presence.asOf == nil }
        await chat.disconnect()
    }

    @Test("SB-63 while the app is busy, messages don't keep the number of online members from its newest value")
    func busy() async throws {
        let server = server()
        let chat = try await connected(server)
        let presence = chat.channel("general").presence()
        try await presence.loaded()
        chat.driver.signals.send(.signal(self.presence(7)))
        for _ in 0..<150 { chat.driver.signals.send(.wrote("bob", "general")) }
        try await until { presence.onlineCount == 7 }
        // Each signal has the whole number, so nothing is wrong after some were dropped.
        for count in 0..<150 { chat.driver.signals.send(.signal(self.presence(count))) }
        try await until { presence.onlineCount == 149 && presence.asOf == nil }
        await chat.disconnect()
    }
}
