import Foundation
import Logging
import RoostAPI
import Synchronization
import Testing

@testable import Roost

@MainActor @Suite("Live objects: phases", .timeLimit(.minutes(5)))
struct LivePhaseTests {
    private struct Unreadable: Error {}

    private func chat(_ transport: any Transport = TinyServer(), directory: URL? = nil) -> Chat {
        var configuration = Chat.Configuration(
            storage: directory.map(Chat.Storage.directory) ?? .inMemory,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = transport
        configuration.backoff = .milliseconds(1)...(.milliseconds(1))
        return Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
    }

    @Test("a live object begins as loading, and is loaded once the store was read: nil and empty mean something then")
    func loaded() async throws {
        let chat = chat()
        let channel = chat.channel("general")
        let (list, invitations) = (chat.channels(), chat.invitations())
        let phases = { [channel.phase, list.phase, invitations.phase, chat.preferences.phase, chat.unread.phase] }
        #expect(phases().allSatisfy { $0 == .loading })
        try await channel.loaded()
        try await list.loaded()
        try await invitations.loaded()
        try await chat.preferences.loaded()
        try await chat.unread.loaded()
        #expect(phases().allSatisfy { $0 == .loaded })
        #expect(channel.channel == nil && list.items.isEmpty)
        // For messages, nothing is known before the first connection.
        let messages = channel.messages()
        try await until { messages.phase != .loading }
        #expect(messages.phase.error?.code == .notConnected && messages.items.isEmpty)
    }

    @Test("SB-02 typing users are loaded once the store was read, without a connection, and observers aren't called before")
    func typingUsers() async throws {
        let typing = chat().channel("general").typing()
        var reported: [[UserSummary]] = []
        let token = typing.observe { reported.append($0) }
        #expect(typing.phase == .loading && reported.isEmpty)
        try await typing.loaded()
        #expect(typing.phase == .loaded && reported == [[]])
        token.invalidate()
    }

    /// What an observer of a live object sees in its first callback, and what an observer gets that is added inside that callback.
    @MainActor private final class FirstCallback {
        let name: String
        private(set) var phase: LivePhase?
        private(set) var value = ""
        private(set) var reportedInside: [String] = []
        private var tokens: [ObservationToken] = []

        init<Value: Sendable>(
            _ name: String, _ phase: @escaping @MainActor () -> LivePhase,
            _ observe: @escaping @MainActor (@escaping @MainActor (Value) -> Void) -> ObservationToken
        ) {
            self.name = name
            let token = observe { [weak self] value in
                guard let self, self.phase == nil else { return }
                self.phase = phase()
                self.value = "\(value)"
                let inner = observe { [weak self] inside in self?.reportedInside.append("\(inside)") }
                self.tokens.append(inner)
            }
            tokens.append(token)
        }
    }

    /// The names of those that weren't loaded in their first callback, or didn't call an observer added then.
    private func wrong(among callbacks: [FirstCallback]) async throws -> [String] {
        try await until { callbacks.allSatisfy { $0.phase != nil } }
        return callbacks.filter { $0.phase != .loaded || $0.reportedInside != [$0.value] }.map(\.name)
    }

    @Test("AM-29 a live object is loaded at its first callback, and an observer added then is called at once, and once")
    func firstCallbacks() async throws {
        let chat = chat()
        let channel = chat.channel("general")
        let (list, drafts, invitations) = (chat.channels(), chat.drafts(), chat.invitations())
        let (draft, typing, user) = (channel.draft(), channel.typing(), chat.user("bob"))
        let (unread, outbox, preferences) = (chat.unread, chat.outbox, chat.preferences)
        let stored: [FirstCallback] = [
            FirstCallback("channel", { channel.phase }, channel.observe),
            FirstCallback("channels", { list.phase }, list.observe),
            FirstCallback("drafts", { drafts.phase }, drafts.observe),
            FirstCallback("invitations", { invitations.phase }, invitations.observe),
            FirstCallback("draft", { draft.phase }, draft.observe),
            FirstCallback("typing", { typing.phase }, typing.observe),
            FirstCallback("user", { user.phase }, user.observe),
            FirstCallback("unread", { unread.phase }, unread.observe),
            FirstCallback("outbox", { outbox.phase }, outbox.observe),
            FirstCallback("preferences", { preferences.phase }, preferences.observe),
        ]
        #expect(try await wrong(among: stored) == [])
        try await chat.connect()
        let messages = channel.messages()
        let shown = FirstCallback("messages", { messages.phase }, messages.observe)
        #expect(try await wrong(among: [shown]) == [])
        await chat.disconnect()
    }

    @Test("AM-29 R08 a live object that the server answers is loaded at its first callback, and observed from then on")
    func firstAnswers() async throws {
        let chat = chat(ScriptedServer { LogOutListTests.answer(to: $0) })
        try await chat.connect()
        let channel = chat.channel("general")
        let (members, watchers) = (channel.members(), channel.watchers())
        let (receipts, presence) = (channel.receipts(), channel.presence())
        let list = chat.channels(matching: ChannelQuery(membership: .all))
        let answered: [FirstCallback] = [
            FirstCallback("members", { members.phase }, members.observe),
            FirstCallback("watchers", { watchers.phase }, watchers.observe),
            FirstCallback("receipts", { receipts.phase }, receipts.observe),
            FirstCallback("presence", { presence.phase }, presence.observe),
            FirstCallback("channels", { list.phase }, list.observe),
        ]
        #expect(try await wrong(among: answered) == [])
        await chat.disconnect()
    }

    @Test(
        "AM-29 AM-44 SB-23 a list of channels calls back when its total follows its rows, and when another query has the same rows")
    func toldOnceLoaded() async throws {
        let chat = chat()
        try await chat.connect()
        // For a paged list, the first rows arrive before the total.
        let list = chat.channels(matching: ChannelQuery())
        var phases: [LivePhase] = []
        var totals: [Int] = []
        let token = list.observe { _ in
            phases.append(list.phase)
            totals.append(list.totalUnreadCount)
        }
        try await until { list.totalUnreadCount == 1 }
        #expect(phases.last == .loaded && totals.last == 1)
        let count = phases.count
        list.query = ChannelQuery(hidden: .all)
        try await list.loaded()
        #expect(list.items.map(\.id) == ["general"] && phases.dropFirst(count).last == .loaded)
        token.invalidate()
        await chat.disconnect()
    }

    @Test("a wait for messages that only the server has ends with an error when no connection can be made")
    func unreachable() async throws {
        let chat = chat(Unreachable())
        let messages = chat.channel("general").messages()
        chat.start()
        let error = await #expect(throws: RoostError.self) { try await messages.loaded() }
        #expect(error?.code == .notConnected && error?.message.contains("no way") == true)
        await chat.disconnect()
    }

    private struct Unreachable: Transport {
        func run(
            url: URL, outgoing: AsyncStream<TransportCommand>, receive: @escaping @Sendable (TransportEvent) async -> Void
        ) async {
            await receive(.closed(code: nil, reason: "no way"))
        }
    }

    @Test("AM-26 AM-27 a channel that was joined or fetched is available when the call returns")
    func fullWhenHandedOver() async throws {
        let at = Timestamp(milliseconds: 0)
        let counters = ChannelCounters(seq: 3, memberCount: 2, messageCount: 0, lastActivity: at)
        let view = ChannelView(
            channel: Channel(
                channelId: "general", type: .community, counters: counters, createdBy: "bob", createdAt: at, updatedAt: at),
            membership: Membership(
                channelId: "general", role: .member, state: .member, joinedAt: at, joinedSeq: 1, readSeq: 3, readCount: 0,
                channelSeq: 3, userSeq: 1))
        var seen = view
        seen.membership = nil
        let unjoined = seen
        let chat = chat(ScriptedServer { call in .result(call.operation == "channel.get" ? unjoined : view) })
        try await chat.connect()
        #expect(try await chat.getChannel("general").channel == view.channel)
        let joined = try await chat.joinChannel("general")
        #expect(joined.phase == .loaded && joined.currentUserMembership == .member)
        #expect(try await chat.createChannel(displayName: "General").channel?.channelId == "general")
        await chat.disconnect()
    }

    @Test("work that fails reports how: a refusal ends with the next answer, an unreadable store with the next successful read")
    func outcomes() async throws {
        let follower = Follower(chat().driver)
        let refusal = RoostError(.notPermitted, "No.")
        await follower.work { throw RoostError(.notConnected, "Later.") }
        #expect(follower.phase == .loading)
        await follower.work { throw refusal }
        #expect(follower.phase == .refused(refusal) && follower.phase.error == refusal)
        await follower.work(isQuery: false) {}
        #expect(follower.phase == .refused(refusal))
        await follower.work {}
        #expect(follower.phase == .loading)
        follower.answered()
        #expect(follower.phase == .loaded)
        await follower.work { throw Unreadable() }
        guard case .unavailable(let error) = follower.phase else { throw Missing() }
        #expect(error.code == .storageFailed)
        follower.answered()
        #expect(follower.phase == .unavailable(error))
        await follower.work(isQuery: false) {}
        #expect(follower.phase == .loaded && follower.phase.error == nil)
    }

    private struct Missing: Error {}

    @Test("waiting for an answer ends when it is cancelled, before it began or after")
    func cancelled() async throws {
        let list = chat(ScriptedServer { _ in .error(.notFound("channel")) }).channels(matching: ChannelQuery(membership: .all))
        let early = Task { try await list.loaded() }
        early.cancel()
        await #expect(throws: CancellationError.self) { try await early.value }
        let late = Task { try await list.loaded() }
        // The chat was never connected: the list says so, and continues to wait.
        try await until { list.phase != .loading }
        #expect(list.phase.error?.code == .notConnected)
        late.cancel()
        await #expect(throws: CancellationError.self) { try await late.value }
    }

    @Test("if this device's files can't be opened, live objects and the connection say so, and continue once they can")
    func files() async throws {
        let directory = URL.temporaryDirectory.appending(component: "roost-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        // A file is in the place of the directory.
        try Data().write(to: directory)
        let chat = chat(directory: directory)
        let list = chat.channels()
        let error = await #expect(throws: RoostError.self) { try await list.loaded() }
        #expect(error?.code == .storageFailed && list.phase.error == error)
        let typing = chat.channel("general").typing()
        let unopened = await #expect(throws: RoostError.self) { try await typing.loaded() }
        #expect(unopened?.code == .storageFailed && typing.phase.error == unopened)
        chat.start()
        for await status in chat.connection.updates { if case .failed = status { break } }
        let refused = await #expect(throws: RoostError.self) { try await chat.connect() }
        #expect(refused?.code == .storageFailed)
        await chat.disconnect()
        for await status in chat.connection.updates where status == .offline { break }

        try FileManager.default.removeItem(at: directory)
        try await chat.connect()
        // The files are open, and the list has yet to notice.
        try await list.loaded()
        for await update in list.updates where !update.items.isEmpty { break }
        try await typing.loaded()
        #expect(list.phase == .loaded && typing.phase == .loaded)
        await chat.disconnect()
    }

    @Test(
        "SB-23 AM-33 a live list accepts another query: its rows stay until the new ones are there, and observers get the difference"
    )
    func anotherQuery() async throws {
        let chat = chat()
        try await chat.connect()
        let list = chat.channels()
        try await list.loaded()
        var updates: [ListUpdate<ChannelItem>] = []
        let token = list.observe { updates.append($0) }
        for await update in list.updates where !update.items.isEmpty { break }
        let count = updates.count

        list.query = ChannelQuery(hidden: .hiddenOnly)
        #expect(list.phase == .loading && list.items.map(\.id) == ["general"])
        try await list.loaded()
        #expect(list.items.isEmpty)
        #expect(updates.count == count + 1 && updates.last?.removed == [0])

        var wrong = ChannelQuery()
        wrong.nameContains = ""
        list.query = wrong
        #expect(list.phase.error?.field == "nameContains")

        list.query = ChannelQuery()
        try await list.loaded()
        #expect(list.items.map(\.id) == ["general"] && updates.last?.inserted == [0])
        // The same query isn't a change.
        list.query = ChannelQuery()
        #expect(list.phase == .loaded)
        token.invalidate()
        await chat.disconnect()
    }

    @Test("SB-23 a list with a new query doesn't wait for the server's answer to the former one, which is cancelled")
    func unansweredQuery() async throws {
        let server = ScriptedServer { _ in .nothing }
        var configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, transport: server)
        configuration.clock = ManualClock()
        let chat = Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
        try await chat.connect()
        let list = chat.channels(matching: ChannelQuery(membership: .all))
        try await until { await server.operations().contains("channel.query") }
        list.query = ChannelQuery(membership: .all, nameContains: "a")
        try await until { await server.operations().count { $0 == "channel.query" } == 2 }
        list.query = ChannelQuery()
        try await until { list.phase == .loaded }
        try await until { await chat.driver.machine?.calls.isEmpty == true }
        await chat.disconnect()
    }

    @Test("the outcome of a former query says nothing of the next one: neither its answer nor its refusal")
    func formerQuery() async throws {
        let (gate, opening) = AsyncStream.makeStream(of: Void.self)
        let refusal = RoostError(.notPermitted, "No.")
        let server = ScriptedServer { call in
            guard call.operation == "channel.query", case .object(let fields) = call.with else {
                return .error(.notFound("operation"))
            }
            let answer: ScriptedServer.Answer =
                fields["nameContains"] == .string("old") ? .error(refusal) : .result(Page<ChannelView>(items: []))
            return .held(until: gate, answer)
        }
        let chat = chat(server)
        try await chat.connect()
        let cleared = chat.channels(matching: ChannelQuery(membership: .all))
        try await until { await server.operations().contains("channel.query") }
        cleared.query.nameContains = ""
        #expect(cleared.phase.error?.field == "nameContains")
        let asked = await chat.driver.machine?.lastCall ?? 0
        let changed = chat.channels(matching: ChannelQuery(membership: .all, nameContains: "old"))
        // The server answers nothing before the first request: the second one is in flight too.
        try await until { await chat.driver.machine?.lastCall ?? 0 > asked }
        changed.query.nameContains = "new"
        #expect(changed.phase == .loading)

        opening.finish()
        try await changed.loaded()
        #expect(changed.phase == .loaded)
        await letOthersRun()
        try #require(cleared.phase.error?.field == "nameContains")
        let error = await #expect(throws: RoostError.self) { try await cleared.loaded() }
        #expect(error?.field == "nameContains")
        await chat.disconnect()
    }
}
