import Foundation
import RoostAPI
import Testing

@testable import Roost

@MainActor @Suite("Members: who is online, and until when that is known", .timeLimit(.minutes(5)))
struct MemberPresenceTests {
    private nonisolated static func entry(_ user: UserID, _ seq: Seq, isOnline: Bool) -> MemberEntry {
        MemberEntry(
            member: Member(
                userId: user, role: .member, state: .member, joinedAt: Timestamp(milliseconds: 0), joinedSeq: seq, changeSeq: seq),
            user: User(userId: user, createdAt: Timestamp(milliseconds: 0), updatedAt: Timestamp(milliseconds: 0)),
            isOnline: isOnline)
    }

    /// How a watch ends.
    enum End: CaseIterable, Sendable { case byApp, byServer, byMembership, byConnection }

    /// - Parameters:
    ///   - gate: Some pages are sent once it has ended. They contain cid too.
    ///   - first: The number of the first of these, from 0.
    ///   - isBobOnline: What a page says, by its number from 0.
    private func server(
        holdingUntil gate: AsyncStream<Void>? = nil, from first: Int = 1,
        isBobOnline: @escaping @Sendable (Int) -> Bool = { _ in false }
    ) -> ScriptedServer {
        let asked = Turn()
        let state = WatchedChannel(
            config: ChannelPolicy.presets[0], channel: channel(counters(3, messages: 0)),
            membership: membership(readSeq: 3, readCount: 0, channelSeq: 3, userSeq: 1), online: 1, watcherCount: 1, watchers: [:],
            members: [:], read: [:], messages: MessagePage(messages: [], hasOlder: false, hasNewer: false, seq: 3),
            ownCapabilities: [.channelRead, .historyRead, .channelWatch])
        return ScriptedServer { call in
            switch call.operation {
            case "member.list":
                let number = asked.next()
                let items = [Self.entry("ann", 1, isOnline: true), Self.entry("bob", 2, isOnline: isBobOnline(number))]
                guard let gate, number >= first else { return .result(Page(items: items)) }
                return .held(until: gate, .result(Page(items: items + [Self.entry("cid", 3, isOnline: false)])))
            case "channel.watch": return .result(state)
            case "channel.unwatch": return .result(Done())
            default: return .error(.notFound("operation"))
            }
        }
    }

    private func online(_ users: [UserID], offline: [UserID] = [], isWhole: Bool = true) -> Signal {
        Signal(
            kind: .presenceChanged, channel: "general",
            presence: PresenceChange(onlineCount: 2, online: users, offline: offline, isWhole: isWhole))
    }

    /// A watched channel, and the list of its members, at 100 seconds.
    private func watched(_ server: ScriptedServer, _ clock: ManualClock) async throws -> (chat: Chat, list: MemberList) {
        let chat = try await server.connectedInGeneral(clock)
        clock.advance(by: .seconds(100))
        try await chat.channel("general").watch()
        let list = chat.channel("general").members()
        try await list.loaded()
        try await until { list.presenceAsOf == nil && list.items.count == 2 }
        return (chat, list)
    }

    private func requests(_ server: ScriptedServer) async -> Int { await server.operations().count { $0 == "member.list" } }

    @Test("SB-63 while the app is busy, messages don't keep a list from learning who came online, or that the watch has ended")
    func busy() async throws {
        let (server, clock) = (server(), ManualClock())
        let (chat, list) = try await watched(server, clock)
        chat.driver.signals.send(.signal(online(["bob"])))
        for _ in 0..<150 { chat.driver.signals.send(.wrote("bob", "general")) }
        try await until { list.items.map(\.isOnline) == [true, true] }
        #expect(list.presenceAsOf == nil)
        clock.advance(by: .seconds(2))
        chat.driver.signals.send(.unwatched("general"))
        for _ in 0..<150 { chat.driver.signals.send(.wrote("bob", "general")) }
        clock.advance(by: .seconds(2))
        try await until { list.presenceAsOf == Timestamp(milliseconds: 102_000) }
        #expect(await requests(server) == 1)
        await chat.disconnect()
    }

