import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

/// Savepoints on SQLite, which transactions omit until one needs them.
@Suite("Savepoints")
struct WriteCareTests {
    private struct Refused: Error {}

    /// Runs a transaction with an operation that succeeds and one that writes and then throws, and returns how often its body ran.
    private func runsOfRefusal(after name: String, in database: SQLiteDatabase) throws -> Int {
        var runs = 0
        try database.write(lane: 0) { transaction in
            runs += 1
            try transaction.attempt { try transaction.perform("INSERT INTO settings (name, value) VALUES (\(name), '')") }
            try? transaction.attempt {
                try transaction.perform("INSERT INTO settings (name, value) VALUES (\("not " + name), '')")
                throw Refused()
            }
        }
        return runs
    }

    @Test("I23 a transaction that needs savepoints runs twice, and the next ones have them from the start")
    func runsTwice() throws {
        let database = try SQLiteDatabase(directory: TemporaryPlace.make())
        defer { try? database.close() }
        let runs = try (0..<70).map { try runsOfRefusal(after: "\($0)", in: database) }
        // The first, the next 64, and the same again.
        #expect(runs == [2] + Array(repeating: 1, count: 64) + [2, 1, 1, 1, 1])
        #expect(try names(in: database).count == 70)
        #expect(try names(in: database).allSatisfy { !$0.hasPrefix("not") })
    }

    @Test("I23 an operation that wrote with an answering statement is undone too")
    func answers() throws {
        let database = try SQLiteDatabase(directory: TemporaryPlace.make())
        defer { try? database.close() }
        var runs = 0
        try database.write(lane: 0) { transaction in
            runs += 1
            try? transaction.attempt {
                _ = try transaction.rows("INSERT INTO settings (name, value) VALUES ('a', '') RETURNING name") { $0.string() }
                throw Refused()
            }
        }
        #expect(runs == 2)
        #expect(try names(in: database) == [])
    }

    @Test("I23 an operation that changes no row, or whose only statement fails, has nothing to undo")
    func changesNothing() throws {
        let database = try SQLiteDatabase(directory: TemporaryPlace.make())
        defer { try? database.close() }
        var runs = 0
        try database.write(lane: 0) { transaction in
            runs += 1
            let insert: SQL = "INSERT INTO settings (name, value) VALUES ('a', '')"
            try transaction.attempt { try transaction.perform(insert) }
            try? transaction.attempt {
                try transaction.perform("INSERT INTO settings (name, value) VALUES ('a', 'again') ON CONFLICT DO NOTHING")
                throw Refused()
            }
            try? transaction.attempt { try transaction.perform(insert) }
            try transaction.attempt { try transaction.perform("INSERT INTO settings (name, value) VALUES ('b', '')") }
        }
        #expect(runs == 1)
        #expect(try names(in: database) == ["a", "b"])
    }

    /// The stored names, without the database's own.
    private func names(in database: SQLiteDatabase) throws -> [String] {
        try database.read { transaction in
            try transaction.rows("SELECT name FROM settings WHERE value IN ('', 'again') ORDER BY name") { $0.string() }
        }
    }
}
