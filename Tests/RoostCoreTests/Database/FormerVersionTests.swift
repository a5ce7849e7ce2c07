import Foundation
import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@testable import RoostDatabase

/// Databases of servers of former versions. `Fixtures/README.md` describes their contents.
@Suite("Databases of former versions")
struct FormerVersionTests {
    private static let fixtures = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Fixtures")

    @Test("AM-43 AM-44 SB-27 unread counts and hidden channels are the same before and after the step of what counts")
    func whatCounts() throws {
        let world = try CoreWorld(copying: Self.fixtures.appending(path: "2026-11"))
        let steps = Set(try world.rows("SELECT name FROM migrations") { $0.string() })
        #expect(steps == Set(Migrations.steps.map(\.name)))
        func unread() throws -> [Int] {
            try ["general", "quiet", "loud"].map { try world.perform(GetUnread(channel: $0), as: "bob").unreadCount }
        }
        #expect(try unread() == [3, 1, 2])
        #expect(try world.perform(GetTotalUnread(), as: "bob") == TotalUnread(unreadCount: 6, unreadChannelCount: 3))
        let listed = try world.perform(QueryChannels(hidden: .unhiddenOnly), as: "bob").items.map(\.channel)
        #expect(Set(listed.map(\.channelId.rawValue)) == ["general", "loud"])
        #expect(listed.allSatisfy { $0.counters.ordinal == $0.counters.messageCount })
        let texts = try world.perform(ListMessages(channel: "general"), as: "bob").messages.map(\.text)
        #expect(texts == ["message 1", "edited", "", "message 4", "message 5", "from bob"])

        // Everything continues from there.
        world.now = Timestamp(milliseconds: 1_800_000_000_000)
        for channel: ChannelID in ["general", "quiet"] { try world.send("after", to: channel, as: "ann") }
        #expect(try unread() == [4, 2, 2])
        #expect(try world.perform(MarkRead(channel: "general", seq: 4), as: "bob").unreadCount == 3)
        let back = try world.perform(QueryChannels(hidden: .unhiddenOnly), as: "bob").items.map(\.channel.channelId.rawValue)
        #expect(Set(back) == ["general", "loud", "quiet"])
        let missed = try world.perform(Resume(after: 0, channels: ["general": 9]), as: "bob").channels.first { $0.isFresh == nil }
        #expect(missed?.rows.messages?.map(\.text) == ["after"])
    }

    @Test("MN-16 SB-37 SB-59 messages from before the step of every kind are plain texts, and can be all that messages can since")
    func messagesOfEveryKind() throws {
        let world = try CoreWorld(copying: Self.fixtures.appending(path: "2026-11"))
        world.now = Timestamp(milliseconds: 1_800_000_000_000)
        let before = try world.perform(ListMessages(channel: "general"), as: "bob").messages
        for message in before {
            #expect(message.kind == .text && message.mentionees == nil && message.metaArrays == nil && !message.isSilent)
            #expect(message.pushOption == .default && message.targetLanguages == nil && !message.isDeletedForMe)
        }
        #expect(try !world.perform(GetUnread(channel: "general"), as: "bob").hasMention)
        let theirs = try #require(before.first { $0.sender != "bob" && $0.deletedAt == nil })
        try world.perform(
            EditMessage(channel: "general", message: theirs.messageId, mentionees: [.users(["bob"]), .channel]), as: theirs.sender)
        try world.perform(
            UpdateMetaArrays(channel: "general", message: theirs.messageId, create: ["k"], add: ["k": ["v"]]), as: theirs.sender)
        #expect(try world.perform(GetUnread(channel: "general"), as: "bob").hasMention)
        #expect(try world.perform(ListMentions(), as: "bob").items.map(\.metaArrays) == [["k": ["v"]]])
        try world.perform(DeleteMessagesForMe(channel: "general", messages: [theirs.messageId]), as: "bob")
        #expect(try !world.perform(GetUnread(channel: "general"), as: "bob").hasMention)
        #expect(try world.perform(GetUnread(channel: "general"), as: "bob").unreadCount == 3)
        let texts = try world.perform(ListMessages(channel: "general"), as: "bob").messages.map(\.text)
        #expect(texts == before.map { $0.seq == theirs.seq ? "" : $0.text })
    }

