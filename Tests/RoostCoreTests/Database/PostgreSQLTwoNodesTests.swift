#if Cluster
import Foundation
import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

/// One node's operations during another's batch: above all making streams that the batch names, which had no head to lock when it began.
@Suite("PostgreSQLDatabase: two nodes at once")
struct PostgreSQLTwoNodesTests {
    private let database: PostgreSQLDatabase

    init() throws {
        database = try PostgreSQLDatabase(url: try PostgreSQLServer.shared.makeDatabase(), laneCount: 2)
        for user in ["ann", "bob"] as [UserID] { try admit(user) }
    }

    @Test(
        "I3 I15 a join of a channel that another node makes meanwhile waits for the lock on its head: no two changes have one seq")
    func channel() throws {
        let join = JoinChannel(channel: "new")
        var runs = 0
        let reply = try inContext(
            of: "bob", join.scope(for: Caller(user: "bob")),
            before: {
                runs += 1
                if runs == 1 { _ = try perform(CreateChannel(channel: "new"), as: "ann", lane: 1) }
            }
        ) { try join.handle(in: &$0) }
        #expect(runs == 2)
        #expect(reply.channel.channelId == "new")
        let head = try database.read {
            try $0.first("SELECT seq, member_count FROM channel_heads WHERE channel_id = 'new'") { [$0.int(), $0.int()] }
        }
        let seqs = try database.read {
            try $0.rows("SELECT joined_seq FROM members WHERE channel_id = 'new' ORDER BY joined_seq") { $0.int() }
        }
        #expect(head == [seqs.last ?? 0, seqs.count])
        #expect(Set(seqs).count == seqs.count)
    }

    @Test(
        "I3 R25 marking or hiding a channel that another node makes meanwhile waits for the lock on its head: nothing is sent beside it"
    )
    func ownMembership() throws {
        func runs(_ operation: some Handled, in channel: ChannelID) throws -> Int {
            var runs = 0
            // Heads of users are locked after those of channels. Bob's is left to the rule, since it changes in between.
            _ = try inContext(
                of: "bob", Scope.channel(channel).findingUsers,
                before: {
                    runs += 1
                    guard runs == 1 else { return }
                    _ = try perform(CreateChannel(channel: channel), as: "ann", lane: 1)
                    _ = try perform(JoinChannel(channel: channel), as: "bob", lane: 1)
                    _ = try perform(SendMessage(channel: channel, clientId: "1", text: "hi"), as: "ann", lane: 1)
                }
            ) { try operation.handle(in: &$0) }
            return runs
        }
        #expect(try runs(MarkRead(channel: "marked"), in: "marked") == 2)
        #expect(try runs(HideChannel(channel: "hidden"), in: "hidden") == 2)
    }

    @Test("I3 a channel that the batch makes itself is locked by it, unless its creation is rolled back")
    func ownChannel() throws {
        let scope = Scope(channels: ["own"], users: ["ann", "bob"])
        var runs = 0
        try database.write(lane: 0) { transaction in
            runs += 1
            try scope.lock(in: transaction)
            try transaction.attempt {
                var context = context(in: transaction, of: "ann", scope)
                _ = try CreateChannel(channel: "own").handle(in: &context)
            }
            try transaction.attempt {
                var context = context(in: transaction, of: "bob", scope)
                _ = try JoinChannel(channel: "own").handle(in: &context)
            }
        }
        #expect(runs == 1)

        let held = HeldStreams()
        held.insert(.user("ann"))
        held.beginOperation()
        held.insert(.channel("gone"))
        held.insert(.user("ann"))
        held.undoOperation()
        #expect(held.contains(.user("ann")))
        #expect(!held.contains(.channel("gone")))
    }

    @Test("I3 heads locked before an operation stay locked when it is rolled back, even if the answer arrived during it")
    func lockedBefore() throws {
        _ = try perform(CreateChannel(channel: "shared"), as: "ann")
        let send = SendMessage(channel: "shared", clientId: "1", text: "hi")
        let scope = send.scope(for: Caller(user: "ann"))
        var runs = 0
        try database.write(lane: 0) { transaction in
            runs += 1
            try scope.lock(in: transaction)
            _ = try? transaction.attempt {
                _ = try transaction.now()
                throw RoostError(.notPermitted, "No.")
            }
            try transaction.attempt {
                var context = context(in: transaction, of: "ann", scope)
                _ = try send.handle(in: &context)
            }
        }
        #expect(runs == 1)
    }

    @Test("I1 I3 a user made by another node meanwhile keeps everything acknowledged there")
    func user() throws {
        var runs = 0
        let mine = UpsertUser(user: "new", avatarFileId: "picture")
        let after = try inContext(
            of: "backend", role: .service, .user("new"),
            before: {
                runs += 1
                if runs == 1 {
                    _ = try perform(UpsertUser(user: "new", displayName: "Ann"), as: "backend", role: .service, lane: 1)
                }
            }
        ) { try mine.handle(in: &$0) }
        #expect(runs == 2)
        #expect(after.profile.displayName == "Ann")
        #expect(after.profile.avatarFileId == "picture")
        #expect(after.version == 2)
    }

