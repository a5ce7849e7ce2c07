import RoostAPI
import Testing

@testable import Roost

/// Pages of lists that only the server has.
@MainActor @Suite("Live lists: pages that nobody waits for", .timeLimit(.minutes(5)))
struct CancelledPageTests {
    enum Kind: String, CaseIterable, Sendable {
        case members = "member.list"
        case watchers = "channel.listWatchers"
        case channels = "channel.query"

        /// How often the server is asked until the list is loaded. Of watchers, those who came last are asked for too.
        var firstCount: Int { self == .watchers ? 2 : 1 }

        /// A page with one row, and with more behind it.
        var page: ScriptedServer.Answer {
            let member = Member(
                userId: "bob", role: .member, state: .member, joinedAt: Timestamp(milliseconds: 0), joinedSeq: 1, changeSeq: 1)
            switch self {
            case .members: return .result(Page(items: [MemberEntry(member: member, isOnline: true)], nextCursor: "more"))
            case .watchers: return .result(WatcherPage(watchers: [UserSummary(userId: "bob")], watcherCount: 5))
            case .channels:
                let view = ChannelView(channel: channel(counters(3, messages: 0)), membership: nil)
                return .result(Page(items: [view], nextCursor: "more"))
            }
        }
    }

    /// Makes a list with one row on each page, and returns how it loads another page.
    private func loadedList(of kind: Kind, _ chat: Chat) async throws -> @MainActor () async throws -> Void {
        switch kind {
        case .members:
            let list = chat.channel("general").members(pageSize: 1)
            try await list.loaded()
            return { try await list.loadMore() }
        case .watchers:
            let list = chat.channel("general").watchers(pageSize: 1)
            try await list.loaded()
            return { try await list.loadMore() }
        case .channels:
            let list = chat.channels(matching: ChannelQuery(membership: .all), pageSize: 1)
            try await list.loaded()
            return { try await list.loadMore() }
        }
    }

    @Test(
        "AM-29 A page whose caller is cancelled isn't waited for, and the next one is asked for; it was, until the server answered",
        arguments: Kind.allCases)
    func cancelled(kind: Kind) async throws {
        let turn = Turn()
        let server = ScriptedServer { call in
            guard call.operation == kind.rawValue else { return .nothing }
            return turn.next() == kind.firstCount ? .nothing : kind.page
        }
        let chat = try await server.connected()
        let loadMore = try await loadedList(of: kind, chat)
        func askedCount() async -> Int { await server.operations().count { $0 == kind.rawValue } }
        #expect(await askedCount() == kind.firstCount)
        let loading = Task { try await loadMore() }
        try await until { await askedCount() == kind.firstCount + 1 }
        loading.cancel()
        await #expect(throws: CancellationError.self) { try await loading.value }
        try await loadMore()
        #expect(await askedCount() == kind.firstCount + 2)
        await chat.disconnect()
    }
}
