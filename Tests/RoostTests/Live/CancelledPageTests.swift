import RoostAPI
import TaskSteps
import Testing

@testable import Roost

/// Pages of lists that only the server has.
@MainActor @Suite("Live lists: abandoned pages", .timeLimit(.minutes(5)))
struct CancelledPageTests {
    enum Kind: String, CaseIterable, Sendable {
        case members = "member.list"
        case watchers = "channel.listWatchers"
        case channels = "channel.query"

        /// How often the server is asked until the list is loaded. For watchers, the newest ones are requested too.
        var firstCount: Int { self == .watchers ? 2 : 1 }

        /// A page with one row, and with more after it.
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

    /// A list with one row on each page.
    private struct LoadedList {
        let loadMore: @MainActor @Sendable () async throws -> Void
        /// The ids of its rows.
        let rows: @MainActor @Sendable () -> [String]
    }

    private func loadedList(of kind: Kind, _ chat: Chat) async throws -> LoadedList {
        switch kind {
        case .members:
            let list = chat.channel("general").members(pageSize: 1)
            try await list.loaded()
            return LoadedList(loadMore: { try await list.loadMore() }, rows: { list.items.map(\.id.rawValue) })
        case .watchers:
            let list = chat.channel("general").watchers(pageSize: 1)
            try await list.loaded()
            return LoadedList(loadMore: { try await list.loadMore() }, rows: { list.items.map(\.id.rawValue) })
        case .channels:
            let list = chat.channels(matching: ChannelQuery(membership: .all), pageSize: 1)
            try await list.loaded()
            return LoadedList(loadMore: { try await list.loadMore() }, rows: { list.items.map(\.id.rawValue) })
        }
    }

    @Test(
        "AM-29 a page whose caller is cancelled isn't waited for, and the next one is requested",
        arguments: Kind.allCases)
    func cancelled(kind: Kind) async throws {
        let turn = Turn()
        let server = ScriptedServer { call in
            guard call.operation == kind.rawValue else { return .nothing }
            return turn.next() == kind.firstCount ? .nothing : kind.page
        }
        let chat = try await server.connected()
        let list = try await loadedList(of: kind, chat)
        func askedCount() async -> Int { await server.operations().count { $0 == kind.rawValue } }
        #expect(await askedCount() == kind.firstCount)
        let loading = Task { try await list.loadMore() }
        try await until { await askedCount() == kind.firstCount + 1 }
        loading.cancel()
        await #expect(throws: CancellationError.self) { try await loading.value }
        try await list.loadMore()
        #expect(await askedCount() == kind.firstCount + 2)
        await chat.disconnect()
    }

    // MARK: Cancelled at any wait

    /// Adds rows to an object as a list adds a page: it asks the server, and then changes what is shown in a turn.
    @MainActor
    private final class Shelf {
        private let chat: Chat
        private let follower: Follower
        private(set) var begunCount = 0
        private(set) var addedCount = 0

        init(_ chat: Chat) {
            self.chat = chat
            follower = Follower(chat.driver)
        }

        /// - Parameter steps: Runs the part in the turn.
        func add(on steps: StepExecutor? = nil) async throws {
            try await follower.take(asksServer: true) {
                try await withTaskExecutorPreference(steps) {
                    _ = try await self.chat.me()
                    try await self.follower.turn {
                        self.begunCount += 1
                        _ = try await self.chat.driver.files().store.read { try $0.preferences() }
                        self.addedCount += 1
                    }
                }
            }
        }
    }

    @Test("AM-29 a page whose caller is cancelled at any wait is added as a whole or not at all, and the next one loads")
    func anywhere() async throws {
        let me = User(userId: "ann", createdAt: Timestamp(milliseconds: 0), updatedAt: Timestamp(milliseconds: 0))
        let chat = try await ScriptedServer { $0.operation == "user.me" ? .result(me) : .nothing }.connected()
        let shelf = Shelf(chat)
        let stepCount = try await Moment.withEach { moment in
            let before = shelf.addedCount
            let steps = StepExecutor()
            let caller = Task { try await shelf.add(on: steps) }
            steps.run({ caller.cancel() }, at: moment)
            let ended = await result(of: caller)
            let count = steps.end()
            let added: Int? =
                switch ended {
                case .success?: 1
                case .failure(is CancellationError)? where count != nil: 0
                case .failure?, nil: nil
                }
            #expect(shelf.addedCount - before == added && shelf.begunCount == shelf.addedCount, "\(moment)")
            try await shelf.add()
            return count
        }
        #expect((1..<Moment.stepsMax).contains(stepCount))
        await chat.disconnect()
    }

    /// A page after the rows that the caller has, whose ids are numbers from 0. There is always a next one.
    private nonisolated static func endlessPage(_ call: ScriptedServer.Call) -> ScriptedServer.Answer {
        guard let kind = Kind(rawValue: call.operation), case .object(let fields) = call.with else {
            return .error(.notFound("operation"))
        }
        var (number, limit) = (0, 1)
        if case .string(let cursor)? = fields["cursor"] { number = Int(cursor) ?? 0 }
        if case .integer(let offset)? = fields["offset"] { number = Int(offset) }
        // A page of watchers begins with the last one of the page before it.
        if case .integer(let value)? = fields["limit"] { limit = Int(value) }
        let next = "\(number + 1)"
        switch kind {
        case .members:
            let member = Member(
                userId: UserID("\(number)"), role: .member, state: .member, joinedAt: Timestamp(milliseconds: Int64(number)),
                joinedSeq: Seq(number), changeSeq: Seq(number))
            return .result(Page(items: [MemberEntry(member: member, isOnline: true)], nextCursor: next))
        case .watchers:
            let watchers = (number..<number + limit).map { UserSummary(userId: UserID("\($0)")) }
            return .result(WatcherPage(watchers: watchers, watcherCount: Limits.watcherOffset))
        case .channels:
            var channel = channel(counters(3, messages: 0))
            channel.channelId = ChannelID("\(number)")
            return .result(Page(items: [ChannelView(channel: channel, membership: nil)], nextCursor: next))
        }
    }

    @Test(
        "AM-29 if its caller is cancelled after any number of turns, a page's row is there or not, and the next page has the next row",
        arguments: Kind.allCases)
    func anyTurn(kind: Kind) async throws {
        let chat = try await ScriptedServer { Self.endlessPage($0) }.connected()
        // After so many turns the progress of a page varies. A new list has fewer rows to show with each page.
        for _ in 0..<8 {
            let list = try await loadedList(of: kind, chat)
            var turns = 0
            while turns < 300, try await cancelPage(of: list, afterTurns: turns) { turns += 1 }
        }
        await chat.disconnect()
    }

    /// Returns whether the caller was cancelled before it ended.
    private func cancelPage(of list: LoadedList, afterTurns turns: Int) async throws -> Bool {
        var rowCount = list.rows().count
        let steps = StepExecutor()
        let caller = Task(executorPreference: steps) { try await list.loadMore() }
        steps.run({ caller.cancel() }, at: .later(0, turns: turns))
        let ended = await result(of: caller)
        let isCancelled = steps.end() != nil
        switch ended {
        case .success?: rowCount += 1
        case .failure(is CancellationError)? where isCancelled: break
        case .failure?, nil: Issue.record("\(turns) turns: \(String(describing: ended))")
        }
        try await list.loadMore()
        rowCount += 1
        #expect(list.rows().sorted() == (0..<rowCount).map { "\($0)" }.sorted(), "\(turns) turns")
        return isCancelled
    }
}
