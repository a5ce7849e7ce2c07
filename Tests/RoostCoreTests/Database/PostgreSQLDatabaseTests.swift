#if Cluster
import Foundation
import RoostAPI
import RoostCore
import RoostTestSupport
import Synchronization
import Testing

@testable import RoostDatabase

/// Specifics of PostgreSQL: connections, other writers, a server that can be down. Always on a real server.
@Suite("PostgreSQLDatabase")
struct PostgreSQLDatabaseTests {
    private let server: PostgreSQLServer
    private let url: String

    init() throws {
        server = try PostgreSQLServer.shared
        url = try server.makeDatabase()
    }

    @Test("I1 the server syncs, and the sessions wait for it")
    func isDurable() throws {
        let (fsync, synchronousCommit) = try PostgreSQLDatabase(url: url).durability()
        #expect([fsync, synchronousCommit] == ["on", "on"])
    }

    @Test("I1 a session whose URL asks for commits that aren't on disk still waits for the disk", arguments: ["off", "local"])
    func raisesSynchronousCommit(setting: String) throws {
        let database = try PostgreSQLDatabase(url: "\(url)?options=-c%20synchronous_commit%3D\(setting)")
        #expect(try database.durability().synchronousCommit == "on")
        let lane = try database.write(lane: 0) { try $0.first("SELECT current_setting('synchronous_commit')") { $0.string() } }
        #expect(lane == "on")
    }

    @Test(
        "I1 sessions set their own waiting, so a reloaded configuration affects none",
        arguments: [true, false])
    func keepsSynchronousCommit(isLane: Bool) throws {
        let database = try PostgreSQLDatabase(url: url)
        // The server's configuration applies to anything that a session hasn't set itself.
        let read: (any Transaction) throws -> String? = {
            try $0.first("SELECT source FROM pg_settings WHERE name = 'synchronous_commit'") { $0.string() }
        }
        #expect(try (isLane ? database.write(lane: 0, read) : database.read(read)) == "session")
    }

