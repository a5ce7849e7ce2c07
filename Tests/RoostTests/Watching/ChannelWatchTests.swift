import Foundation
import Logging
import RoostAPI
import Synchronization
import Testing

@testable import Roost

/// A channel that an app watches for as long as a screen shows it.
@MainActor @Suite("Watching: a channel on a screen", .timeLimit(.minutes(5)))
struct ChannelWatchTests {
    private nonisolated static let refusal = RoostError(.notMember, "It is for members.")

    /// Whether the user may watch, according to the server.
    private final class Door: Sendable {
        private let state = Mutex(true)
        var isOpen: Bool { state.withLock { $0 } }
        func set(isOpen: Bool) { state.withLock { $0 = isOpen } }
    }

    private let door = Door()

    private func server() -> ScriptedServer {
        ScriptedServer { [door] call in
            guard door.isOpen else { return .error(Self.refusal) }
            switch call.operation {
            case "channel.watch":
                return .result(
                    WatchedChannel(
                        config: ChannelPolicy.presets[0], channel: channel(counters(3, messages: 0)), online: 1, watcherCount: 1,
                        watchers: [:], members: [:], read: [:],
                        messages: MessagePage(messages: [], hasOlder: false, hasNewer: false, seq: 3),
                        ownCapabilities: [.channelRead, .channelWatch]))
            case "channel.unwatch": return .result(Done())
            default: return .error(.notFound("operation"))
            }
        }
    }

    private func membership(_ state: MembershipState, since seq: Seq, userSeq: Seq) -> Membership {
        var membership = RoostTests.membership(readSeq: seq, readCount: 0, state: state, channelSeq: seq, userSeq: userSeq)
        membership.joinedSeq = seq
        return membership
    }

    /// The channel's policy changes, and with it what its members may do.
    private func permit(_ permissions: [Permission], at seq: Seq) -> Event {
        var rows = Rows(channel: channel(counters(seq, messages: 0)))
        rows.capabilities = [ChannelRole.member.rawValue: permissions]
        return Event(kind: .channelUpdated, stream: .channel("general"), seq: seq, actor: "bob", rows: rows)
    }

    private func count(_ operation: String, at server: ScriptedServer) async -> Int {
        await server.operations().count { $0 == operation }
    }

    private func isWatched(by chat: Chat) async -> Bool {
        await chat.driver.machine?.watches.holders.values.contains("general") == true
    }

    @Test("ST-01 ST-10 a screen that opens offline is watched with the first connection, and with each later one, while it is open")
    func offline() async throws {
        let server = server()
        let configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, transport: server)
        let chat = Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
        let token = chat.channel("general").watching()
        await letOthersRun()
        #expect(await server.operations() == [])
        try await chat.connect()
        try await until { await isWatched(by: chat) }
        await chat.disconnect()
        try await chat.connect()
        try await until { await count("channel.watch", at: server) == 2 }
        #expect(await count("channel.unwatch", at: server) == 0)
        token.invalidate()
        try await until { await count("channel.unwatch", at: server) == 1 }
        #expect(await !isWatched(by: chat))
        await chat.disconnect()
        try await chat.connect()
        await letOthersRun()
        #expect(await count("channel.watch", at: server) == 2)
        await chat.disconnect()
    }

    @Test("ST-10 a channel is watched until the last of its tokens is released, whatever single calls have begun and ended")
    func counted() async throws {
        let server = server()
        let chat = try await server.connected()
        let general = chat.channel("general")
        var (first, second): (ObservationToken?, ObservationToken?) = (general.watching(), general.watching())
        try await until { await chat.driver.machine?.watches.holders.count == 2 }
        try await general.watch()
        try await general.unwatch()
        #expect(first?.isInvalidated == false && second?.isInvalidated == false)
        first = nil
        try await until { await chat.driver.machine?.watches.holders.count == 1 }
        #expect(await count("channel.unwatch", at: server) == 0)
        second = nil
        try await until { await count("channel.unwatch", at: server) == 1 }
        #expect(await chat.driver.machine?.wantsWatch(of: "general") == false)
        await chat.disconnect()
    }

    @Test("ST-10 a user who is removed and comes back, or gets the right to watch back, watches again")
    func back() async throws {
        let server = server()
        let chat = try await server.connectedInGeneral()
        let token = chat.channel("general").watching()
        try await until { await isWatched(by: chat) }
        door.set(isOpen: false)
        try await server.send(mine(2, .memberRemoved, membership(.none, since: 4, userSeq: 2)))
        try await until { await !isWatched(by: chat) }
        door.set(isOpen: true)
        try await server.send(
            mine(3, .memberJoined, membership(.member, since: 8, userSeq: 3), channel: channel(counters(8, messages: 0))))
        try await until { await isWatched(by: chat) }

        // The server has ended the watch, and says that there may be another one.
        let watchCount = await count("channel.watch", at: server)
        try await server.send(UnwatchedFrame(unwatched: .init(channel: "general")))
        try await until { await count("channel.watch", at: server) > watchCount }
        try await until { await isWatched(by: chat) }
        #expect(!token.isInvalidated)
        await chat.disconnect()
    }

    @Test("ST-10 a member who loses the right to watch and gets it back, by a role that doesn't let them read, watches again")
    func rightReturns() async throws {
        let server = server()
        let chat = try await server.connectedInGeneral()
        let token = chat.channel("general").watching()
        try await until { chat.driver.signals.isWatched("general") }
        door.set(isOpen: false)
        try await server.send(permit([.channelRead], at: 4))
        try await server.send(UnwatchedFrame(unwatched: .init(channel: "general")))
        // It is asked once more, and refuses.
        try await until { await count("channel.watch", at: server) == 2 }
        try await until { await !isWatched(by: chat) }
        door.set(isOpen: true)
        try await server.send(permit([.channelRead, .channelWatch], at: 5))
        try await until { chat.driver.signals.isWatched("general") }
        #expect(await count("channel.watch", at: server) == 3)
        token.invalidate()
        await chat.disconnect()
    }

    @Test("R08 permissions that arrive with the first answer are no reason to watch once more")
    func sparing() async throws {
        let server = server()
        let chat = try await server.connectedInGeneral()
        let answer = ChannelAnswer(of: "general", chat.driver, needing: .channelWatch)
        let store = try await chat.driver.files().store
        try await answer.ask()
        let steps: [(permissions: [Permission], isRegained: Bool)] = [
            ([.channelRead, .channelWatch], false), ([.channelRead], false), ([.channelRead, .channelWatch], true),
        ]
        for (permissions, isRegained) in steps {
            let own = Capabilities.Own(permissions: permissions, userSeq: 1, channelSeq: 3)
            try await store.write([.capabilities("general", own)])
            #expect(await answer.hasChannelRestarted() == isRegained)
        }
        await chat.disconnect()
    }
}
