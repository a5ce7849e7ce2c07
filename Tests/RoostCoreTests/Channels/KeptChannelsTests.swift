import Foundation
import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

/// Totals and lists from rows cached between reads. Databases of tests cache all they can, and compare each use with what a statement reads from the
/// same snapshot, so the other tests of totals and lists cover the cache too.
@Suite("Kept channels")
struct KeptChannelsTests {
    @Test(
        "AM-43 SB-27 D-29 X-34 a total is the sum of unmuted channels, and lists show all unread ones, whatever happens between two reads",
        arguments: Seeds.first(6))
    func history(seed: UInt64) throws {
        let world = try CoreWorld()
        var history = try RandomHistory(seed: seed, in: world)
        for _ in 0..<250 {
            let step = try history.step(in: world)
            let user = history.random.pick(history.users)
            // Sometimes all of them, otherwise the next user: sometimes much has changed and sometimes little.
            for user in history.random.once(in: 8) ? history.users : [user] {
                let counts = try history.channels.compactMap { channel -> (unread: Int, isMuted: Bool)? in
                    do {
                        let unread = try world.perform(GetUnread(channel: channel), as: user).unreadCount
                        let view = try world.perform(GetChannel(channel: channel), as: user)
                        return (unread, view.membership?.isNotificationsMuted ?? false)
                    } catch is RoostError {
                        return nil
                    }
                }
                let counted = counts.filter { !$0.isMuted }.map(\.unread)
                let expected = TotalUnread(unreadCount: counted.reduce(0, +), unreadChannelCount: counted.count { $0 > 0 })
                #expect(try world.perform(GetTotalUnread(), as: user) == expected, "\(step), seen by \(user)")
                let query = QueryChannels(hidden: .all, unreadOnly: true, sort: .unreadFirst)
                let listed = try world.perform(query, as: user).items
                #expect(listed.count == counts.count { $0.unread > 0 }, "\(step), seen by \(user)")
            }
        }
    }

    @Test(
        "R09 pages from the cache equal those of statements, from any position, in any order and with any filter",
        arguments: Seeds.first(3))
    func pages(seed: UInt64) throws {
        let world = try CoreWorld()
        var history = try RandomHistory(seed: seed, in: world)
        for _ in 0..<150 { try history.step(in: world) }
        for sort in [ChannelSort.lastMessage, .lastActivity, .unreadFirst] {
            for order in SortDirection.allCases {
                for set in Self.filters {
                    var query = QueryChannels(sort: sort, order: order, limit: 2)
                    set(&query)
                    try expectSamePages(query, in: world, as: history.random.pick(history.users))
                }
            }
        }
    }

    private static let filters: [@Sendable (inout QueryChannels) -> Void] =
        HiddenFilter.allCases.map { hidden in { $0.hidden = hidden } } + [
            { $0.unreadOnly = true }, { ($0.includeDeleted, $0.hidden) = (false, .all) }, { $0.includeEmpty = false },
            { ($0.includeEmpty, $0.unreadOnly) = (false, true) },
        ]

    /// Follows both kinds of cursors of a query, and compares each page with a statement's.
    private func expectSamePages(_ query: QueryChannels, in world: CoreWorld, as user: UserID) throws {
        var query = query
        var ways: [String?] = [nil]
        var seen: Set<String> = []
        while let cursor = ways.popLast() {
            query.cursor = cursor
            let kept = try world.database.read { try Self.page(query, as: user, at: world.now, in: $0) }
            let stated = try world.database.read { try Self.page(query, as: user, at: world.now, in: Forgetful($0)) }
            #expect(kept == stated, "\(query)")
            for next in [kept.nextCursor, kept.previousCursor].compactMap(\.self) where seen.insert(next).inserted {
                ways.append(next)
            }
        }
    }

    private static func page(
        _ query: QueryChannels, as user: UserID, at now: Timestamp, in transaction: any Transaction
    ) throws -> Page<ChannelView> {
        var context = Context(transaction: transaction, caller: Caller(user: user), now: now, ids: IDGenerator())
        return try query.handle(in: &context)
    }

    @Test("I8 an older snapshot keeps showing its own state, whatever newer ones cache meanwhile, and newer ones don't show it")
    func olderSnapshot() throws {
        let world = try CoreWorld()
        try world.channel("one", owner: "ann", members: ["bob"])
        try world.channel("two", owner: "ann", members: ["bob"])
        try world.send("first", to: "one", as: "ann")
        func total(_ transaction: any Transaction) throws -> TotalUnread {
            var context = Context(transaction: transaction, caller: Caller(user: "bob"), now: world.now, ids: IDGenerator())
            return try GetTotalUnread().handle(in: &context)
        }
        #expect(try world.database.read(total) == TotalUnread(unreadCount: 1, unreadChannelCount: 1))
        try world.database.read { old in
            #expect(try old.rows("SELECT seq FROM user_heads") { $0.int64() }.count == 2)
            try world.send("second", to: "two", as: "ann")
            #expect(try world.database.read(total) == TotalUnread(unreadCount: 2, unreadChannelCount: 2))
            #expect(try total(old) == TotalUnread(unreadCount: 1, unreadChannelCount: 1))
            #expect(try world.database.read(total) == TotalUnread(unreadCount: 2, unreadChannelCount: 2))
            // Moves the user's own stream.
            try world.perform(MarkRead(channel: "one"), as: "bob")
            #expect(try world.database.read(total) == TotalUnread(unreadCount: 1, unreadChannelCount: 1))
            #expect(try total(old) == TotalUnread(unreadCount: 1, unreadChannelCount: 1))
            try world.perform(LeaveChannel(channel: "two"), as: "bob")
            try world.channel("three", owner: "ann", members: ["bob"])
            #expect(try world.database.read(total) == TotalUnread(unreadCount: 0, unreadChannelCount: 0))
            #expect(try total(old) == TotalUnread(unreadCount: 1, unreadChannelCount: 1))
        }
        #expect(try world.database.read(total) == TotalUnread(unreadCount: 0, unreadChannelCount: 0))
    }

    @Test("NF-04 a rollback leaves totals unchanged")
    func rolledBack() throws {
        let world = try CoreWorld()
        try world.channel("one", owner: "ann", members: ["bob"])
        #expect(try world.perform(GetTotalUnread(), as: "bob").unreadCount == 0)
        struct Failure: Error {}
        #expect(throws: Failure.self) {
            try world.inContext(scope: .channel("one", user: "ann")) { context in
                try context.moveStream(
                    of: "one", to: ChannelCounters(seq: 9, memberCount: 2, messageCount: 5, ordinal: 5, lastActivity: world.now))
                throw Failure()
            }
        }
        #expect(try world.perform(GetTotalUnread(), as: "bob").unreadCount == 0)
        try world.send("first", to: "one", as: "ann")
        #expect(try world.perform(GetTotalUnread(), as: "bob").unreadCount == 1)
    }
}

/// A transaction without a cache.
private final class Forgetful: Transaction {
    private let transaction: any Transaction

    init(_ transaction: any Transaction) { self.transaction = transaction }

    var dialect: Dialect { transaction.dialect }
    func execute(_ sql: SQL) throws -> Int { try transaction.execute(sql) }
    func perform(_ sql: SQL) throws { try transaction.perform(sql) }
    func each(_ sql: SQL, _ body: (inout RowReader) throws -> Void) throws { try transaction.each(sql, body) }
}