    @Test(
        "I1 a user's first connection waits for the node that makes them, and overwrites nothing",
        arguments: [false, true])
    func firstConnection(looksAreSole: Bool) async throws {
        var options = AppOptions()
        if looksAreSole { options.confusableNames = .refused }
        let chosen = options
        let hasWritten = DispatchSemaphore(value: 0)
        let results = await onThreads(2) { lane in
            failure {
                if lane == 0 {
                    try inContext(of: "backend", role: .service, options: chosen, .user("new"), lane: 0) { context in
                        _ = try UpsertUser(user: "new", displayName: "Ann").handle(in: &context)
                        _ = try context.transaction.first("SELECT 1") { _ in true }
                        hasWritten.signal()
                        try waitUntil { try isSomebodyWaiting() }
                    }
                } else {
                    try inContext(of: "new", options: chosen, .user("new"), lane: 1, before: { hasWritten.wait() }) {
                        // For the second run.
                        hasWritten.signal()
                        try $0.registerCaller(displayName: nil)
                    }
                }
            }
        }
        #expect(results == [nil, nil])
        let name = try database.read {
            try $0.first("SELECT display_name FROM users WHERE user_id = 'new'") { $0.optionalString() }
        }
        #expect(name == "Ann")
    }

    @Test("I3 R24 edits with kept former versions wait for none of another lane's edits in other channels, however many there are")
    func keptVersions() throws {
        var options = AppOptions()
        options.versionSeconds = 3600
        let chosen = options
        // Among this many, two would share a key if channels had keys in common.
        let messages = try "abcdefghijklmnopqrstuvwxyz".map { letter -> Message in
            let id = ChannelID(String(letter))
            _ = try perform(CreateChannel(channel: id), as: "ann")
            return try perform(SendMessage(channel: id, clientId: "1", text: "first"), as: "ann")
        }
        func edit(_ messages: some Sequence<Message>, lane: Int, meanwhile: () throws -> Void = {}) throws {
            let edits = messages.map { EditMessage(channel: $0.channelId, message: $0.messageId, text: "second") }
            var scope = Scope()
            for edit in edits { scope.formUnion(edit.scope(for: Caller(user: "ann"))) }
            try inContext(of: "ann", options: chosen, scope, lane: lane) { context in
                for edit in edits { _ = try edit.handle(in: &context) }
                // Sends the statements whose answers aren't awaited.
                _ = try context.transaction.first("SELECT 1") { _ in true }
                try meanwhile()
            }
        }
        // They would wait for a lock until their lane gives up.
        try edit(messages.prefix(13), lane: 0) { try edit(messages.suffix(13), lane: 1) }
        let count = try database.read { try $0.first("SELECT COUNT(*) FROM message_versions") { $0.int() } }
        #expect(count == messages.count)
    }

    // MARK: Parts

    private func admit(_ user: UserID) throws {
        try inContext(of: user, .user(user)) { try $0.registerCaller(displayName: nil) }
    }

    private func perform<O: Handled>(_ operation: O, as user: UserID, role: AppRole = .user, lane: Int = 0) throws -> O.Response {
        let scope = operation.scope(for: Caller(user: user, role: role))
        return try inContext(of: user, role: role, scope, lane: lane) { try operation.handle(in: &$0) }
    }

    /// Runs a rule in its own transaction, as a lane runs an operation.
    ///
    /// - Parameter before: Runs once the existing heads are locked.
    private func inContext<T>(
        of user: UserID, role: AppRole = .user, options: AppOptions = AppOptions(), _ scope: Scope, lane: Int = 0,
        before: () throws -> Void = {}, _ body: (inout Context) throws -> T
    ) throws -> T {
        try database.write(lane: lane) { transaction in
            // Some wait for another one's lock: a busy machine may exceed the half second that a lane waits.
            try transaction.perform("SET LOCAL lock_timeout = '10s'")
            try scope.lock(in: transaction)
            _ = try transaction.now()
            try before()
            return try transaction.attempt {
                var context = context(in: transaction, of: user, role: role, options: options, scope)
                return try body(&context)
            }
        }
    }

    private func context(
        in transaction: any WriteTransaction, of user: UserID, role: AppRole = .user, options: AppOptions = AppOptions(),
        _ scope: Scope
    ) -> Context {
        Context(
            transaction: transaction, caller: Caller(user: user, role: role), now: Timestamp(milliseconds: 1_772_368_205_250),
            ids: IDGenerator(transaction.idGenerator), options: options, scope: scope)
    }

    /// Whether a transaction waits for another one's lock.
    private func isSomebodyWaiting() throws -> Bool {
        let sql: SQL = """
            SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
            """
        return try database.read { try $0.first(sql) { $0.int() } ?? 0 > 0 }
    }
}
#endif
