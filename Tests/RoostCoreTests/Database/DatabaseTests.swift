import Foundation
import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

/// The promises of every engine, tested on the chosen one.
@Suite("Database")
struct DatabaseTests {
    private struct Refused: Error {}

    @Test("I1 a reopened database has everything that was in it")
    func keepsEverything() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        try world.send("hi", to: "general", as: "ann")
        let before = try world.dump()
        try world.restart()
        #expect(try world.dump() == before)
    }

    @Test("I24 a database of a newer version is refused and left as it is")
    func refusesNewer() throws {
        let place = try TestDatabase()
        try write("INSERT INTO migrations (name) VALUES ('9999 the future')", to: place)
        let failure = #expect(throws: DatabaseFailure.self) { try place.open() }
        #expect(failure?.kind == .fatal)
        #expect(failure?.message.contains("9999 the future") == true)
    }

    /// Opens a database for one statement.
    private func write(_ sql: SQL, to place: TestDatabase) throws {
        _ = try place.open().write(lane: 0) { try $0.execute(sql) }
    }

    @Test("I23 a failed operation rolls back only its own writes")
    func attempts() throws {
        let world = try CoreWorld()
        let written: [String] = try world.database.write(lane: 0) { transaction in
            func insert(_ name: String) throws {
                _ = try transaction.execute("INSERT INTO settings (name, value) VALUES (\(name), '')")
            }
            try transaction.attempt { try insert("first") }
            _ = try? transaction.attempt {
                try insert("second")
                throw Refused()
            }
            _ = try? transaction.attempt { _ = try transaction.rows("SELECT 1") { $0.int() } }
            try transaction.attempt { try insert("third") }
            return try transaction.rows("SELECT name FROM settings ORDER BY name") { $0.string() }
        }
        #expect(written == ["first", "third"])
        #expect(try world.rows("SELECT name FROM settings ORDER BY name") { $0.string() } == ["first", "third"])
    }

    @Test("I23 an operation that throws before it writes costs nothing, and the others' writes stay")
    func refusals() throws {
        let world = try CoreWorld()
        var runs = 0
        try world.database.write(lane: 0) { transaction in
            runs += 1
            for number in 1...4 {
                _ = try? transaction.attempt {
                    let count = try transaction.first("SELECT COUNT(*) FROM settings") { $0.int() }
                    guard number % 2 == 0 else { throw Refused() }
                    try transaction.perform("INSERT INTO settings (name, value) VALUES (\("\(number)"), \("\(count ?? -1)"))")
                }
            }
        }
        #expect(runs == 1)
        #expect(try world.rows("SELECT name, value FROM settings ORDER BY name") { $0.string() + $0.string() } == ["20", "41"])
    }

    @Test("I23 a statement that fails ends its operation alone, whether its answer was awaited or not", arguments: [true, false])
    func failingStatements(isAwaited: Bool) throws {
        let world = try CoreWorld()
        let kinds: [DatabaseFailure.Kind?] = try world.database.write(lane: 0) { transaction in
            try transaction.perform("INSERT INTO settings (name, value) VALUES ('before', '')")
            return try ["a", "b", "a", "c"].map { name in
                do {
                    try transaction.attempt {
                        try transaction.perform(
                            "INSERT INTO settings (name, value) VALUES (\("new \(name)"), '') ON CONFLICT DO NOTHING")
                        let sql: SQL = "INSERT INTO settings (name, value) VALUES (\(name), '')"
                        if isAwaited { try transaction.execute(sql) } else { try transaction.perform(sql) }
                    }
                    return nil
                } catch let failure as DatabaseFailure where failure.kind == .statement {
                    return failure.kind
                }
            }
        }
        #expect(kinds == [nil, nil, .statement, nil])
        let names = try world.rows("SELECT name FROM settings ORDER BY name") { $0.string() }
        #expect(names == ["a", "b", "before", "c", "new a", "new b", "new c"])
    }

    @Test("I23 a transaction whose body throws stores nothing")
    func rollsBack() throws {
        let world = try CoreWorld()
        #expect(throws: Refused.self) {
            try world.database.write(lane: 0) { transaction in
                try transaction.execute("INSERT INTO settings (name, value) VALUES ('x', 'y')")
                try transaction.perform("INSERT INTO settings (name, value) VALUES ('z', 'y')")
                throw Refused()
            }
        }
        #expect(try world.rows("SELECT name FROM settings") { $0.string() } == [])
        try world.user("ann")
    }

    @Test("I23 a write returns how many rows it changed")
    func counts() throws {
        let world = try CoreWorld()
        let counts = try world.database.write(lane: 0) { transaction in
            let statements: [SQL] = [
                "INSERT INTO settings (name, value) VALUES ('a', ''), ('b', '')",
                "INSERT INTO settings (name, value) VALUES ('a', '') ON CONFLICT (name) DO NOTHING",
                "UPDATE settings SET value = 'c'", "DELETE FROM settings WHERE name = 'nobody'",
            ]
            return try statements.map { try transaction.execute($0) }
        }
        #expect(counts == [2, 0, 2, 0])
    }

    @Test("I3 a reader sees one state of the database from its first statement to its last")
    func snapshots() throws {
        let world = try CoreWorld()
        let counts: [Int?] = try world.database.read { transaction in
            let before = try transaction.first("SELECT COUNT(*) FROM settings") { $0.int() }
            try world.execute("INSERT INTO settings (name, value) VALUES ('x', 'y')")
            return [before, try transaction.first("SELECT COUNT(*) FROM settings") { $0.int() }]
        }
        #expect(counts == [0, 0])
        #expect(try world.rows("SELECT COUNT(*) FROM settings") { $0.int() } == [1])
    }

    @Test("text and numbers come back as they were stored")
    func values() throws {
        let world = try CoreWorld()
        let texts = [
            "", "é", "e\u{301}", "👩‍👩‍👧‍👦", "'; --", "'; DROP TABLE settings; --", "\\'x", "$1 ? :x", "\u{feff}x", "\u{1}\u{7f}",
            String(repeating: "語", count: 5000),
        ]
        for (number, text) in texts.enumerated() {
            try world.execute("INSERT INTO settings (name, value) VALUES (\(String(format: "%02d", number)), \(text))")
        }
        let stored = try world.rows("SELECT value FROM settings ORDER BY name") { Array($0.string().utf8) }
        #expect(stored == texts.map { Array($0.utf8) })
        let found = try texts.map { text in try world.rows("SELECT COUNT(*) FROM settings WHERE value = \(text)") { $0.int() } }
        #expect(found == texts.map { _ in [1] })
        let numbers: [Int64] = [.min, -1, 0, 1, .max]
        #expect(try numbers.map { number in try world.rows("SELECT \(number)") { $0.int64() } } == numbers.map { [$0] })
    }

    @Test("text is ordered by its bytes")
    func order() throws {
        let world = try CoreWorld()
        let names = ["b", "B", "a", "_", "-a", "é", "z", "語", "😀", "Ä"]
        for name in names { try world.execute("INSERT INTO settings (name, value) VALUES (\(name), '')") }
        let stored = try world.rows("SELECT name FROM settings ORDER BY name") { $0.string() }
        #expect(stored == names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })
    }

    @Test("I24 the dump of these tests sees every table")
    func knowsTables() throws {
        let world = try CoreWorld()
        let names = try world.rows(TestDatabase.Engine.chosen.tableNames) { $0.string() }
        #expect(Set(names) == Set(CoreTables.all.map(\.name) + ["migrations"]))
    }

    @Test("I20 the epoch is made once and kept")
    func epoch() throws {
        let world = try CoreWorld()
        let epochs = try ["one", "two"].map { new in try world.database.write(lane: 0) { try $0.epoch(orNew: new) } }
        #expect(epochs == ["one", "one"])
    }
}