    @Test("SB-63 R08 if signals were dropped, presence is requested again, and until then the list says when it was last right")
    func missed() async throws {
        let (server, clock) = (server { $0 > 0 }, ManualClock())
        let (chat, list) = try await watched(server, clock)
        clock.advance(by: .seconds(1))
        chat.driver.signals.send(.signal(online(["bob"])))
        clock.advance(by: .seconds(1))
        for _ in 0..<100 { chat.driver.signals.send(.signal(online(["ann"]))) }
        try await until { list.presenceAsOf == Timestamp(milliseconds: 101_000) }
        #expect(list.items.map(\.isOnline) == [true, false])
        try await until { clock.ends.contains(.milliseconds(102_250)) }
        clock.advance(by: .milliseconds(250))
        try await until { list.presenceAsOf == nil && list.items.map(\.isOnline) == [true, true] }
        await chat.disconnect()
    }

    @Test("SB-62 SB-63 R08 a member who comes online while the list is requested isn't shown as offline by the older page")
    func olderPage() async throws {
        let (gate, opening) = AsyncStream.makeStream(of: Void.self)
        let (server, clock) = (server(holdingUntil: gate), ManualClock())
        let (chat, list) = try await watched(server, clock)
        chat.driver.signals.send(.watching("general"))
        try await until { clock.ends.contains(.milliseconds(100_250)) }
        clock.advance(by: .milliseconds(250))
        try await until { await requests(server) == 2 }
        try await server.send(online(["bob"]))
        try await until { list.items.map(\.isOnline) == [true, true] }
        opening.finish()
        // Cid is only in that page.
        try await until { list.items.count == 3 }
        #expect(list.items.map(\.isOnline) == [true, true, false])
        await chat.disconnect()
    }

