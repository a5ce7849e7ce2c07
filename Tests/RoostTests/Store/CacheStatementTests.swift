import Foundation
import GRDB
import Logging
import RoostAPI
import Testing

@testable import Roost

/// The cost of thousands of channels and messages is mostly the number of statements for each.
@MainActor @Suite("Store: statements of a write", .timeLimit(.minutes(5)))
struct CacheStatementTests {
    private let store: Store

    init() throws { store = try Store(url: nil, user: "ann", logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }) }

    /// The number of statements that a piece of work on the store runs.
    private func statements(_ body: @escaping @Sendable (Database) throws -> Void) async throws -> Int {
        let counter = Turn()
        try await store.change { database in
            database.trace { event in if case .statement = event { _ = counter.next() } }
            defer { database.trace() }
            try body(database)
        }
        return counter.next()
    }

    private func apply(_ writes: [StoreWrite]) async throws -> Int {
        try await statements { database in for write in writes { try database.apply(write, as: "ann", .standard) } }
    }

    @Test("a new message counts with one statement, and permissions are replaced with one")
    func single() async throws {
        try await store.write(RandomChannels.member(of: "general", at: 1))
        #expect(try await apply([.add(Rows([message(2, "one")]), to: "general")]) == 1)
        let own = Capabilities.Own(permissions: [.messageSend], userSeq: 1, channelSeq: 1)
        #expect(try await apply([.capabilities("general", own)]) == 1)
        #expect(try await apply([.roleCapabilities("general", Capabilities.ByRole(permissions: [:], channelSeq: 1))]) == 1)
    }

    @Test("a membership is looked up once, and the messages after it only if the channel is ahead of it")
    func memberships() async throws {
        let begun = Position(cursor: 3, windowStart: 0)
        try await store.write([.channel(channel(counters(3, messages: 2))), .position(Harness.channel, begun)])
        // The cursor, the existing membership, the overlay, and the row.
        #expect(try await apply([.membership(membership(readSeq: 3, readCount: 0, channelSeq: 3))]) == 4)
        // The user's own messages and those deleted for good.
        #expect(try await apply([.membership(membership(readSeq: 2, readCount: 0, channelSeq: 2, userSeq: 1))]) == 6)
    }

    @Test("only the user's own messages after a membership count, up to where the channel is followed")
    func broughtUp() async throws {
        let messages = [
            message(2, "before", by: "ann"), message(3, "other"), message(4, "own", by: "ann"), message(6, "ahead", by: "ann"),
        ]
        try await store.write([
            .channel(channel(counters(5, messages: 3))), .position(Harness.channel, Position(cursor: 5, windowStart: 0)),
            .messages(messages, of: Harness.channel), .membership(membership(readSeq: 1, readCount: 1, channelSeq: 2)),
        ])
        let shown = try #require(try await store.read { try $0.membership(of: Harness.channel) })
        #expect(shown.readCount == 2 && shown.channelSeq == 4)
        let plan = try await store.read { database in
            try Row.fetchAll(
                database,
                sql: "EXPLAIN QUERY PLAN SELECT text FROM messages WHERE channel_id = ? AND seq > ? AND seq <= ? AND +is_own = 1",
                arguments: ["general", 2, 5]
            ).map { $0["detail"] as String }
        }
        #expect(plan.allSatisfy { $0.contains("seq>") }, "\(plan)")
    }

    @Test("the types of thousands of channels are one statement, and those that aren't cached are left out")
    func types() async throws {
        for number in 1...9 { try await store.write(RandomChannels.member(of: ChannelID("c\(number)"), at: 1)) }
        let ids = (0...12).reversed().map { ChannelID("c\($0)") }
        #expect(try await store.read { try $0.types(of: ids).map(\.id) } == (1...9).map { ChannelID("c\($0)") })
        #expect(try await statements { _ = try $0.types(of: ids) } == 1)
    }

    @Test("new messages change stored counters as they change counters in memory, whatever numbers a server has sent")
    func countersOfNewMessages() async throws {
        var expected = ChannelCounters(
            seq: 4, memberCount: 2, messageCount: 7, ordinal: 5, lastActivity: Timestamp(milliseconds: 3))
        var silent = message(6, "silent")
        silent.content.isSilent = true
        for (count, ordinal) in [(7, 5), (Int.max - 1, Int.max), (Int.max, Int.max - 2)] {
            (expected.seq, expected.messageCount, expected.ordinal) = (4, count, ordinal)
            try await store.write([.erase(epoch: "\(count)"), .channel(channel(expected))])
            for rows in [Rows([message(4, "known")]), Rows([message(5, "five"), silent]), Rows([message(5, "late")]), Rows()] {
                try await store.write([.add(rows, to: Harness.channel)])
                expected.add(rows)
                #expect(try await store.read { try $0.counters(of: Harness.channel) } == expected)
            }
            #expect(
                try await store.read { try $0.value("SELECT list_at FROM channels") } == expected.lastMessageAt)
        }
    }

    @Test("older permissions don't replace newer ones, and the user's and all members' don't affect each other")
    func capabilities() async throws {
        func stored() async throws -> Capabilities? {
            try await store.read { try $0.model("SELECT \(Capabilities.cacheColumns) FROM capabilities", []) }
        }
        func own(_ permissions: [Permission], _ userSeq: Seq, _ channelSeq: Seq) -> Capabilities.Own {
            Capabilities.Own(permissions: permissions, userSeq: userSeq, channelSeq: channelSeq)
        }
        func byRole(_ permissions: [Permission], _ channelSeq: Seq) -> Capabilities.ByRole {
            Capabilities.ByRole(permissions: ["member": permissions], channelSeq: channelSeq)
        }
        var expected = Capabilities()
        let writes: [(StoreWrite, Capabilities)] = [
            (.roleCapabilities("c", byRole([.messageSend], 3)), Capabilities(byRole: byRole([.messageSend], 3))),
            (.capabilities("c", own([.messageSend], 2, 5)), Capabilities(own: own([.messageSend], 2, 5))),
            (.capabilities("c", own([], 1, 9)), Capabilities()), (.capabilities("c", own([], 2, 4)), Capabilities()),
            (.capabilities("c", own([.historyRead], 2, 5)), Capabilities(own: own([.historyRead], 2, 5))),
            (.roleCapabilities("c", byRole([], 2)), Capabilities()),
            (.roleCapabilities("c", byRole([.historyRead], 3)), Capabilities(byRole: byRole([.historyRead], 3))),
        ]
        for (number, (write, change)) in writes.enumerated() {
            try await store.write([write])
            if change.own != Capabilities.Own() { expected.own = change.own }
            if change.byRole != Capabilities.ByRole() { expected.byRole = change.byRole }
            #expect(try await stored() == expected, "write \(number)")
        }
    }
}
