import Foundation
import Logging
import RoostAPI
import Synchronization
import Testing

@testable import Roost

@MainActor @Suite("Watching: lists of watchers", .timeLimit(.minutes(5)))
struct WatcherListTests {
    @Test(
        "ST-14 a list whose pages contain no new users is loaded, and stops asking",
        arguments: [["ann"], ["ann", "bob"]] as [[UserID]])
    func samePage(users: [UserID]) async throws {
        let server = ScriptedServer { call in
            guard call.operation == "channel.listWatchers" else { return .result(Done()) }
            return .result(WatcherPage(watchers: users.map { UserSummary(userId: $0) }, watcherCount: 5))
        }
        let configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, transport: server)
        let chat = Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
        try await chat.connect()
        let list = chat.channel("general").watchers(pageSize: 3)
        try await list.loaded()
        #expect(list.items.map(\.userId) == users)
        // Nobody comes after ann. A page that doesn't begin with bob is requested again, three times with the page before it. In the end, the
        // newest watchers are requested.
        let count = users.count == 1 ? 2 : 9
        #expect(await server.operations().count { $0 == "channel.listWatchers" } == count)
        #expect(list.hasMore == (users.count > 1))
        await chat.disconnect()
    }

    @Test("ST-14 an empty list is reported too, once there is an answer, and only once")
    func nobody() async throws {
        let server = ScriptedServer { call in
            guard call.operation == "channel.listWatchers" else { return .result(Done()) }
            return .result(WatcherPage(watchers: [], watcherCount: 0))
        }
        let configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, transport: server)
        let chat = Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
        let list = chat.channel("general").watchers()
        var reported: [[UserSummary]] = []
        let token = list.observe { reported.append($0.items) }
        try await chat.connect()
        try await list.loaded()
        #expect(reported == [[]])
        try await list.loadMore()
        #expect(reported == [[]])
        token.invalidate()
        await chat.disconnect()
    }

    @Test("ST-14 new watchers are shown as the store knows them, and so are all users of whom something else is shown")
    func names() async throws {
        let server = ScriptedServer { call in
            guard call.operation == "channel.listWatchers" else { return .error(.notFound("operation")) }
            return .result(WatcherPage(watchers: [UserSummary(userId: "ann")], watcherCount: 1))
        }
        let configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, transport: server)
        let chat = Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
        try await chat.connect()
        let store = try await chat.driver.files().store
        let list = chat.channel("general").watchers()
        try await list.loaded()
        try await store.write([.users([UserSummary(userId: "bob", displayName: "Bob", version: 1)])])
        try await server.send(
            Signal(
                kind: .watchingChanged, channel: "general",
                watching: WatcherChange(watcherCount: 2, started: ["bob"], stopped: [], isWhole: true)))
        try await until { list.items.map(\.displayName) == [nil, "Bob"] }
        try await store.write([.users([UserSummary(userId: "ann", displayName: "Ann", version: 1)])])
        try await until { list.items.map(\.displayName) == ["Ann", "Bob"] }
        await chat.disconnect()
    }

    /// A server's watchers, in the order in which they started.
    private final class Watchers: Sendable {
        private let users: Mutex<[UserID]>
        init(_ count: Int) { users = Mutex((1...count).map { UserID("u\($0)") }) }

        func page(limit: Int, behind offset: Int) -> WatcherPage {
            users.withLock { users in
                WatcherPage(
                    watchers: users.dropFirst(offset).prefix(limit).map { UserSummary(userId: $0) }, watcherCount: users.count)
            }
        }

        /// Has some start and some stop, as reported by the server.
        func change(started: [UserID] = [], stopped: [UserID] = [], isWhole: Bool = true) -> Signal {
            users.withLock { users in
                users.removeAll(where: stopped.contains)
                users += started
                let change =
                    isWhole
                    ? WatcherChange(watcherCount: users.count, started: started, stopped: stopped, isWhole: true)
                    : WatcherChange(watcherCount: users.count, started: [], stopped: [], isWhole: false)
                return Signal(kind: .watchingChanged, channel: "general", watching: change)
            }
        }
    }

    private nonisolated static func answer(_ call: ScriptedServer.Call, _ watchers: Watchers) -> ScriptedServer.Answer {
        guard call.operation == "channel.listWatchers", case .object(let fields) = call.with else {
            return .error(.notFound("operation"))
        }
        func number(_ name: String) -> Int { if case .integer(let value) = fields[name] { Int(value) } else { 0 } }
        return .result(watchers.page(limit: number("limit"), behind: number("offset")))
    }

    private func server(_ watchers: Watchers) -> ScriptedServer { ScriptedServer { Self.answer($0, watchers) } }

    private func latest(_ numbers: some Sequence<Int>) -> [UserID] { numbers.map { UserID("u\($0)") } }

    @Test("ST-15 the newest watchers are known beyond a list's pages, while users start and stop")
    func latest() async throws {
        let watchers = Watchers(70)
        let server = server(watchers)
        let chat = try await server.connected()
        let list = chat.channel("general").watchers()
        try await list.loaded()
        #expect(list.items.map(\.userId) == latest(1...30) && list.hasMore && list.watcherCount == 70)
        #expect(list.lastActiveWatchers.map(\.userId) == latest((41...70).reversed()))
        try await server.send(watchers.change(started: ["new", "newer"], stopped: ["u2", "u69"]))
        let expected: [UserID] = ["newer", "new", "u70"] + latest((41...68).reversed())
        try await until { list.lastActiveWatchers.map(\.userId) == expected }
        #expect(list.items.map(\.userId) == latest([1] + Array(3...30)) && list.hasMore && list.watcherCount == 70)
        // A user who stops and starts again is the newest.
        try await server.send(watchers.change(stopped: ["u70"]))
        try await server.send(watchers.change(started: ["u70"]))
        try await until { list.lastActiveWatchers.first?.userId == "u70" }
        #expect(list.lastActiveWatchers.map(\.userId) == ["u70", "newer", "new"] + latest((41...68).reversed()))
        // With all pages they are the list itself.
        while list.hasMore { try await list.loadMore() }
        #expect(list.items.count == 70)
        #expect(list.lastActiveWatchers == list.items.reversed())
        await chat.disconnect()
    }

    @Test("ST-15 the newest watchers are requested again if too few of them are left, and if not all new ones were named")
    func latestAnew() async throws {
        let watchers = Watchers(70)
        let server = server(watchers)
        let chat = try await server.connected()
        let list = chat.channel("general").watchers(pageSize: 20)
        try await list.loaded()
        try await server.send(watchers.change(stopped: latest(60...70)))
        try await until { list.lastActiveWatchers.map(\.userId) == latest((40...59).reversed()) }
        _ = watchers.change(started: ["new"])
        try await server.send(watchers.change(isWhole: false))
        try await until { list.lastActiveWatchers.map(\.userId) == ["new"] + latest((41...59).reversed()) }
        await chat.disconnect()
    }

    @Test("ST-14 a watcher who stops while another page is on its way isn't added by that page")
    func olderPage() async throws {
        let watchers = Watchers(5)
        let (gate, opening) = AsyncStream.makeStream(of: Void.self)
        let asked = Turn()
        // The first page and the newest watchers arrive at once, the further page later.
        let server = ScriptedServer { call in
            let answer = Self.answer(call, watchers)
            return call.operation == "channel.listWatchers" && asked.next() > 1 ? .held(until: gate, answer) : answer
        }
        let chat = try await server.connected()
        let list = chat.channel("general").watchers(pageSize: 2)
        try await list.loaded()
        #expect(list.items.map(\.userId) == latest(1...2) && list.watcherCount == 5)
        let loading = Task { try await list.loadMore() }
        try await until { await server.operations().count { $0 == "channel.listWatchers" } == 3 }
        try await server.send(watchers.change(stopped: ["u3"]))
        try await until { list.watcherCount == 4 }
        opening.finish()
        try await loading.value
        #expect(list.items.map(\.userId) == latest([1, 2, 4]) && list.watcherCount == 4)
        await chat.disconnect()
    }

    @Test("ST-14 if some have stopped before a list knows, those who moved up aren't left out by its next page")
    func movedUp() async throws {
        let watchers = Watchers(5)
        let server = server(watchers)
        let chat = try await server.connected()
        let list = chat.channel("general").watchers(pageSize: 2)
        try await list.loaded()
        #expect(list.items.map(\.userId) == latest(1...2))
        let gone = watchers.change(stopped: ["u1"])
        try await list.loadMore()
        #expect(list.items.map(\.userId) == latest(2...5) && !list.hasMore)
        try await server.send(gone)
        // The list has all of them, so it also has those who start.
        try await server.send(watchers.change(started: ["u6"]))
        try await until { list.items.map(\.userId) == latest(2...6) }
        #expect(!list.hasMore && list.watcherCount == 5)
        await chat.disconnect()
    }

    @Test(
        "ST-14 a list that is requested anew starts over while watchers stop between its pages, a few times",
        arguments: [false, true])
    func moving(isEndless: Bool) async throws {
        let watchers = Watchers(2000)
        let asked = Turn()
        // After the first page and the newest watchers, one stops before each request, or before each of three.
        let server = ScriptedServer { call in
            if call.operation == "channel.listWatchers" {
                let number = asked.next()
                if number > 1, isEndless || number < 5 { _ = watchers.change(stopped: [UserID("u\(number - 1)")]) }
            }
            return Self.answer(call, watchers)
        }
        let chat = try await server.connected()
        let list = chat.channel("general").watchers(pageSize: Limits.watcherPage.max)
        try await list.loaded()
        try await list.loadMore()
        // Three until the list is requested anew, then two at a time, and one of the newest watchers. Without a gap, two of the largest pages have
        // one row less than is requested.
        #expect(await server.operations().count { $0 == "channel.listWatchers" } == (isEndless ? 3 + 8 + 1 : 3 + 4 + 1 + 1))
        #expect(list.items.map(\.userId) == (isEndless ? latest(9...608) : latest(4...603)) && list.hasMore)
        await chat.disconnect()
    }

    @Test("ST-15 I18 of users who start and stop, only as many names are kept as are shown, and some")
    func manyNames() {
        var roster = WatcherRoster()
        roster.add(WatcherPage(watchers: [UserSummary(userId: "ann", displayName: "Ann")], watcherCount: 500))
        for number in 1...5000 {
            let user = UserID("n\(number)")
            roster.apply(
                WatcherChange(
                    watcherCount: 500, started: [user], stopped: number > 300 ? [UserID("n\(number - 300)")] : [], isWhole: true))
            roster.refreshUsers([UserSummary(userId: user, displayName: "N", version: 1)])
        }
        #expect(roster.summaries.count <= 2 * 301 + 1)
        #expect(roster.sorted.map(\.displayName) == ["Ann"] && roster.latest.allSatisfy { $0.displayName == "N" })
    }

    @Test("ST-15 ST-12 beyond as many watchers as may be skipped, those who start from now on are known")
    func tooMany() {
        var roster = WatcherRoster()
        roster.add(WatcherPage(watchers: [UserSummary(userId: "ann")], watcherCount: Limits.watcherOffset + 31))
        #expect(roster.offsetOfLatest(30) == nil && !roster.lacksLatest(30) && roster.latest == [])
        for number in 1...400 {
            roster.apply(
                WatcherChange(
                    watcherCount: Limits.watcherOffset + 31 + number, started: [UserID("n\(number)")], stopped: [], isWhole: true))
        }
        #expect(roster.latest.map(\.userId) == (101...400).map { UserID("n\($0)") })
        roster.add(WatcherPage(watchers: [], watcherCount: Limits.watcherOffset + 30))
        #expect(roster.sorted.map(\.userId) == ["ann"])
    }
}
