import Foundation
import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

@Suite("SQLiteDatabase")
struct SQLiteDatabaseTests {
    @Test("I1 the writer's journal is WAL and its commits are fsynced")
    func isDurable() throws {
        let (mode, synchronous) = try CoreWorld().database.durability()
        #expect([mode, "\(synchronous)"] == ["wal", "2"])
    }

    @Test("I1 a second database in the same directory is refused, in this process")
    func refusesSecondHere() throws {
        let world = try CoreWorld()
        #expect(throws: DirectoryLock.Held.self) { try SQLiteDatabase(directory: world.directory) }
        try world.user("ann")
        #expect(try world.perform(GetMe(), as: "ann").userId == "ann")
    }

    @Test("I1 a second database in the same directory is refused, in another process, and named in the refusal")
    func refusesSecondProcess() async throws {
        let world = try CoreWorld()
        let path = world.directory.path
        await #expect(processExitsWith: .exitCode(75)) { [path = path as String] in
            do {
                _ = try SQLiteDatabase(directory: URL(filePath: path))
                exit(1)
            } catch let held as DirectoryLock.Held {
                exit(held.description.contains(path) && held.process == "\(getppid())" ? 75 : 2)
            }
        }
        try world.user("ann")
        #expect(try world.perform(GetMe(), as: "ann").userId == "ann")
    }

    @Test("I1 the directory is free again after the database is gone, and keeps everything")
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
        let directory = TemporaryPlace.make()
        defer { try? FileManager.default.removeItem(at: directory) }
        do {
            let database = try SQLiteDatabase(directory: directory)
            try database.write { _ = try $0.execute("INSERT INTO migrations (name) VALUES ('9999 the future')") }
        }
        TemporaryPlace.waitUntilFree(directory)
        let failure = #expect(throws: DatabaseFailure.self) { try SQLiteDatabase(directory: directory) }
        #expect(failure?.kind == .fatal)
        #expect(failure?.message.contains("9999 the future") == true)
    }

    @Test("I23 an operation that fails takes only its own writes back")
    func attempts() throws {
        struct Refused: Error {}
        let world = try CoreWorld()
        let written: [String] = try world.database.write { transaction in
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

    @Test("I23 a transaction whose body throws stores nothing")
    func rollsBack() throws {
        struct Stop: Error {}
        let world = try CoreWorld()
        #expect(throws: Stop.self) {
            try world.database.write { transaction in
                _ = try transaction.execute("INSERT INTO settings (name, value) VALUES ('x', 'y')")
                throw Stop()
            }
        }
        #expect(try world.rows("SELECT name FROM settings") { $0.string() } == [])
        try world.user("ann")
    }

    @Test("X-01 text and numbers come back as they were stored")
    func values() throws {
        let world = try CoreWorld()
        let texts = ["", "\u{0}", "a\u{0}b", "é", "e\u{301}", "👩‍👩‍👧‍👦", "'; --", "\u{feff}x", String(repeating: "語", count: 5000)]
        for (number, text) in texts.enumerated() {
            try world.execute("INSERT INTO settings (name, value) VALUES (\(String(format: "%02d", number)), \(text))")
        }
        let stored = try world.rows("SELECT value FROM settings ORDER BY name") { Array($0.string().utf8) }
        #expect(stored == texts.map { Array($0.utf8) })
        let numbers: [Int64] = [.min, -1, 0, 1, .max]
        #expect(try numbers.map { number in try world.rows("SELECT \(number)") { $0.int64() } } == numbers.map { [$0] })
    }

    @Test("I24 the dump of these tests sees every table")
    func knowsTables() throws {
        let world = try CoreWorld()
        let names = try world.rows("SELECT name FROM sqlite_master WHERE type = 'table'") { $0.string() }
        #expect(Set(names) == Set(CoreTables.all.map(\.name) + ["migrations"]))
    }

    @Test("I20 the epoch is made once and kept")
    func epoch() throws {
        let world = try CoreWorld()
        let epochs = try ["one", "two"].map { new in try world.database.write { try $0.epoch(orNew: new) } }
        #expect(epochs == ["one", "one"])
    }
}
