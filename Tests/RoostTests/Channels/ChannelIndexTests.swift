import Foundation
import GRDB
import Logging
import RoostAPI
import Testing

@testable import Roost

@MainActor @Suite("Channels: indexes of the orders of lists", .timeLimit(.minutes(5)))
struct ChannelIndexTests {
    private let directory = URL.temporaryDirectory.appending(component: "roost-\(UUID().uuidString)")

    private func chat() -> Chat {
        let configuration = Chat.Configuration(
            storage: .directory(directory), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, transport: TinyServer()
        )
        return Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
    }

    @Test(
        "AM-30 ST-09 the index of an order is made once a list requests it, finds the next page's first rows, and survives reopening the file",
        arguments: [ChannelSort.lastActivity, .created, .name])
    func onFirstUse(sort: ChannelSort) async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let query = ChannelQuery(hidden: .all, sort: sort)
        var shown: [ChannelItem]?
        do {
            let chat = chat()
            let store = try await chat.driver.prepare().store
            for number in 1...9 { try await store.write(RandomChannels.member(of: ChannelID("c\(number)"), at: Int64(number))) }
            #expect(try await store.read { try [$0.hasIndex(of: .lastMessage), $0.hasIndex(of: sort)] } == [true, false])
            let first = StoredChannels(query, pageSize: 5, driver: chat.driver)
            try await first.follow(.everything)
            #expect(!first.isPartial && first.items?.count == 5 && first.hasMore)
            try await until { try await store.read { try $0.hasIndex(of: sort) } }
            let next = StoredChannels(query, pageSize: 5, driver: chat.driver)
            try await next.follow(.everything)
            #expect(next.isPartial && next.items == first.items)
            shown = next.items
        }
        let again = chat()
        let store = try await again.driver.prepare().store
        #expect(try await store.read { try $0.hasIndex(of: sort) })
        let list = StoredChannels(query, pageSize: 5, driver: again.driver)
        try await list.follow(.everything)
        #expect(list.isPartial && list.items == shown && shown?.count == 5)
        // Reset tables have no indexes, and the places of all channels are read again.
        try await store.write([.erase(epoch: "next")] + RandomChannels.member(of: "c1", at: 1))
        let afresh = StoredChannels(query, pageSize: 5, driver: again.driver)
        try await afresh.follow(.everything)
        #expect(!afresh.isPartial && afresh.items?.map(\.id) == ["c1"])
    }

    @Test("AM-30 a list that no index helps requests none", arguments: [true, false])
    func notNeeded(isLong: Bool) async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        var query = ChannelQuery(hidden: .all, sort: .name)
        if !isLong { query.nameContains = "a" }
        #expect(!ListedChannels.usesIndex(query, pageSize: isLong ? .max : 5))
    }

    @Test("AM-30 an index gives its order without sorting", arguments: ChannelSort.allCases)
    func plan(sort: ChannelSort) async throws {
        let store = try Store(url: nil, user: "ann", logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        try await store.makeIndex(for: sort)
        try await store.makeIndex(for: sort)
        let plan = try await store.read { database in
            var found: [String] = []
            database.trace { event in
                if case .statement(let statement) = event, statement.sql.contains("INDEXED BY") { found.append(statement.sql) }
            }
            defer { database.trace() }
            _ = try ChannelQuery(hidden: .all, sort: sort).first(50, in: database)
            return try found.flatMap { sql in
                try Row.fetchAll(database, sql: "EXPLAIN QUERY PLAN \(sql)", arguments: [50]).map { $0["detail"] as String }
            }
        }
        #expect(plan.contains { $0.contains("USING") && $0.contains(sort.index) }, "\(plan)")
        #expect(plan.allSatisfy { !$0.contains("TEMP B-TREE") }, "\(plan)")
    }
}