    @Test(
        "on PostgreSQL the table of members, or each part of it, leaves room for changing rows, unless an operator has set how much",
        .enabled(if: TestDatabase.Engine.chosen == .postgresql))
    func roomForChanges() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        func options() throws -> [String] {
            try world.rows(
                """
                SELECT relname || ' ' || array_to_string(reloptions, ',') FROM pg_class
                WHERE relname IN ('members', 'members_0', 'members_1') AND reloptions IS NOT NULL ORDER BY relname
                """
            ) { $0.string() }
        }
        #expect(try options() == ["members fillfactor=85"])
        let undo: SQL = "DELETE FROM migrations WHERE name = '0033 rows that move'"
        for statement: SQL in ["ALTER TABLE members SET (fillfactor = 80)", undo] { try world.execute(statement) }
        try world.restart()
        #expect(try options() == ["members fillfactor=80"])
        // The columns that a message changes of its sender's row.
        let holding = try world.rows(
            """
            SELECT indexname FROM pg_indexes
            WHERE tablename = 'members' AND indexdef ~ 'read_count|receipt_count|last_sent_seq'
            """
        ) { $0.string() }
        #expect(holding == [])
        // As in docs/operations/cluster.md.
        for statement: SQL in [
            "ALTER TABLE members RENAME TO members_whole",
            "CREATE TABLE members (LIKE members_whole INCLUDING ALL) PARTITION BY HASH (channel_id)",
            "CREATE TABLE members_0 PARTITION OF members FOR VALUES WITH (MODULUS 2, REMAINDER 0) WITH (fillfactor = 80)",
            "CREATE TABLE members_1 PARTITION OF members FOR VALUES WITH (MODULUS 2, REMAINDER 1)",
            "INSERT INTO members SELECT * FROM members_whole", "DROP TABLE members_whole",
            "CREATE INDEX members_by_user ON members (user_id)", undo,
        ] {
            try world.execute(statement)
        }
        try world.restart()
        #expect(try options() == ["members_0 fillfactor=80", "members_1 fillfactor=85"])
        try world.send("hello", to: "general", as: "ann")
        #expect(try world.perform(GetTotalUnread(), as: "bob").unreadCount == 1)
    }

    @Test("roles grant the same as before their permissions were renamed")
    func permissionNames() throws {
        let world = try CoreWorld()
        let before = #"{"role":"clerk","rank":3,"permissions":["channel.rateLimit","member.invite","message.send"]}"#
        try world.execute("INSERT INTO roles (role, definition) VALUES ('clerk', \(before))")
        try world.execute("DELETE FROM migrations WHERE name = '0011 names of permissions'")
        try world.restart()
        let clerk = try world.perform(ListRoles(), as: "root", role: .admin).first { $0.role == "clerk" }
        #expect(clerk?.permissions == [.channelSetRateLimit, .invitationSend, .messageSend])
    }

    @Test("I5 invitations sent to a channel's members before the step of kinds of rows are among its changes after it")
    func rowKinds() throws {
        let world = try CoreWorld()
        for user in ["bob", "cid"] as [UserID] { try world.user(user) }
        try world.perform(UpdatePreferences(autoAcceptInvitations: false), as: "cid")
        try world.channel("team", type: .group, owner: "ann", members: ["bob"])
        try world.perform(InviteMembers(channel: "team", users: ["cid"]), as: "ann")
        func invited() throws -> [UserID] {
            let rows = try world.perform(GetChannelChanges(channel: "team", after: 0), as: "bob").rows
            return (rows.invitations ?? []).filter { $0.state == .pending }.map(\.userId)
        }
        #expect(try invited() == ["cid"])
        try world.execute("ALTER TABLE channel_heads DROP COLUMN row_kinds")
        try world.execute("DELETE FROM migrations WHERE name = '0013 kinds of rows'")
        try world.restart()
        #expect(try invited() == ["cid"])
    }

    @Test("X-33 X-37 D-29 SB-64 users from before the steps of sharing share all, and have no drafts, devices, status or mutes")
    func sharing() throws {
        let world = try CoreWorld(copying: Self.fixtures.appending(path: "2026-11"))
        world.now = Timestamp(milliseconds: 1_800_000_000_000)
        let users: [UserID] = ["ann", "bob", "eve"]
        for user in users {
            let preferences = try world.perform(GetPreferences(), as: user)
            #expect(preferences == Preferences(autoAcceptInvitations: preferences.autoAcceptInvitations), "\(user)")
            #expect(try world.perform(GetUser(user: user), as: "ann").status == nil)
            #expect(try world.perform(ListDevices(), as: user) == [])
            #expect(try world.perform(ListDrafts(), as: user).items == [])
        }
        let offline = users.map { UserPresence(userId: $0, isOnline: false) }
        #expect(try world.perform(ListUserPresence(users: users), as: "ann").users == offline)
        let marks: SQL = "SELECT receipt_seq, receipt_count, delivered_seq, delivered_at, notifications_muted_until FROM members"
        let stored = try world.rows(marks) { row in (0..<5).map { _ in row.optionalInt64() } }
        #expect(!stored.isEmpty && stored.allSatisfy { $0 == [0, 0, 0, nil, nil] })

        // Everything continues from there.
        try world.device("phone", of: "bob")
        try world.perform(SetDraft(channel: "general", text: "so far"), as: "bob")
        try world.perform(UpdateMe(status: "away"), as: "bob")
        try world.perform(UpdatePreferences(sharesTyping: false, sharesPresence: false), as: "bob")
        try world.perform(MuteNotifications(channel: "general"), as: "bob")
        #expect(try world.perform(ListDevices(), as: "bob").map(\.deviceId) == ["phone"])
        #expect(try world.perform(ListDrafts(), as: "bob").items.map(\.text) == ["so far"])
        #expect(try world.perform(GetUser(user: "bob"), as: "ann").status == "away")
        let preferences = try world.perform(GetPreferences(), as: "bob")
        #expect(!preferences.sharesTyping && preferences.sharesReading && preferences.sharesDelivery && !preferences.sharesPresence)
        #expect(try world.perform(GetTotalUnread(), as: "bob") == TotalUnread(unreadCount: 3, unreadChannelCount: 2))
    }

    @Test("AM-45 X-33 others see what members had read before the steps of receipts and of delivery; nothing counts as delivered")
    func receipts() throws {
        let world = try CoreWorld(copying: Self.fixtures.appending(path: "2026-11"))
        world.now = Timestamp(milliseconds: 1_800_000_000_000)
        func position() throws -> ReadPosition? {
            try world.perform(ListReaders(channel: "general"), as: "ann").items.first { $0.userId == "bob" }
        }
        let before = try #require(try position())
        #expect(before.readSeq == 3 && before.lastReadAt != nil)
        #expect(before.deliveredSeq == nil && before.lastDeliveredAt == nil)
        // Messages marked as unread again stay read for others.
        #expect(try world.perform(MarkUnread(channel: "general", seq: 2), as: "bob").unreadCount == 5)
        #expect(try position() == before)
        try world.perform(UpdateChannel(channel: "general", policy: PolicyChanges(deliveryEvents: true)), as: "ann")
        try world.perform(MarkDelivered(channel: "general", seq: 9), as: "bob")
        var delivered = before
        (delivered.deliveredSeq, delivered.lastDeliveredAt) = (9, world.now)
        #expect(try position() == delivered)
    }

    @Test("MN-16 R35 others' channel mentions from before their migration step are found despite later ones of the reader's own")
    func mentionsByOthers() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        func mention(_ clientId: ClientID, by user: UserID) throws {
            let send = SendMessage(channel: "general", clientId: clientId, text: "@all", mentionees: [.channel])
            try world.perform(send, as: user)
        }
        func isMentioned() throws -> Bool { try world.perform(GetUnread(channel: "general"), as: "bob").hasMention }
        try mention("1", by: "ann")
        for clientId in ["1", "2", "3"] as [ClientID] { try mention(clientId, by: "bob") }
        try world.execute("ALTER TABLE channel_mentions DROP COLUMN other_mention_seq")
        try world.execute("DELETE FROM migrations WHERE name = '0025 mentions by others'")
        try world.restart()
        #expect(try isMentioned())
        try mention("4", by: "bob")
        #expect(try isMentioned())
        try world.perform(MarkRead(channel: "general"), as: "bob")
        try mention("5", by: "bob")
        #expect(try !isMentioned())
        try mention("2", by: "ann")
        #expect(try isMentioned())
    }

    #if Cluster
    @Test(
        "a migration that fails in any of its steps leaves a PostgreSQL database unchanged, and the next start does all of it",
        // The earlier steps were made by the dump's version.
        arguments: Migrations.steps.map(\.name).drop { $0 != "0012 one version at a time" })
    func brokenOff(step: String) throws {
        let server = try PostgreSQLServer.shared
        let dump = try String(contentsOf: Self.fixtures.appending(path: "2026-11/postgresql.sql"), encoding: .utf8)
        let url = try server.makeDatabase(from: dump)
        let role = #"{"role":"clerk","rank":3,"permissions":["channel.rateLimit","member.invite"]}"#
        try server.run(sql: ["INSERT INTO roles (role, definition) VALUES ('clerk', '\(role)')"], in: url)
        func state() throws -> [String] {
            try server.run(
                sql: [
                    "SELECT table_name || '.' || column_name FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1",
                    "SELECT name FROM migrations ORDER BY 1", "SELECT definition FROM roles",
                    "SELECT channel_id, seq, message_count FROM channel_heads ORDER BY 1",
                    "SELECT channel_id || seq || ordinal || text FROM messages ORDER BY 1",
                ], in: url)
        }
        let before = try state()

        // The server ends the migrating session right after the step.
        try server.run(
            sql: [
                """
                CREATE FUNCTION end_session() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                    PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(10); RETURN NULL;
                END $$
                """,
                """
                CREATE TRIGGER end_session AFTER INSERT ON migrations FOR EACH ROW WHEN (NEW.name = '\(step)')
                EXECUTE FUNCTION end_session()
                """,
            ], in: url)
        let failure = #expect(throws: DatabaseFailure.self) { try PostgreSQLDatabase(url: url) }
        #expect(failure?.kind != .fatal)
        #expect(try state() == before)

        try server.run(sql: ["DROP FUNCTION end_session CASCADE"], in: url)
        _ = try PostgreSQLDatabase(url: url)
        #expect(try server.run(sql: ["SELECT name FROM migrations ORDER BY 1"], in: url) == Migrations.steps.map(\.name).sorted())
        #expect(
            try server.run(sql: ["SELECT channel_id FROM channel_heads WHERE ordinal <> message_count"], in: url) == [])
        #expect(
            try server.run(sql: ["SELECT definition FROM roles"], in: url)
                == [#"{"role":"clerk","rank":3,"permissions":["channel.setRateLimit","invitation.send"]}"#])
    }

    @Test("I24 a migration waits for a table that is being dumped, and no one waits for the migration for long")
    func besideDump() async throws {
        let server = try PostgreSQLServer.shared
        let dump = try String(contentsOf: Self.fixtures.appending(path: "2026-11/postgresql.sql"), encoding: .utf8)
        let url = try server.makeDatabase(from: dump)
        let address = try PostgreSQLAddress(url: url)
        let dumping = try PostgreSQLConnection(address, isLane: false)
        // It stays idle for as long as the migration takes.
        _ = try dumping.ask("SET idle_in_transaction_session_timeout = 0")
        try dumping.send("BEGIN ISOLATION LEVEL REPEATABLE READ")
        let reads: [SQL] = [
            "SELECT 1 FROM members LIMIT 1", "SELECT 1 FROM messages LIMIT 1", "SELECT 1 FROM channel_heads LIMIT 1",
            "SELECT 1 FROM users LIMIT 1",
        ]
        for read in reads { _ = try dumping.ask(read) }

        let (reports, continuation) = AsyncStream.makeStream(of: String.self)
        let migrating = Task.detached {
            defer { continuation.finish() }
            return try PostgreSQLDatabase(url: url) { continuation.yield($0) }
        }
        var words: [String] = []
        for await word in reports.prefix(2) { words.append(word) }
        #expect(words.count == 2 && words.allSatisfy { $0.contains("pg_dump") })
        // If the migration stayed in the lock queue, this would wait for the dump. On a busy machine the migration waits as long as its work took.
        let other = try PostgreSQLConnection(address, isLane: false)
        try other.send("SET lock_timeout = '5s'")
        for read in reads { _ = try other.ask(read) }
        _ = try dumping.ask("COMMIT")
        _ = try await migrating.value
        #expect(try server.run(sql: ["SELECT count(*) FROM migrations"], in: url) == ["\(Migrations.steps.count)"])
    }

    @Test("I24 a migration waits for transactions of a node of the former version, and that node writes nothing after it")
    func formerNode() async throws {
        let server = try PostgreSQLServer.shared
        let dump = try String(contentsOf: Self.fixtures.appending(path: "2026-11/postgresql.sql"), encoding: .utf8)
        let url = try server.makeDatabase(from: dump)
        let former = try PostgreSQLConnection(try PostgreSQLAddress(url: url), isLane: true)
        // It stays idle until the migration waits for it.
        _ = try former.ask("SET idle_in_transaction_session_timeout = 0")
        // Begins like a transaction of that version, before its writes.
        func begin() throws {
            try former.send("BEGIN ISOLATION LEVEL READ COMMITTED")
            _ = try former.ask("SELECT revision FROM access_head WHERE id = 1")
        }
        try begin()

        let migrating = Task.detached { try PostgreSQLDatabase(url: url) }
        try await Polling.value {
            try server.run(
                sql: [
                    """
                    SELECT mode FROM pg_locks JOIN pg_database ON pg_database.oid = database
                    WHERE NOT granted AND datname = current_database()
                    """
                ], in: url)
        } until: {
            $0 == ["AccessExclusiveLock"]
        }
        _ = try former.ask(
            """
            INSERT INTO messages (channel_id, seq, message_id, change_seq, ordinal, sender_id, client_id, text, created_at)
            SELECT channel_id, seq + 1, 1, seq + 1, message_count + 1, 'ann', 'in time', 'in time', 1
            FROM channel_heads WHERE channel_id = 'general'
            """)
        _ = try former.ask(
            "UPDATE channel_heads SET seq = seq + 1, message_count = message_count + 1 WHERE channel_id = 'general'")
        _ = try former.ask("COMMIT")
        _ = try await migrating.value

        // Its earlier transaction counts.
        let state = "SELECT ordinal || ' of ' || message_count || ', ' || seq FROM channel_heads WHERE channel_id = 'general'"
        #expect(try server.run(sql: ["SELECT counts FROM messages WHERE client_id = 'in time'"], in: url) == ["1"])
        let counters = try server.run(sql: [state], in: url)
        #expect(counters.first?.hasPrefix("7 of 7, ") == true)
        // It can't begin another one.
        let failure = #expect(throws: (any Error).self) { try begin() }
        #expect("\(failure as Any)".contains("access_head"))
        #expect(try server.run(sql: [state], in: url) == counters)
    }
    #endif
}
