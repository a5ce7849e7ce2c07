import RoostAPI
import Synchronization
import Testing

@testable import Roost

/// What only the server knows of a channel, when the user leaves it and returns during the connection.
@MainActor @Suite("Live objects: coming back to a channel", .timeLimit(.minutes(5)))
struct ChannelAnswerTests {
    private nonisolated static let refusal = RoostError(.notMember, "It is for members.")

    /// The users in the channel, according to the server; nil while the user isn't a member.
    private final class People: Sendable {
        private let users = Mutex<[UserID]?>(["ann", "cid"])
        var all: [UserID]? { users.withLock { $0 } }
        func set(_ all: [UserID]?) { users.withLock { $0 = all } }
    }

    private nonisolated static func answer(_ call: ScriptedServer.Call, _ people: People) -> ScriptedServer.Answer {
        guard let users = people.all else { return .error(Self.refusal) }
        let time = Timestamp(milliseconds: 0)
        switch call.operation {
        case "member.list":
            let members = users.map {
                Member(userId: $0, role: .member, state: .member, joinedAt: time, joinedSeq: 1, changeSeq: 1)
            }
            return .result(Page(items: members.map { MemberEntry(member: $0, isOnline: true) }))
        case "channel.listWatchers":
            return .result(WatcherPage(watchers: users.map { UserSummary(userId: $0) }, watcherCount: users.count))
        case "reading.listReaders": return .result(Page(items: users.map { ReadPosition(userId: $0, readSeq: 3) }))
        case "channel.watch":
            return .result(
                WatchedChannel(
                    config: ChannelPolicy.presets[0], channel: channel(counters(3, messages: 0)), online: users.count,
                    watcherCount: 1,
                    watchers: [:], members: [:], read: [:],
                    messages: MessagePage(messages: [], hasOlder: false, hasNewer: false, seq: 3), ownCapabilities: []))
        default: return .error(.notFound("operation"))
        }
    }

    private func membership(_ state: MembershipState, since seq: Seq, userSeq: Seq) -> Membership {
        var membership = RoostTests.membership(readSeq: seq, readCount: 0, state: state, channelSeq: seq, userSeq: userSeq)
        membership.joinedSeq = seq
        return membership
    }

    private func joined(_ seq: Seq, userSeq: Seq) -> Event {
        mine(
            userSeq, .memberJoined, membership(.member, since: seq, userSeq: userSeq), channel: channel(counters(seq, messages: 0)))
    }

    private func removed(_ seq: Seq, userSeq: Seq) -> Event {
        mine(userSeq, .memberRemoved, membership(.none, since: seq, userSeq: userSeq))
    }

    /// The channel's policy changes, and with it what all members may do.
    private func permit(_ permissions: [Permission], at seq: Seq) -> Event {
        var rows = Rows(channel: channel(counters(seq, messages: 0)))
        rows.capabilities = [ChannelRole.member.rawValue: permissions]
        return Event(kind: .channelUpdated, stream: .channel("general"), seq: seq, actor: "bob", rows: rows)
    }

    /// The contents of a screen of the channel's members.
    private struct Screen {
        let members: MemberList
        let receipts: LiveReceipts
        let presence: LivePresence

        @MainActor init(of chat: Chat) {
            let channel = chat.channel("general")
            (members, receipts, presence) = (channel.members(), channel.receipts(), channel.presence())
        }

        @MainActor func shows(_ users: [UserID]) -> Bool {
            members.items.map(\.id) == users && Set(receipts.positions.keys) == Set(users) && presence.onlineCount == users.count
                && phases == [.loaded, .loaded, .loaded]
        }

        @MainActor var phases: [LivePhase] { [members.phase, receipts.phase, presence.phase] }
    }

    private func connected(_ server: ScriptedServer) async throws -> Chat {
        let chat = try await server.connected()
        try await server.send(joined(3, userSeq: 1))
        return chat
    }

    @Test("AM-39 SB-63 a user who is removed and added again sees the changes of members meanwhile, and who is online from then on")
    func backAtOnce() async throws {
        let people = People()
        let server = ScriptedServer { Self.answer($0, people) }
        let chat = try await connected(server)
        let screen = Screen(of: chat)
        try await until { screen.shows(["ann", "cid"]) }
        // The channel continues without the user: dan joins, and cid leaves.
        people.set(["ann", "dan"])
        try await server.send(removed(4, userSeq: 2))
        try await server.send(joined(8, userSeq: 3))
        try await until { screen.shows(["ann", "dan"]) }
        // It watches again.
        try await until { await chat.driver.machine?.watches.holders.values.map(\.self) == ["general"] }
        await chat.disconnect()
    }

    @Test("AM-39 SB-63 for a former member nothing of a channel is available, until they are back")
    func away() async throws {
        let people = People()
        let server = ScriptedServer { Self.answer($0, people) }
        let chat = try await connected(server)
        let screen = Screen(of: chat)
        try await until { screen.shows(["ann", "cid"]) }
        people.set(nil)
        try await server.send(removed(4, userSeq: 2))
        try await until { screen.phases.allSatisfy { $0 == .refused(Self.refusal) } }
        people.set(["ann", "dan"])
        try await server.send(joined(8, userSeq: 3))
        try await until { screen.shows(["ann", "dan"]) }
        await chat.disconnect()
    }