    @Test("I1 every session has limits, and those of the URL stay")
    func limits() throws {
        let names = ["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "application_name"]
        func settings(_ url: String) throws -> [String?] {
            let database = try PostgreSQLDatabase(url: url)
            return try database.write(lane: 0) { transaction in
                try names.map { name in try transaction.first("SELECT current_setting(\(name))") { $0.string() } }
            }
        }
        #expect(try settings(url) == ["30s", "500ms", "15s", "roost"])
        let given = "\(url)?options=-c%20statement_timeout%3D5s%20-c%20lock_timeout%3D0&application_name=mine"
        #expect(try settings(given) == ["5s", "500ms", "15s", "mine"])
    }

    @Test("I24 a connection isn't given up before a statement has had its session's time")
    func silence() throws {
        func connection(_ url: String) throws -> PostgreSQLConnection {
            try PostgreSQLConnection(try PostgreSQLAddress(url: url), isLane: true)
        }
        #expect(try connection(url).responseTimeoutMilliseconds == 40_000)
        #expect(try connection("\(url)?options=-c%20statement_timeout%3D5s").responseTimeoutMilliseconds == 40_000)
        let patient = try connection("\(url)?options=-c%20statement_timeout%3D2min")
        #expect(patient.responseTimeoutMilliseconds == 130_000)
        patient.setUnlimitedWaiting(true)
        #expect(patient.responseTimeoutMilliseconds == nil)
        patient.setUnlimitedWaiting(false)
        #expect(patient.responseTimeoutMilliseconds == 130_000)
    }

    @Test(
        "I24 pauses after silence end with a commit that had something to store, not with one of nothing, nor with a lock that isn't free"
    )
    func ending() throws {
        let database = try PostgreSQLDatabase(url: url, laneCount: 2)
        let other = try PostgreSQLDatabase(url: url)
        func pause() { for _ in 0..<2 { database.silence.noteTimeout(after: .zero) } }
        _ = try database.write(lane: 0) { try $0.execute("INSERT INTO user_heads (user_id, seq) VALUES ('ann', 1)") }
        pause()
        _ = try database.write(lane: 0) { try $0.first("SELECT 1") { $0.int() } }
        _ = try database.write(lane: 0) { try $0.execute("UPDATE user_heads SET seq = 2 WHERE user_id = 'nobody'") }
        try database.write(lane: 0) { try Scope.user("nobody").lock(in: $0) }
        let update: SQL = "UPDATE user_heads SET seq = 2 WHERE user_id = 'ann'"
        try other.write(lane: 0) { transaction in
            try transaction.execute(update)
            let failure = #expect(throws: DatabaseFailure.self) { _ = try database.write(lane: 0) { try $0.execute(update) } }
            #expect(failure?.kind == .locked)
        }
        // The other lane has no connection yet.
        #expect(database.silence.remaining != nil)
        #expect(throws: DatabaseFailure.self) { _ = try database.write(lane: 1) { try $0.execute(update) } }
        _ = try database.write(lane: 0) { try $0.execute(update) }
        #expect(database.silence.remaining == nil)
        _ = try database.write(lane: 1) { try $0.execute(update) }
        pause()
        try database.write(lane: 0) { try Scope.user("ann").lock(in: $0) }
        #expect(database.silence.remaining == nil)
    }

    @Test("I24 a session whose machine has vanished ends within a minute, unless the URL says otherwise")
    func keepAlives() throws {
        let names = ["tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count"]
        func settings(_ url: String) throws -> [String?] {
            try PostgreSQLDatabase(url: url).read { transaction in
                try names.map { name in try transaction.first("SELECT current_setting(\(name))") { $0.string() } }
            }
        }
        #expect(try settings(url) == ["15", "5", "3"])
        #expect(try settings("\(url)?options=-c%20tcp_keepalives_idle%3D60") == ["60", "5", "3"])
    }

    @Test(
        "NF-04 no session reads whole tables if there is an index, or compiles queries to machine code",
        arguments: [true, false])
    func plans(isLane: Bool) throws {
        let database = try PostgreSQLDatabase(url: url)
        let read: (any Transaction) throws -> [String?] = { transaction in
            try ["enable_seqscan", "jit"].map { name in try transaction.first("SELECT current_setting(\(name))") { $0.string() } }
        }
        #expect(try isLane ? database.write(lane: 0, read) == ["off", "off"] : database.read(read) == ["off", "off"])
    }

    @Test("I24 of several nodes that start at once on an empty database, one makes the tables")
    func migratesOnce() async throws {
        let url = try server.makeEmptyDatabase()
        let failures = await onThreads(4) { _ in
            failure {
                let database = try PostgreSQLDatabase(url: url)
                let epoch = try database.write(lane: 0) { transaction in
                    // Three wait for the first one's commit, on a busy machine for longer than the half second that a lane waits.
                    try transaction.perform("SET LOCAL lock_timeout = '10s'")
                    return try transaction.epoch(orNew: "one")
                }
                guard epoch == "one" else { throw Missed("the one epoch") }
            }
        }
        #expect(failures == [nil, nil, nil, nil])
        #expect(try server.run(sql: ["SELECT name FROM migrations"], in: url) == Migrations.steps.map(\.name))
    }

    // MARK: Refusals

    @Test(
        "I24 an invalid URL of a PostgreSQL database is refused, and the refusal keeps its secrets",
        arguments: [
            "", "roost.sqlite", "ann:s3cret@localhost/x", "mysql://ann:s3cret@localhost/x", "host=localhost password=s3cret",
            "postgres://ann:s3cret@localhost:port/x", "postgres://ann:s3cret@localhost:0/x",
            "postgres://ann:s3cret@localhost/x?what=s3cret", "postgres://ann:s3cret@localhost/x?s3cret",
            "postgres://ann:s3%zzcret@localhost/x", "postgres://ann:x@s3cret@localhost/x",
            "postgres://ann:s3cret/x@localhost/x", "postgres://ann:12/s3cret@localhost/x", "postgres://[s3cret/x",
        ])
    func refusesURL(url: String) throws {
        let failure = try #require(throws: DatabaseFailure.self) { try PostgreSQLDatabase(url: url) }
        #expect(failure.kind == .fatal)
        #expect(failure.message.hasPrefix("The database's URL can't be used: "))
        #expect(!failure.message.contains("cret"))
        #expect(url.isEmpty || !failure.message.contains(url))
    }

    @Test("I24 a wrong password is reported without repeating it")
    func refusesPassword() throws {
        try server.run(sql: [
            "DO $$ BEGIN CREATE ROLE locked LOGIN PASSWORD 'right'; EXCEPTION WHEN duplicate_object THEN NULL; END $$"
        ])
        let wrong = url.replacing("roost@", with: "locked:s3cret@")
        let failure = try #require(throws: DatabaseFailure.self) { try PostgreSQLDatabase(url: wrong) }
        #expect(failure.kind == .transaction)
        #expect(failure.message.contains("password authentication failed"))
        #expect(!failure.message.contains("s3cret"))
    }

    @Test("I24 a database in another encoding is refused, with what to do")
    func refusesEncoding() throws {
        let other = try server.makeEmptyDatabase(options: "ENCODING 'LATIN1' TEMPLATE template0")
        let failure = try #require(throws: DatabaseFailure.self) { try PostgreSQLDatabase(url: other) }
        #expect(failure.kind == .fatal)
        #expect(
            failure.message == "The database's encoding is LATIN1, and Roost's text needs UTF8: create it with ENCODING 'UTF8'.")
    }

    @Test("I24 an address on which nothing listens is a temporary failure")
    func refusesNobody() throws {
        let nobody = "postgres://ann:s3cret@127.0.0.1:1/x"
        let failure = try #require(throws: DatabaseFailure.self) { try PostgreSQLDatabase(url: nobody) }
        #expect(failure.kind == .transaction)
        #expect(!failure.message.contains("s3cret"))
    }

