import Foundation
import Logging
import RoostAPI
import Testing

@testable import Roost

/// The screen after a log-out: nothing of the user's may stay on it.
@MainActor @Suite("Store: lists after logging out", .timeLimit(.minutes(5)))
struct LogOutListTests {
    private nonisolated static let time = Timestamp(milliseconds: 0)
    private nonisolated static let view = ChannelView(
        channel: RoostTests.channel(counters(3, messages: 0)),
        membership: membership(readSeq: 3, readCount: 0, channelSeq: 3, userSeq: 1))
    private nonisolated static let entry = MemberEntry(
        member: Member(userId: "bob", role: .member, state: .member, joinedAt: time, joinedSeq: 1, changeSeq: 1), isOnline: true)

    /// Answers the requests of all lists that only the server can fill.
    nonisolated static func answer(to call: ScriptedServer.Call) -> ScriptedServer.Answer {
        switch call.operation {
        case "channel.query": .result(Page(items: [view], nextCursor: "more"))
        case "member.list", "member.search": .result(Page(items: [entry], nextCursor: "more"))
        case "channel.listWatchers": .result(WatcherPage(watchers: [UserSummary(userId: "bob")], watcherCount: 5))
        case "reading.listReaders": .result(Page(items: [ReadPosition(userId: "bob", readSeq: 3)]))
        case "channel.watch":
            .result(
                WatchedChannel(
                    config: ChannelPolicy.presets[0], channel: view.channel, online: 7, watcherCount: 5, watchers: [:],
                    members: [:], read: [:],
                    messages: MessagePage(messages: [], hasOlder: false, hasNewer: false, seq: 3), ownCapabilities: []))
        default: .error(.notFound("operation"))
        }
    }

    /// The lists that only the server can fill.
    private struct Lists {
        let (members, search): (MemberList, MemberList)
        let (watchers, receipts, presence): (WatcherList, LiveReceipts, LivePresence)
        let channels: ChannelList

        @MainActor init(of chat: Chat) {
            let channel = chat.channel("general")
            (members, search) = (channel.members(), channel.searchMembers("b"))
            // A full page: one that isn't would be the last.
            (watchers, receipts, presence) = (channel.watchers(pageSize: 1), channel.receipts(), channel.presence())
            channels = chat.channels(matching: ChannelQuery(membership: .all))
        }

        @MainActor func loaded() async throws {
            try await members.loaded()
            try await search.loaded()
            try await watchers.loaded()
            try await receipts.loaded()
            try await presence.loaded()
            try await channels.loaded()
        }

        /// The number of items of each of them.
        @MainActor var counts: [Int] {
            [
                members.items.count, search.items.count, watchers.items.count, watchers.watcherCount, receipts.positions.count,
                presence.onlineCount, channels.items.count,
            ]
        }

        @MainActor var phases: [LivePhase] {
            [members.phase, search.phase, watchers.phase, receipts.phase, presence.phase, channels.phase]
        }

        @MainActor var haveMore: [Bool] { [members.hasMore, search.hasMore, watchers.hasMore, channels.hasMore] }
    }

    private func chat(_ server: ScriptedServer) -> Chat {
        let configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, transport: server)
        return Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
    }

    @Test("lists from the server are empty and loaded after a log-out, as those from the store are, and stay so")
    func empty() async throws {
        let server = ScriptedServer { Self.answer(to: $0) }
        let chat = chat(server)
        try await chat.connect()
        let (lists, own) = (Lists(of: chat), chat.channels())
        try await lists.loaded()
        try await own.loaded()
        #expect(lists.counts == [1, 1, 1, 5, 1, 7, 1] && lists.haveMore == [true, true, true, true])
        var updates: [ListUpdate<MemberItem>] = []
        let token = lists.members.observe { updates.append($0) }
        try await chat.logOut()
        try await until { lists.counts.allSatisfy { $0 == 0 } }
        #expect(updates.last?.removed == [0] && updates.last?.items.isEmpty == true)
        token.invalidate()
        // Earlier signals and pending requests change nothing now.
        chat.driver.signals.send(
            .signal(
                Signal(
                    kind: .watchingChanged, channel: "general",
                    watching: WatcherChange(watcherCount: 1, started: ["cat"], stopped: [], isWhole: false))))
        await letOthersRun()
        #expect(lists.counts.allSatisfy { $0 == 0 } && lists.haveMore == [false, false, false, false])
        try await until { (lists.phases + [own.phase]).allSatisfy { $0 == .loaded } }
        #expect(lists.members.presenceAsOf == nil)
        try await lists.members.loadMore()
        try await lists.watchers.loadMore()
        try await lists.channels.loadMore()

        // A list that is made now shows the same.
        let late = Lists(of: chat)
        try await late.loaded()
        #expect(late.counts.allSatisfy { $0 == 0 } && late.phases.allSatisfy { $0 == .loaded })
        // New requests are refused, as calls are.
        late.channels.query = ChannelQuery(membership: .notMember)
        let error = await #expect(throws: RoostError.self) { try await late.channels.loaded() }
        #expect(error?.code == .unauthenticated)
    }

    @Test("a list whose answer is in flight when the user logs out is empty and loaded too, and no wait for it is left")
    func inFlight() async throws {
        let server = ScriptedServer { _ in .nothing }
        let chat = chat(server)
        try await chat.connect()
        let lists = Lists(of: chat)
        let waiting = Task { try await lists.members.loaded() }
        try await until { await chat.driver.replies.count >= 6 }
        try await chat.logOut()
        try await until { lists.phases.allSatisfy { $0 == .loaded } }
        #expect(lists.counts.allSatisfy { $0 == 0 })
        // It may have been notified of the end of the connection, or of the session, before.
        _ = await waiting.result
    }

    @Test("a list whose query a limit refuses shows nothing of the previous one once the user has logged out")
    func refusedQuery() async throws {
        let chat = chat(ScriptedServer { Self.answer(to: $0) })
        try await chat.connect()
        let list = chat.channels(matching: ChannelQuery(membership: .all))
        try await list.loaded()
        list.query.nameContains = ""
        #expect(list.items.count == 1 && list.phase.error != nil)
        try await chat.logOut()
        try await until { list.items.isEmpty && list.phase == .loaded }
        #expect(!list.hasMore)
    }

    @Test("the rest of a discarded outbox isn't shown after the log-out, nor where a list of messages began")
    func ownMessages() async throws {
        let directory = URL.temporaryDirectory.appending(component: "roost-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        let configuration = Chat.Configuration(
            storage: .directory(directory), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, transport: TinyServer()
        )
        let chat = Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
        try await chat.connect()
        let messages = chat.channel("general").messages(around: .firstUnread)
        let refused = chat.channel("general").messages(around: .message(MessageID(rawValue: 99)))
        let dated = chat.channel("general").messages(around: .time(Timestamp(milliseconds: 0)))
        try await messages.loaded()
        try await dated.loaded()
        await chat.disconnect()
        try await chat.channel("general").send("unsent")
        try await until { chat.outbox.entries.count == 1 && messages.items.last?.text == "unsent" }
        #expect(messages.firstUnread != nil && dated.anchorItem != nil)
        try await chat.logOut(discardingUnsent: true)
        try await until { chat.outbox.entries.isEmpty && messages.items.isEmpty && messages.firstUnread == nil }
        try await until { messages.phase == .loaded && refused.phase == .loaded }
        try await until { dated.items.isEmpty && dated.anchorItem == nil }
    }
}