    @Test("AM-39 ST-14 changes between the pages of a list and the beginning of the watch are requested")
    func watchBegins() async throws {
        let people = People()
        let server = ScriptedServer { Self.answer($0, people) }
        let chat = try await connected(server)
        let channel = chat.channel("general")
        let (members, watchers) = (channel.members(), channel.watchers())
        try await members.loaded()
        try await watchers.loaded()
        people.set(["ann", "dan"])
        try await channel.watch()
        try await until { members.items.map(\.id) == ["ann", "dan"] && watchers.items.map(\.userId) == ["ann", "dan"] }
        // In a large channel, readers before the watch aren't reported.
        let receipts = channel.receipts()
        try await receipts.loaded()
        #expect(Set(receipts.positions.keys) == ["ann", "dan"])
        // The same for a live object's watch.
        people.set(["ann", "eve"])
        let presence = channel.presence()
        try await presence.loaded()
        try await until { members.items.map(\.id) == ["ann", "eve"] && watchers.items.map(\.userId) == ["ann", "eve"] }
        try await until { Set(receipts.positions.keys) == ["ann", "eve"] }
        await chat.disconnect()
    }

    @Test("SB-63 if the server ends the watch of a channel, the number of online members isn't shown as current")
    func unwatched() async throws {
        let people = People()
        let server = ScriptedServer { Self.answer($0, people) }
        let chat = try await connected(server)
        let presence = chat.channel("general").presence()
        try await presence.loaded()
        people.set(nil)
        try await server.send(UnwatchedFrame(unwatched: .init(channel: "general")))
        try await until { presence.phase == .refused(Self.refusal) }
        await chat.disconnect()
    }

    @Test("SB-63 R26 data refused for lack of the right to read returns as soon as the right does, without another event")
    func rightReturns() async throws {
        let people = People()
        let server = ScriptedServer { Self.answer($0, people) }
        let chat = try await connected(server)
        let screen = Screen(of: chat)
        try await until { screen.shows(["ann", "cid"]) }
        people.set(nil)
        try await server.send(permit([.channelRead], at: 4))
        try await server.send(UnwatchedFrame(unwatched: .init(channel: "general")))
        try await until { screen.presence.phase == .refused(Self.refusal) }
        people.set(["ann", "dan"])
        // A user who may read again fetches the channel again.
        let rows = Rows(channel: channel(counters(5, messages: 0)), [membership(.member, since: 3, userSeq: 1)])
        await server.resume(with: [Changes(stream: .channel("general"), rows: rows, seq: 5, hasMore: false, isFresh: true)])
        try await server.send(permit([.channelRead, .historyRead, .channelWatch], at: 5))
        try await until { screen.shows(["ann", "dan"]) }
        await chat.disconnect()
    }

    @Test("SB-63 ST-14 who is online and who watches is shown again to a member whose role lets them watch, but not read")
    func rightToWatchReturns() async throws {
        let people = People()
        let server = ScriptedServer { Self.answer($0, people) }
        let chat = try await connected(server)
        let (presence, watchers) = (chat.channel("general").presence(), chat.channel("general").watchers())
        try await presence.loaded()
        try await watchers.loaded()
        people.set(nil)
        try await server.send(permit([.channelRead], at: 4))
        try await server.send(UnwatchedFrame(unwatched: .init(channel: "general")))
        try await until { presence.phase == .refused(Self.refusal) && watchers.phase == .refused(Self.refusal) }
        people.set(["ann", "dan"])
        try await server.send(permit([.channelRead, .channelWatch], at: 5))
        try await until { presence.phase == .loaded && presence.onlineCount == 2 }
        try await until { watchers.phase == .loaded && watchers.items.map(\.userId) == ["ann", "dan"] }
        await chat.disconnect()
    }

    @Test("R08 unless a channel was fetched again, the server isn't asked again, and once for several reasons")
    func sparing() async throws {
        let people = People()
        let server = ScriptedServer { Self.answer($0, people) }
        let chat = try await connected(server)
        let (answer, store) = (ChannelAnswer(of: "general", chat.driver), try await chat.driver.files().store)
        for await view in chat.channel("general").updates where view != nil { break }
        #expect(await !answer.hasChannelRestarted())
        try await answer.ask()
        #expect(await !answer.hasChannelRestarted() && !answer.isOutdated)
        try await server.send(sent(message(4, "hi"), messages: 1))
        for await view in chat.channel("general").updates where view?.channel.counters.seq == 4 { break }
        #expect(await !answer.hasChannelRestarted())
        // As with a hole: the same membership.
        try await store.write([.forget("general")])
        #expect(await answer.hasChannelRestarted())
        answer.markOutdated()
        #expect(answer.isOutdated)
        try await answer.ask()
        #expect(await !answer.hasChannelRestarted() && !answer.isOutdated)
        try await store.write([.leave("general")])
        #expect(await answer.hasChannelRestarted())
        await chat.disconnect()
    }
}