    @Test("text with a NUL is refused, and only its operation fails")
    func refusesNUL() throws {
        let database = try PostgreSQLDatabase(url: url)
        let kinds: [DatabaseFailure.Kind?] = try database.write(lane: 0) { transaction in
            try ["a", "b\u{0}", "c"].map { name in
                do {
                    try transaction.attempt {
                        let first = name.utf8.count > 1 ? "b" : "x\(name)"
                        try transaction.perform("INSERT INTO settings (name, value) VALUES (\(first), '')")
                        try transaction.perform("INSERT INTO settings (name, value) VALUES (\(name), '')")
                    }
                    return nil
                } catch let failure as DatabaseFailure where failure.kind == .statement {
                    return failure.kind
                }
            }
        }
        #expect(kinds == [nil, .statement, nil])
        #expect(try names(in: database) == ["a", "c", "xa", "xc"])
    }

    // MARK: Lanes

    @Test("I3 each lane of each node has its own number for ids, which is free again when the lane is gone")
    func generatorNumbers() throws {
        func numbers(_ database: PostgreSQLDatabase) throws -> [Int64] {
            try (0..<database.laneCount).map { lane in try database.write(lane: lane) { $0.idGenerator.value } }
        }
        let first = try PostgreSQLDatabase(url: url, laneCount: 8)
        let others: [Int64]
        do {
            let second = try PostgreSQLDatabase(url: url, laneCount: 8)
            others = try numbers(second)
        }
        let own = try numbers(first)
        #expect(Set(own + others).count == 16)
        #expect((own + others).allSatisfy { (0...1023).contains($0) })
        try waitUntil { try locks() == own.sorted() }
        #expect(try numbers(first) == own)
    }

    @Test("I3 a lane whose backend was ended gets its number again or a free one, never another lane's")
    func terminatedLane() throws {
        let database = try PostgreSQLDatabase(url: url, laneCount: 3)
        let before = try (0..<3).map { lane in try database.write(lane: lane) { $0.idGenerator.value } }
        try endBackends(
            "AND pid = (SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid = \(before[1]) AND database = d.oid)")
        let after = try (0..<3).map { lane in try database.write(lane: lane) { $0.idGenerator.value } }
        #expect([after[0], after[2]] == [before[0], before[2]])
        #expect(Set(after).count == 3)
        #expect(try locks() == after.sorted())
    }

    @Test("I18 NF-04 statements that don't recur are forgotten by the server too, and those that recur stay prepared")
    func fewStatements() throws {
        let database = try PostgreSQLDatabase(url: url, laneCount: 1, readerCount: 1)
        func text(_ number: Int) -> SQL {
            (0..<12).reduce("SELECT 0") { text, bit in number >> bit & 1 == 1 ? "\(text), 1" : "\(text), 2" }
        }
        func namesOfAgain() throws -> [String] {
            try database.read {
                try $0.rows("SELECT name FROM pg_prepared_statements WHERE statement = 'SELECT 7 AS again'") { $0.string() }
            }
        }
        var first: [String] = []
        for number in 0..<2500 {
            try database.read { transaction in
                var found = try transaction.rows(text(number)) { $0.int64() }
                if number % 64 == 0 { found += try transaction.rows("SELECT 7 AS again") { $0.int64() } }
                #expect(found == (number % 64 == 0 ? [0, 7] : [0]))
            }
            if number == 0 { first = try namesOfAgain() }
            // A statement that can't be prepared doesn't exist to be closed.
            if number == 300 {
                #expect(throws: (any Error).self) { try database.read { try $0.rows("SELECT a FROM nowhere") { $0.int64() } } }
            }
        }
        let count = try database.read { try $0.first("SELECT COUNT(*) FROM pg_prepared_statements") { $0.int64() } } ?? 0
        #expect(count > 512 && count <= 2 * 512 + 64)
        #expect(try first.count == 1 && namesOfAgain() == first)
    }

    /// The numbers that connections to this database hold.
    private func locks() throws -> [Int64] {
        let sql = """
            SELECT objid FROM pg_locks JOIN pg_database d ON d.oid = database
            WHERE locktype = 'advisory' AND d.datname = current_database() AND objid < 1024 ORDER BY objid
            """
        return try server.run(sql: [sql], in: url).compactMap { Int64($0) }
    }

    /// Ends the connections to this database, and waits until they are gone.
    private func endBackends(_ condition: String = "") throws {
        let ended = try server.run(
            sql: [
                """
                SELECT pid, pg_terminate_backend(pid, 10000) FROM pg_stat_activity JOIN pg_database d ON d.datname = current_database()
                WHERE pg_stat_activity.datname = current_database() AND pid <> pg_backend_pid() \(condition)
                """
            ], in: url)
        #expect(!ended.isEmpty)
    }

    private func names(in database: PostgreSQLDatabase) throws -> [String] {
        try database.read { try $0.rows("SELECT name FROM settings ORDER BY name") { $0.string() } }
    }
}
#endif
