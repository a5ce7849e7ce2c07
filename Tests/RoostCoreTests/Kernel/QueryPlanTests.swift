import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

/// The work for a query doesn't grow with the database: 100,000 channels, and one with 300,000 members.
@Suite("Query plans")
struct QueryPlanTests {
    @Test(
        "NF-04 AM-01 R09 R15 R16 no query of channels or members scans a whole table or passes unlimited rows, whatever its filters"
    )
    func bounded() throws {
        let world = try Self.largeWorld()
        try world.database.read { transaction in
            var explained: Set<String> = []
            for (operation, role) in Self.operations {
                let recorder = Recorder(transaction)
                try recorder.run(operation, as: "ann", role: role, now: world.now)
                // 5,000 rows are passed in steps of up to 1,000 from each of several lists; candidates are counted first.
                #expect(recorder.rowCount < 12_000, "\(operation)")
                for statement in recorder.statements where explained.insert(statement.text).inserted {
                    #expect(try plan(of: statement, in: transaction).filter(isScan) == [], "\(operation): \(statement.text)")
                }
            }
            #expect(explained.count > 100)
        }
    }

    @Test(
        "NF-04 AM-34 connecting, lists and totals find a user's channels without passing deleted ones",
        .enabled(if: TestDatabase.Engine.chosen == .sqlite))
    func deletedArePassedBy() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        try world.database.read { transaction in
            let recorder = Recorder(transaction)
            let held = Dictionary(uniqueKeysWithValues: (1...40).map { ("gone-\($0)", Seq(1)) })
            let operations: [any Handled] = [
                QueryChannels(), QueryChannels(sort: .name), QueryChannels(includeDeleted: true), GetTotalUnread(),
                Resume(after: 0, channels: held),
            ]
            for operation in operations { try recorder.run(operation, as: "ann", role: .user, now: world.now) }
            _ = try recorder.streams(of: "ann")
            let along = recorder.statements.filter { $0.text.contains("FROM members m") && $0.text.contains("m.user_id = ") }
            #expect(along.count >= 5)
            for statement in along where !statement.text.contains("m.user_seq > ") {
                let part = "members_by_user (user_id=? AND state=? AND is_channel_deleted=?"
                let steps = try plan(of: statement, in: transaction)
                #expect(steps.contains { $0.contains(part) }, "\(statement.text): \(steps)")
            }
            // If they are asked for, only those that changed last are passed.
            let deleted = recorder.statements.filter { $0.text.contains("m.is_channel_deleted = 1") }
            #expect(deleted.count == 1)
            for statement in deleted {
                let steps = try plan(of: statement, in: transaction)
                #expect(steps.contains { $0.contains("members_by_user_seq (user_id=?") }, "\(steps)")
            }
            // A client's own channels are each looked up by key.
            let named = recorder.statements.filter { $0.text.contains("FROM channel_heads h") && $0.text.contains("m.user_id = ") }
            #expect(named.count == 1)
            for statement in named {
                let steps = try plan(of: statement, in: transaction)
                #expect(steps.count { $0.contains("USING PRIMARY KEY (channel_id=?") } == 2, "\(steps)")
            }
        }
    }

    @Test(
        "NF-04 ST-05 ST-07 a watch, and the hand-off of a push, find a channel's members without passing former ones",
        .enabled(if: TestDatabase.Engine.chosen == .sqlite))
    func formerMembersArePassedBy() throws {
        let world = try CoreWorld()
        world.handsOffPushes = true
        try world.channel("general", owner: "ann", members: ["bob"])
        try world.send("hi", to: "general", as: "ann")
        try world.database.read { transaction in
            let recorder = Recorder(transaction)
            try recorder.run(WatchChannel(channel: "general"), as: "ann", role: .user, now: world.now)
            let effects = try transaction.effectsDue(of: [.push], at: world.now, limit: 1).due
            let effect = try #require(effects.first)
            let context = Context(transaction: recorder, caller: .server, now: world.now, ids: IDGenerator())
            #expect(try context.pushes(for: effect).notifications.count == 1)
            for column in ["u.shares_delivery", "m.notifications_muted_until, m.banned_until"] {
                let found = recorder.statements.filter { $0.text.contains("FROM members m") && $0.text.contains(column) }
                #expect(found.count == 1, "\(column)")
                for statement in found {
                    let steps = try plan(of: statement, in: transaction)
                    #expect(steps.contains { $0.contains("members_by_joining (channel_id=? AND state=?") }, "\(steps)")
                }
            }
        }
    }

    @Test(
        "NF-04 R25 a mark far back finds a user's messages by their sender or in a range of seqs, and never passes a whole channel",
        .enabled(if: TestDatabase.Engine.chosen == .sqlite))
    func marksFarBack() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        let (mark, caller) = (MarkUnread(channel: "general", seq: 1), Caller(user: "bob"))
        var explained: Set<String> = []
        // Few messages, then more among many of others, then most.
        for step in [100, 10, 1] {
            try BulkRows.messages(20_000, to: "general", every: step, by: "bob", others: "ann", in: world)
            try world.perform(MarkRead(channel: "general"), as: "bob")
            let statements = try world.database.write(lane: 0) { transaction in
                let recorder = Recorder(transaction)
                let scope = mark.scope(for: caller)
                try scope.lock(in: transaction)
                var context = Context(transaction: recorder, caller: caller, now: world.now, ids: IDGenerator(), scope: scope)
                _ = try mark.handle(in: &context)
                return recorder.statements
            }
            for statement in statements where statement.text.contains("messages") {
                guard explained.insert(statement.text).inserted else { continue }
                let steps = try world.database.write(lane: 0) { try plan(of: statement, in: $0) }
                let whole = steps.filter {
                    $0.hasPrefix("SCAN messages") || $0.contains("messages USING PRIMARY KEY (channel_id=?)")
                }
                #expect(whole == [], "\(statement.text)")
            }
        }
        #expect(explained.count >= 6)
    }

    @Test("NF-04 a page of large messages fetches few rows beyond its end, and the pages have each message once")
    func largeMessages() throws {
        let world = try CoreWorld()
        try world.channel("room", owner: "ann")
        // A quarter of a megabyte each: in texts and metadata, or in lists.
        let birds = String(repeating: "\u{1F426}", count: 20_000)
        let values = Array(repeating: String(repeating: "\u{1F426}", count: 128), count: 100)
        let contents = [
            MessageContent(text: birds, data: birds, metadata: ["k": .string(String(repeating: "x", count: 90_000))]),
            MessageContent(text: "lists", metaArrays: ["a": values, "b": values, "c": values, "d": values, "e": values]),
        ]
        let sent = try (0..<60).map { number in
            try world.perform(
                SendMessage(channel: "room", clientId: ClientID("c\(number)"), content: contents[number % 2]), as: "ann"
            ).seq
        }
        let operations: [any Handled] = [
            ListMessages(channel: "room", limit: 100), ListMessages(channel: "room", after: 0, limit: 100),
            GetChannelChanges(channel: "room", after: 0),
        ]
        try world.database.read { transaction in
            for operation in operations {
                let recorder = Recorder(transaction)
                try recorder.run(operation, as: "ann", role: .user, now: world.now)
                #expect(recorder.rowCount < 20, "\(operation)")
            }
        }

        var (backward, before): ([Seq], Seq?) = ([], nil)
        repeat {
            let page = try world.perform(ListMessages(channel: "room", before: before, limit: 100), as: "ann")
            #expect(page.messages.count < 10)
            backward = page.messages.map(\.seq) + backward
            before = page.hasOlder ? page.messages.first?.seq : nil
        } while before != nil
        var (forward, after, hasMore): ([Seq], Seq, Bool) = ([], 0, true)
        while hasMore {
            let changes = try world.perform(GetChannelChanges(channel: "room", after: after), as: "ann")
            forward += (changes.rows.messages ?? []).map(\.seq)
            (after, hasMore) = (changes.seq, changes.hasMore)
        }
        #expect(backward == sent && forward == sent)
    }

    @Test("NF-04 a page of changes that ends with its new messages reads no changes beyond them")
    func laterChanges() throws {
        let world = try CoreWorld()
        try world.channel("room", owner: "ann")
        try world.batch {
            let sent = try (0..<300).map { try world.send("\($0)", to: "room", as: "ann") }
            for message in sent {
                try world.perform(EditMessage(channel: "room", message: message.messageId, text: "edited"), as: "ann")
            }
        }
        // Half of the messages are older, and have all changed since.
        let page = GetChannelChanges(channel: "room", after: 150, limit: 50)
        let recorder = try world.database.read { transaction in
            let recorder = Recorder(transaction)
            try recorder.run(page, as: "ann", role: .user, now: world.now)
            return recorder
        }
        #expect(recorder.rowCount < 51 + 20)
        let expected: [Seq] = Array(151...200)
        #expect(try world.perform(page, as: "ann").rows.messages?.map(\.seq) == expected)
        let rest = try world.perform(GetChannelChanges(channel: "room", after: 300, limit: 1000), as: "ann")
        #expect(rest.rows.messages?.count == 300 && !rest.hasMore)
    }

    // MARK: The world

    private static func largeWorld() throws -> CoreWorld {
        let world = try CoreWorld()
        try world.user("ann")
        try world.channel("large", owner: "ann")
        try BulkRows.channels(100_000, in: world)
        try BulkRows.members(300_000, of: "large", in: world)
        try BulkRows.memberships(2000, of: "ann", in: world)
        try world.analyze()
        return world
    }

    /// Every query with every filter and order.
    private static let operations: [(any Handled, AppRole)] = {
        var all: [(any Handled, AppRole)] = []
        for sort in ChannelSort.allCases {
            for order in SortDirection.allCases {
                for set in filters + ownFilters { all.append((QueryChannels(sort: sort, order: order).with(set), .user)) }
            }
            guard sort != .lastMessage, sort != .unreadFirst else { continue }
            for membership in [MembershipFilter.all, .notMember] {
                for role in [AppRole.user, .moderator, .admin] {
                    for order in SortDirection.allCases {
                        let query = QueryChannels(membership: membership, sort: sort, order: order)
                        for set in filters { all.append((query.with(set), role)) }
                    }
                }
            }
        }
        let states: [[MemberFilter]] = [[.member], [.muted], [.banned], [.member, .banned], [.muted, .banned]]
        let roles: [[ChannelRole]?] = [nil, [.member], [.owner, .operator], [.owner, .member]]
        for states in states {
            for roles in roles {
                for sort in MemberSort.allCases {
                    all.append((ListMembers(channel: "large", states: states, roles: roles, sort: sort), .admin))
                }
                all.append(
                    (ListMembers(channel: "large", states: states, roles: roles, sort: .userId, order: .descending), .admin))
                for text in ["b", "bulk", "bulk 77", "nobody", "bulk-299999", "´"] {
                    all.append((SearchMembers(channel: "large", text: text, states: states, roles: roles), .admin))
                }
            }
        }
        return all + [
            (ListInvitations(channel: "large"), .user), (ListMyInvitations(), .user), (ListDeadEffects(), .admin),
            (GetTotalUnread(), .user),
        ]
    }()

    private static let filters: [@Sendable (inout QueryChannels) -> Void] = [
        { _ in }, { $0.types = ["group"] }, { $0.types = ["standard"] }, { $0.ids = ["bulk-1", "group:bulk-20"] },
        { $0.includingTags = ["rare"] }, { $0.includingTags = ["usual", "other"] }, { $0.excludingTags = ["usual"] },
        { $0.customTypes = ["rare"] }, { $0.customTypes = ["usual"] }, { $0.nameContains = "bul" }, { $0.nameContains = "zzz" },
        { $0.nameContains = "b" }, { $0.isPublic = false }, { $0.createdBy = "maker-7" }, { $0.createdBefore = 1_000_000_100_000 },
        { $0.createdAfter = 1_000_099_000_000 }, { $0.includeDeleted = true }, { $0.includeEmpty = false },
        { $0.includeFrozen = false },
    ]

    private static let ownFilters: [@Sendable (inout QueryChannels) -> Void] = [
        { $0.hidden = .hiddenOnly }, { $0.unreadOnly = true }, { $0.exactUsers = ["bulk-1", "bulk-2"] },
        { $0.includingUsers = ["bulk-1", "bulk-2"] },
        { ($0.includingUsers, $0.includingUsersMatch) = (["bulk-1", "bulk-2"], .any) },
    ]

    // MARK: Plans

    /// The steps that the database takes for a statement.
    private func plan(of statement: SQL, in transaction: any Transaction) throws -> [String] {
        switch TestDatabase.Engine.chosen {
        case .sqlite:
            try transaction.rows("EXPLAIN QUERY PLAN \(statement)") { row in
                _ = (row.int64(), row.int64(), row.int64())
                return row.string()
            }
        case .postgresql: try transaction.rows("EXPLAIN \(statement)") { $0.string() }
        }
    }

    /// Whether a step of a plan scans all rows of a table or of an index of it.
    ///
    /// The result of a subquery isn't a table (`w`, `counted`, `present`); a first page begins at the end of an index and is ended by its
    /// `LIMIT`.
    private func isScan(_ step: String) -> Bool {
        switch TestDatabase.Engine.chosen {
        case .postgresql: return step.contains("Seq Scan")
        case .sqlite:
            guard step.hasPrefix("SCAN") else { return false }
            let found = ["SCAN w", "SCAN counted", "SCAN present", "SCAN CONSTANT ROW"]
            let finding = ["", "kept_", "deleted_"].flatMap { part in
                [
                    "SCAN c USING INDEX channels_\(part)by_creation", "SCAN c USING INDEX channels_\(part)by_name",
                    "SCAN h USING INDEX channel_heads_\(part)by_activity",
                ]
            }
            return !found.contains(step) && !finding.contains(step.replacing(" COVERING", with: ""))
        }
    }
}

/// A transaction that records its statements, and counts the rows of the answers.
private final class Recorder: Transaction {
    private let transaction: any Transaction
    private(set) var statements: [SQL] = []
    private(set) var rowCount = 0

    init(_ transaction: any Transaction) { self.transaction = transaction }

    var dialect: Dialect { transaction.dialect }
    var batchMemory: BatchMemory? { transaction.batchMemory }
    var heldStreams: HeldStreams? { transaction.heldStreams }
    func execute(_ sql: SQL) throws -> Int {
        statements.append(sql)
        return try transaction.execute(sql)
    }
    func perform(_ sql: SQL) throws {
        statements.append(sql)
        try transaction.perform(sql)
    }
    func each(_ sql: SQL, _ body: (inout RowReader) throws -> Void) throws {
        statements.append(sql)
        try transaction.each(sql) { row in
            rowCount += 1
            try body(&row)
        }
    }

    func run(_ operation: some Handled, as user: UserID, role: AppRole, now: Timestamp) throws {
        var context = Context(
            transaction: self, caller: Caller(user: user, role: role, connection: ConnectionID(rawValue: 1)), now: now,
            ids: IDGenerator())
        _ = try operation.handle(in: &context)
    }
}
