import Foundation
import Logging
import RoostAPI
import Synchronization
import Testing

@testable import Roost

/// Lists from the server of channels that this device follows: the store has the data for most filters.
@MainActor @Suite("Channels: filters of lists from the server", .timeLimit(.minutes(5)))
struct ServerFilterTests {
    private let clock = ManualClock()
    /// The server's answer to `channel.query`.
    private let page = ListedPage()
    nonisolated private static let seen = membership(readSeq: 3, readCount: 2, channelSeq: 3, userSeq: 1)

    /// A filter that `general` matches until a change, and again after another one.
    struct Filter: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let query: ChannelQuery
        let away: [StoreWrite]
        let back: [StoreWrite]
    }

    nonisolated private static func general(_ change: (inout Channel) -> Void = { _ in }) -> Channel {
        var channel = channel(counters(3, messages: 2))
        (channel.displayName, channel.tags) = ("Rome", ["travel"])
        change(&channel)
        return channel
    }

    nonisolated private static func reading(_ readCount: Int, _ hidden: HiddenState = .unhidden, userSeq: Seq) -> StoreWrite {
        var changed = membership(readSeq: 3, readCount: readCount, hidden: hidden, channelSeq: 3, userSeq: userSeq)
        changed.hiddenOrdinal = 2
        return .membership(changed)
    }

    nonisolated static let filters: [Filter] = {
        let message = StoreWrite.counters("general", counters(4, messages: 3))
        var unread = ChannelQuery(includeDeleted: true)
        unread.unreadOnly = true
        let quiet = ChannelQuery(membership: .all, includeFrozen: false)
        return [
            Filter(
                testDescription: "hidden until a message", query: ChannelQuery(includeDeleted: true),
                away: [reading(2, .hiddenAllowAutoUnhide, userSeq: 2)], back: [message]),
            Filter(
                testDescription: "archived", query: ChannelQuery(includeDeleted: true),
                away: [reading(2, .hiddenPreventAutoUnhide, userSeq: 2)], back: [reading(2, userSeq: 3)]),
            Filter(
                testDescription: "hidden ones", query: ChannelQuery(includeDeleted: true, hidden: .hiddenOnly),
                away: [reading(2, userSeq: 3)], back: [reading(2, .hiddenPreventAutoUnhide, userSeq: 4)]),
            Filter(testDescription: "unread", query: unread, away: [reading(2, userSeq: 3)], back: [message]),
            Filter(
                testDescription: "tags", query: ChannelQuery(membership: .all, includingTags: ["travel"]),
                away: [.channel(general { $0.tags = ["food"] })], back: [.channel(general())]),
            Filter(
                testDescription: "name", query: ChannelQuery(membership: .all, nameContains: "rom"),
                away: [.channel(general { $0.displayName = "Oslo" })], back: [.channel(general())]),
            Filter(
                testDescription: "frozen", query: quiet, away: [.channel(general { $0.isFrozen = true })],
                back: [.channel(general())]),
        ]
    }()

    private func chat() async throws -> (chat: Chat, server: ScriptedServer, store: Store) {
        let server = ScriptedServer { [page] call in
            call.operation == "channel.query" ? .result(page.value) : .nothing
        }
        var configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = server
        configuration.clock = clock
        let chat = Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
        try await chat.connect()
        return (chat, server, try await chat.driver.prepare().store)
    }

    /// Has this device follow a channel, and the server return it.
    private func follow(_ channel: Channel, _ membership: Membership = seen, in store: Store) async throws {
        let position = Position(cursor: 3, windowStart: 4, messageCount: 2)
        try await store.write([.channel(channel), .membership(membership), .position(channel.channelId, position)])
        answer([ChannelView(channel: channel, membership: membership)])
    }

    private func answer(_ views: [ChannelView], nextCursor: String? = nil) {
        page.value = Page(items: views, nextCursor: nextCursor)
    }

    /// Whether a list is about to ask the server.
    private var isAboutToAsk: Bool { clock.ends.contains(.milliseconds(clock.timestamp.milliseconds + 250)) }

    /// Waits for a list that is about to ask the server, and lets it.
    private func ask(sourceLocation: SourceLocation = #_sourceLocation) async throws {
        try await until(sourceLocation: sourceLocation) { isAboutToAsk }
        clock.advance(by: .milliseconds(250))
    }

    private func requests(to server: ScriptedServer) async -> Int {
        await server.operations().count { $0 == "channel.query" }
    }

    @Test(
        "AM-33 AM-34 SB-27 SB-30 R08 R09 a list from the server follows each filter of the user's own channels without asking",
        arguments: filters)
    func follows(filter: Filter) async throws {
        let (chat, server, store) = try await chat()
        var first = Self.seen
        if filter.query.hidden == .hiddenOnly { first.hiddenState = .hiddenPreventAutoUnhide }
        if filter.query.unreadOnly == true { first.readCount = 1 }
        try await follow(Self.general(), first, in: store)
        let list = chat.channels(matching: filter.query)
        try await list.loaded()
        #expect(list.items.map(\.id) == ["general"])
        try await store.write(filter.away)
        try await until { list.items.isEmpty }
        try await store.write(filter.back)
        try await until { list.items.map(\.id) == ["general"] }
        await letOthersRun()
        #expect(!isAboutToAsk)
        #expect(await requests(to: server) == 1)
        await chat.disconnect()
    }

    @Test(
        "SB-26 SB-28 SB-30 R08 a channel leaves a list from the server when the user hides it, before the server knows, and returns"
    )
    func hides() async throws {
        let (chat, server, store) = try await chat()
        try await follow(Self.general(), in: store)
        let list = chat.channels(matching: ChannelQuery(includeDeleted: true))
        try await list.loaded()
        let live = chat.channel("general")
        try await live.hide()
        try await until { list.items.isEmpty }
        let late = chat.channels(matching: ChannelQuery(includeDeleted: true))
        try await late.loaded()
        #expect(late.items.isEmpty)
        try await live.unhide()
        try await until { list.items.map(\.id) == ["general"] && late.items.map(\.id) == ["general"] }
        await letOthersRun()
        #expect(!isAboutToAsk)
        #expect(await requests(to: server) == 2)
        await chat.disconnect()
    }

    @Test("AM-34 R08 a followed channel that is deleted stays in a list of deleted ones too, and leaves the others")
    func deleted() async throws {
        let (chat, _, store) = try await chat()
        try await follow(Self.general(), in: store)
        let (all, present) = (
            chat.channels(matching: ChannelQuery(includeDeleted: true)), chat.channels(matching: ChannelQuery(membership: .all))
        )
        try await all.loaded()
        try await present.loaded()
        #expect(all.items.count == 1 && present.items.count == 1)
        try await store.write([.channel(Self.general { $0.deletedAt = Timestamp(milliseconds: 5) })])
        try await until { present.items.isEmpty && all.items.first?.channel.deletedAt != nil }
        await chat.disconnect()
    }

    @Test("SB-23 AM-33 R08 a channel that starts to match is inserted before the last row; beyond it, the server is asked once")
    func places() async throws {
        let (chat, server, store) = try await chat()
        try await follow(Self.general { $0.tags = [] }, in: store)
        var other = channel(counters(1, messages: 0))
        other.channelId = "other"
        let last = ChannelView(channel: other, membership: nil)
        answer([last], nextCursor: "1")
        // Both were created at the same time. The higher id comes first among the newest.
        let (newest, oldest) = (
            chat.channels(matching: ChannelQuery(membership: .all, includingTags: ["travel"]), pageSize: 1),
            chat.channels(matching: ChannelQuery(membership: .all, includingTags: ["travel"], order: .ascending), pageSize: 1)
        )
        try await newest.loaded()
        try await oldest.loaded()
        #expect(newest.items.map(\.id) == ["other"] && oldest.items.map(\.id) == ["other"])
        #expect(await requests(to: server) == 2)
        try await store.write([.channel(Self.general())])
        try await until { oldest.items.map(\.id) == ["general", "other"] }
        try await ask()
        try await until { await requests(to: server) == 3 }
        try await store.write([.counters("general", counters(5, messages: 3))])
        try await until { oldest.items.first?.channel.counters.seq == 5 }
        await letOthersRun()
        #expect(!isAboutToAsk && newest.items.map(\.id) == ["other"])
        #expect(await requests(to: server) == 3)
        await chat.disconnect()
    }

    @Test(
        "SB-27 SB-32 R08 a list by members is requested again when a message brings a hidden channel back"
    )
    func byMembers() async throws {
        let (chat, server, store) = try await chat()
        try await follow(Self.general(), in: store)
        var query = ChannelQuery()
        query.includingUsers = ["bob"]
        let list = chat.channels(matching: query)
        try await list.loaded()
        #expect(list.items.map(\.id) == ["general"])
        try await store.write([Self.reading(2, .hiddenAllowAutoUnhide, userSeq: 2)])
        try await until { list.items.isEmpty }
        // The store knows whether the channel matches the filter again; only the server knows whether it still has the member.
        try await store.write([.counters("general", counters(4, messages: 3))])
        try await ask()
        try await until { list.items.first?.channel.counters.seq == 4 }
        #expect(await requests(to: server) == 2)
        await chat.disconnect()
    }

    @Test("SB-31 SB-32 R08 a list by members isn't requested again when the user reads, but when they leave a channel and return")
    func readsByMembers() async throws {
        let (chat, server, store) = try await chat()
        try await follow(Self.general(), in: store)
        var query = ChannelQuery()
        query.exactUsers = ["bob"]
        let list = chat.channels(matching: query)
        try await list.loaded()
        #expect(list.items.map(\.unreadCount) == [0])
        try await store.write([Self.reading(1, userSeq: 2)])
        try await until { list.items.map(\.unreadCount) == [1] }
        await letOthersRun()
        #expect(!isAboutToAsk)
        #expect(await requests(to: server) == 1)

        // A single change: the list sees a member before and after it. The other members may have changed in between.
        let left = membership(readSeq: 3, readCount: 1, state: .none, channelSeq: 3, userSeq: 3)
        let back = membership(readSeq: 3, readCount: 2, channelSeq: 3, userSeq: 4)
        answer([])
        try await store.write([
            .membership(left), .leave("general"), .forget("general"), .channel(Self.general()), .membership(back),
            .position("general", Position(cursor: 3, windowStart: 4, messageCount: 2)),
        ])
        try await ask()
        try await until { list.items.isEmpty }
        #expect(await requests(to: server) == 2)
        await chat.disconnect()
    }

    @Test("AM-33 R08 a list of all channels is requested again after the user has left one, which they may no longer find")
    func left() async throws {
        let (chat, _, store) = try await chat()
        try await follow(Self.general(), in: store)
        let list = chat.channels(matching: ChannelQuery(membership: .all))
        try await list.loaded()
        #expect(list.items.map(\.id) == ["general"])
        answer([])
        try await chat.channel("general").leave()
        try await until { list.items.first?.membership?.state == MembershipState.none }
        await letOthersRun()
        #expect(!isAboutToAsk)
        let left = membership(readSeq: 3, readCount: 2, state: .none, channelSeq: 3, userSeq: 2)
        try await store.write([.overlay("general", nil), .membership(left), .leave("general")])
        try await ask()
        try await until { list.items.isEmpty }
        await chat.disconnect()
    }
}

/// A page that a test changes while a server answers with it.
private final class ListedPage: Sendable {
    private let page = Mutex(Page<ChannelView>(items: []))

    var value: Page<ChannelView> {
        get { page.withLock { $0 } }
        set { page.withLock { $0 = newValue } }
    }
}
