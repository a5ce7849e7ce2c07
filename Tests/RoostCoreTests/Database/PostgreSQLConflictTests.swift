#if Cluster
import Foundation
import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Synchronization
import Testing

/// Conflicting writers, and operations that fail among others, on a real PostgreSQL server.
@Suite("PostgreSQLDatabase: conflicts")
struct PostgreSQLConflictTests {
    private struct Refused: Error {}
    private let url: String

    init() throws { url = try PostgreSQLServer.shared.makeDatabase() }

    @Test("I3 I23 of two deadlocked transactions one is run again, and both are stored")
    func deadlock() async throws {
        // Sooner than a lane gives up waiting: otherwise it would be a lock timeout.
        let database = try PostgreSQLDatabase(url: "\(url)?options=-c%20deadlock_timeout%3D50ms", laneCount: 2)
        try add(["a", "b"], to: database)
        let runs = Mutex([0, 0])
        let locked = [DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)]
        /// Locks one row, waits until the other transaction has locked its own, and then wants that one too.
        @Sendable func cross(_ lane: Int) -> String? {
            let rows = lane == 0 ? ["a", "b"] : ["b", "a"]
            return failure {
                try database.write(lane: lane) { transaction in
                    let run = runs.withLock { runs in
                        runs[lane] += 1
                        return runs[lane]
                    }
                    try transaction.perform(Self.patience)
                    try transaction.execute("UPDATE settings SET value = value || \("\(lane)") WHERE name = \(rows[0])")
                    if run == 1 {
                        locked[lane].signal()
                        // A failed transaction never gets the lock. The runs are counted below.
                        _ = locked[1 - lane].wait(timeout: .now() + 20)
                    }
                    try transaction.execute("UPDATE settings SET value = value || \("\(lane)") WHERE name = \(rows[1])")
                }
            }
        }
        #expect(await onThreads(2) { cross($0) } == [nil, nil])
        // The repeated one may run before the other has got its row, and conflict again.
        #expect(runs.withLock { $0.contains { $0 > 1 } })
        let values = try database.read { try $0.rows("SELECT value FROM settings ORDER BY name") { $0.string().count } }
        #expect(values == [2, 2])
    }

    @Test("a taken key makes the transaction run again, and the lane then checks keys before it assumes that they are free")
    func takenKey() throws {
        let database = try PostgreSQLDatabase(url: url)
        try add(["a"], to: database)
        /// Returns whether the row seemed to be inserted in each run of the body.
        func runs(inserting name: String) throws -> [Bool] {
            var runs: [Bool] = []
            try database.write(lane: 0) { transaction in
                let isInserted = try transaction.attempt {
                    try transaction.perform("INSERT INTO settings (name, value) VALUES (\("beside \(name)"), '')")
                    return try transaction.insert(NewRow(.new, [.text(name), .text("")]))
                }
                runs.append(isInserted)
            }
            return runs
        }
        #expect(try runs(inserting: "b") == [true])
        #expect(try runs(inserting: "a") == [true, false])
        #expect(try runs(inserting: "c") == [true])
        try database.write(lane: 0) { try $0.perform("DELETE FROM settings WHERE name LIKE 'beside%'") }
        #expect(try runs(inserting: "a") == [false])
    }

    @Test("replacing a row in the transaction that inserted it costs no second run, nor do more rows than one statement holds")
    func replacedRow() throws {
        let database = try PostgreSQLDatabase(url: url)
        var runs = 0
        try database.write(lane: 0) { transaction in
            runs += 1
            for number in 0..<400 {
                let row = NewRow(.replacing, [.text("row \(number % 300)"), .text("\(number)")])
                try transaction.insert(row, named: "\(number % 300)")
            }
        }
        #expect(runs == 1)
        let values = try database.read { transaction in
            try transaction.rows("SELECT value FROM settings WHERE name LIKE 'row %'") { Int($0.string()) ?? 0 }
        }
        #expect(values.sorted() == Array(100..<400))
    }

    @Test("I23 a transaction that can't be serialized is run again from its beginning")
    func serialization() throws {
        let database = try PostgreSQLDatabase(url: url)
        var runs = 0
        try database.write(lane: 0) { transaction in
            runs += 1
            try transaction.attempt { try transaction.perform("INSERT INTO settings (name, value) VALUES ('a', \("\(runs)"))") }
            // Even if the failure is ignored, the transaction isn't committed.
            if runs < 3 { _ = try? transaction.attempt { try transaction.execute(Self.notSerializable) } }
        }
        #expect(runs == 3)
        #expect(try rows(of: database) == ["a3"])
    }

    @Test("I23 a transaction that can never be serialized fails after some runs")
    func neverSerializable() throws {
        let database = try PostgreSQLDatabase(url: url)
        var runs = 0
        let failure = #expect(throws: DatabaseFailure.self) {
            try database.write(lane: 0) { transaction in
                runs += 1
                try transaction.execute(Self.notSerializable)
            }
        }
        #expect(failure?.kind == .transaction)
        #expect(runs == 6)
        try add(["a"], to: database)
    }

    private static let notSerializable: SQL = """
        DO $$ BEGIN RAISE EXCEPTION 'another was in the way' USING ERRCODE = '40001'; END $$
        """

    @Test("I23 a lock that isn't free in time ends the transaction, and says so: the caller decides what waits for it")
    func lockTimeout() throws {
        let holder = try PostgreSQLDatabase(url: url)
        let database = try PostgreSQLDatabase(url: "\(url)?options=-c%20lock_timeout%3D50ms")
        try add(["a"], to: holder)
        let update: SQL = "UPDATE settings SET value = 'x' WHERE name = 'a'"
        var runs = 0
        let failure = #expect(throws: DatabaseFailure.self) {
            try holder.write(lane: 0) { transaction in
                try transaction.execute(update)
                try database.write(lane: 0) { transaction in
                    runs += 1
                    try transaction.execute(update)
                }
            }
        }
        #expect(failure?.kind == .locked)
        #expect(failure?.message.contains("55P03") == true)
        #expect(runs == 1)
        #expect(try rows(of: database) == ["a"])
    }

    @Test("I1 I23 a statement that needs a damaged page ends the transaction, and says so: the others then run without it")
    func damagedPage() throws {
        let database = try PostgreSQLDatabase(url: url)
        for damage in Self.damages {
            var runs = 0
            let failure = #expect(throws: DatabaseFailure.self) {
                try database.write(lane: 0) { transaction in
                    runs += 1
                    try transaction.attempt { try transaction.perform("INSERT INTO settings (name, value) VALUES ('a', '')") }
                    // Even if the failure is ignored, the transaction isn't committed.
                    _ = try? transaction.attempt { try transaction.execute(damage) }
                }
            }
            #expect(failure?.kind == .damage)
            #expect(runs == 1)
            let refusal = #expect(throws: DatabaseFailure.self) { try database.read { _ = try $0.execute(damage) } }
            #expect(refusal?.kind == .damage)
        }
        #expect(try rows(of: database) == [])
        try add(["b"], to: database)
        #expect(try rows(of: database) == ["b"])
    }

    /// Statements that fail as if they met a damaged page of a table, and of an index.
    private static let damages: [SQL] = [
        "DO $$ BEGIN RAISE EXCEPTION 'invalid page in block 7' USING ERRCODE = 'data_corrupted'; END $$",
        "DO $$ BEGIN RAISE EXCEPTION 'unexpected zero page' USING ERRCODE = 'index_corrupted'; END $$",
    ]

    @Test("SB-11 R04 of two channels made distinct for the same members at once, the second is refused, and nothing fails")
    func distinctAtOnce() async throws {
        let database = try PostgreSQLDatabase(url: url, laneCount: 2)
        for user in ["ann", "bob"] as [UserID] {
            try inContext(of: user, .user(user), database) { try $0.registerCaller(displayName: nil) }
        }
        for id in ["one", "two"] as [ChannelID] {
            _ = try perform(CreateChannel(channel: id, type: .group, users: ["bob"]), database)
        }
        let hasWritten = DispatchSemaphore(value: 0)
        let results = await onThreads(2) { lane in
            let update = UpdateChannel(channel: lane == 0 ? "one" : "two", isDistinct: true)
            if lane == 1 { hasWritten.wait() }
            return failure {
                // If it fails among others it isn't run again alone: it would meet the other's row and end as an internal error.
                _ = try perform(update, database, lane: lane, behindFailure: lane == 1) {
                    guard lane == 0 else { return }
                    hasWritten.signal()
                    try waitUntil { try isSomebodyWaiting(database) }
                }
            }
        }
        #expect(results[0] == nil)
        #expect(results[1]?.contains("These members already have a distinct channel.") == true, "\(results)")
    }

    // MARK: Operations among others

    @Test("I23 one operation of a batch fails after it has written: the rest stays, and the batch runs twice")
    func carefulMode() throws {
        let database = try PostgreSQLDatabase(url: url)
        try add(["5"], to: database)
        var runs = 0
        let outcomes: [Bool] = try database.write(lane: 0) { transaction in
            runs += 1
            try transaction.perform("INSERT INTO settings (name, value) VALUES ('outside', '')")
            return (0..<10).map { number in
                let isStored: Void? = try? transaction.attempt {
                    try transaction.perform("INSERT INTO settings (name, value) VALUES (\("before \(number)"), '')")
                    let sql: SQL = "INSERT INTO settings (name, value) VALUES (\("\(number)"), '')"
                    if number % 2 == 0 { try transaction.execute(sql) } else { try transaction.perform(sql) }
                    if number == 7 { throw Refused() }
                }
                return isStored != nil
            }
        }
        #expect(outcomes == (0..<10).map { $0 != 5 && $0 != 7 })
        #expect(runs == 2)
        let stored = (0..<10).filter { $0 != 5 && $0 != 7 }
        #expect(try rows(of: database) == (stored.map { "\($0)" } + ["5"] + stored.map { "before \($0)" } + ["outside"]).sorted())
    }

    @Test("I23 a statement that fails outside any operation ends the transaction, even if its failure is ignored")
    func failureOutside() throws {
        let database = try PostgreSQLDatabase(url: url)
        for isAwaited in [true, false] {
            let failure = #expect(throws: DatabaseFailure.self) {
                try database.write(lane: 0) { transaction in
                    try transaction.execute("INSERT INTO settings (name, value) VALUES ('a', '')")
                    let again: SQL = "INSERT INTO settings (name, value) VALUES ('a', '')"
                    if isAwaited { _ = try? transaction.execute(again) } else { try transaction.perform(again) }
                }
            }
            #expect(failure?.kind == .statement)
        }
        #expect(try rows(of: database) == [])
    }

    @Test("I23 ten thousand statements without awaited answers succeed, large ones too")
    func longPipeline() throws {
        let database = try PostgreSQLDatabase(url: url)
        let large = String(repeating: "x", count: 100_000)
        try database.write(lane: 0) { transaction in
            for number in 0..<10_000 {
                try transaction.perform("INSERT INTO settings (name, value) VALUES (\("\(number)"), '')")
            }
            // Each answer is as large as its statement.
            for number in 0..<200 {
                try transaction.perform(
                    "INSERT INTO settings (name, value) VALUES (\("large \(number)"), \(large)) RETURNING value")
            }
        }
        let counts = try database.read {
            try $0.first("SELECT COUNT(*), SUM(LENGTH(value)) FROM settings") { [$0.int(), $0.int()] }
        }
        #expect(counts == [10_200, 20_000_000])
    }

    // MARK: Parts

    /// The first statement of a transaction that should get another one's lock: a busy machine may exceed the half second that a lane waits.
    private static let patience: SQL = "SET LOCAL lock_timeout = '10s'"

    private func add(_ names: [String], to database: PostgreSQLDatabase) throws {
        try database.write(lane: 0) { transaction in
            for name in names { try transaction.perform("INSERT INTO settings (name, value) VALUES (\(name), '')") }
        }
    }

    /// Performs an operation of ann's. The body runs after it, before the commit.
    private func perform<O: Handled>(
        _ operation: O, _ database: PostgreSQLDatabase, lane: Int = 0, behindFailure: Bool = false, _ body: () throws -> Void = {}
    ) throws -> O.Response {
        let scope = operation.scope(for: Caller(user: "ann"))
        return try inContext(of: "ann", scope, database, lane: lane, behindFailure: behindFailure) { context in
            let response = try operation.handle(in: &context)
            // Sends the statements whose answers aren't awaited.
            _ = try context.transaction.first("SELECT 1") { _ in true }
            try body()
            return response
        }
    }

    /// - Parameter behindFailure: Whether another operation fails before it in the same transaction.
    private func inContext<T>(
        of user: UserID, _ scope: Scope, _ database: PostgreSQLDatabase, lane: Int = 0, behindFailure: Bool = false,
        _ body: (inout Context) throws -> T
    ) throws -> T {
        try database.write(lane: lane) { transaction in
            try transaction.perform(Self.patience)
            try scope.lock(in: transaction)
            if behindFailure { _ = try? transaction.attempt { try transaction.execute("SELECT 1 / 0") } }
            return try transaction.attempt {
                let now = Timestamp(milliseconds: 1_772_368_205_250)
                var context = Context(
                    transaction: transaction, caller: Caller(user: user), now: now, ids: IDGenerator(), scope: scope)
                return try body(&context)
            }
        }
    }

    /// Whether a transaction waits for another one's lock.
    private func isSomebodyWaiting(_ database: PostgreSQLDatabase) throws -> Bool {
        let sql: SQL = """
            SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
            """
        return try database.read { try $0.first(sql) { $0.int() } ?? 0 > 0 }
    }

    private func rows(of database: PostgreSQLDatabase) throws -> [String] {
        try database.read { try $0.rows("SELECT name, value FROM settings ORDER BY name") { $0.string() + $0.string() } }
    }
}
#endif