    @Test(
        "SB-62 SB-63 R08 a change of presence that arrives while a list reads the names of its first page isn't lost, nor is an incomplete one",
        arguments: [true, false])
    func firstPage(isWhole: Bool) async throws {
        let folder = URL.temporaryDirectory.appending(component: "roost-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let (gate, opening) = AsyncStream.makeStream(of: Void.self)
        let (server, clock) = (server(holdingUntil: gate, from: 0), ManualClock())
        let chat = try await server.connectedInGeneral(clock, storage: .directory(folder))
        try await chat.channel("general").watch()
        // Otherwise the beginning of the watch would be a reason to ask.
        try await until { chat.driver.signals.isWatched("general") }
        let list = chat.channel("general").members()
        try await until { await requests(server) == 1 }
        let store = try await chat.driver.files().store
        let readers = try await BusyReaders.occupying(store)
        defer { readers.end() }
        opening.finish()
        // The page arrives without the store's readers.
        try await until { await chat.driver.replies.isEmpty }
        await letOthersRun()
        chat.driver.signals.send(.signal(online(["bob"], isWhole: isWhole)))
        await letOthersRun()
        #expect(list.items.isEmpty)
        readers.end()
        try await until { list.items.count == 3 }
        #expect(list.items.map(\.isOnline) == [true, true, false] && list.presenceAsOf == nil)
        if !isWhole {
            try await until { clock.isSpreading }
            clock.advance(by: .seconds(5))
            try await until { await requests(server) == 2 }
        }
        await chat.disconnect()
    }

    @Test("SB-63 R08 after an incomplete signal, a list asks again within seconds, unless something else makes it ask sooner")
    func incomplete() async throws {
        let (server, clock) = (server { $0 > 0 }, ManualClock())
        let (chat, list) = try await watched(server, clock)
        for offline in [[], ["ann"]] as [[UserID]] { try await server.send(online([], offline: offline, isWhole: false)) }
        // A signal that is handled after the request is another reason to ask.
        try await until { list.items.map(\.isOnline) == [false, false] && clock.isSpreading }
        clock.advance(by: .milliseconds(499))
        await letOthersRun()
        #expect(await requests(server) == 1)
        clock.advance(by: .milliseconds(4501))
        try await until { list.items.map(\.isOnline) == [true, true] }
        #expect(await requests(server) == 2)

        try await server.send(online([], isWhole: false))
        try await until { clock.isSpreading }
        try await chat.channel("general").watch()
        try await until { clock.ends.contains(.milliseconds(105_250)) }
        clock.advance(by: .milliseconds(250))
        try await until { await requests(server) == 3 }
        clock.advance(by: .seconds(5))
        await letOthersRun()
        #expect(await requests(server) == 3)
        await chat.disconnect()
    }

    @Test(
        "SB-63 R15 while a channel is watched its list says who is online now, and afterwards when that was last right",
        arguments: End.allCases)
    func ends(end: End) async throws {
        let (server, clock) = (server(), ManualClock())
        let chat = try await server.connectedInGeneral(clock)
        let general = chat.channel("general")
        clock.advance(by: .seconds(100))
        try await general.watch()
        let list = general.members()
        try await list.loaded()
        try await until { list.presenceAsOf == nil }
        try await server.send(online(["bob"]))
        try await until { list.items.map(\.isOnline) == [true, true] }
        #expect(list.presenceAsOf == nil)

        clock.advance(by: .seconds(5))
        try await server.send(online([]))
        try await until { await chat.driver.lastHeard == Timestamp(milliseconds: 105_000) }
        clock.advance(by: .seconds(2))
        var asOf = Timestamp(milliseconds: 107_000)
        switch end {
        case .byApp: try await general.unwatch()
        case .byServer: try await server.send(UnwatchedFrame(unwatched: .init(channel: "general")))
        case .byMembership:
            try await server.send(
                Event(
                    kind: .memberLeft, stream: .user("ann"), seq: 2, actor: "ann",
                    rows: Rows([membership(readSeq: 3, readCount: 0, state: .none, channelSeq: 3, userSeq: 2)])))
        case .byConnection:
            await chat.disconnect()
            // It may have changed since then.
            asOf = Timestamp(milliseconds: 105_000)
        }
        try await until { list.presenceAsOf != nil }
        #expect(list.presenceAsOf == asOf)
        // Without further signals the rows stay.
        #expect(list.items.map(\.isOnline) == [true, true])
        await chat.disconnect()
    }

    @Test("SB-63 a list of an unwatched channel says when its pages were requested; once it is watched, they are requested again")
    func begins() async throws {
        let (server, clock) = (server(), ManualClock())
        let chat = try await server.connectedInGeneral(clock)
        let general = chat.channel("general")
        clock.advance(by: .seconds(100))
        let list = general.members()
        try await list.loaded()
        #expect(list.presenceAsOf == Timestamp(milliseconds: 100_000))
        clock.advance(by: .seconds(5))
        try await general.watch()
        // A moment later: several reasons lead to one request.
        try await until { clock.ends.contains(.milliseconds(105_250)) }
        clock.advance(by: .milliseconds(250))
        try await until { list.presenceAsOf == nil }
        #expect(await server.operations().filter { $0 == "member.list" }.count == 2)
        await chat.disconnect()
    }

    @Test("SB-63 the end of the last of several watches of a channel ends it")
    func several() async throws {
        let (server, clock) = (server(), ManualClock())
        let chat = try await server.connectedInGeneral(clock)
        let general = chat.channel("general")
        var presence: LivePresence? = general.presence()
        try await presence?.loaded()
        try await general.watch()
        let signals = chat.driver.signals
        try await until { signals.isWatched("general") }
        presence = nil
        try await until { await chat.driver.machine?.watches.holders.isEmpty == true }
        await chat.driver.rest()
        #expect(signals.isWatched("general"))
        try await general.unwatch()
        try await until { !signals.isWatched("general") }
        await chat.disconnect()
    }
}
