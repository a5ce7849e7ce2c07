import CPageVFS
import Foundation
import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

/// Specifics of SQLite: a file, and a lock on its directory. The rest is in ``DatabaseTests``.
@Suite("SQLiteDatabase")
struct SQLiteDatabaseTests {
    @Test("I1 the writer's journal is WAL and its commits are fsynced")
    func isDurable() throws {
        try inDirectory { directory in
            let (mode, synchronous) = try SQLiteDatabase(directory: directory).durability()
            #expect([mode, "\(synchronous)"] == ["wal", "2"])
        }
    }

    @Test(
        "I1 the directory of a database is synced before its files are relied on and after its log is removed, and roost.state with each write"
    )
    func syncedFiles() throws {
        try inDirectory { directory in
            let record = FileSync.Record()
            func synced(_ body: () throws -> Void) throws -> [String] {
                try FileSync.$record.withValue(record, operation: body)
                return record.take().map { $0.replacing(directory.path, with: "DATA") }
            }
            let above = directory.deletingLastPathComponent().path
            var opened: SQLiteDatabase?
            let start = try synced { opened = try SQLiteDatabase(directory: directory) }
            let database = try #require(opened)
            // The state comes first: after a power failure, a database without it would look as if the state had been lost.
            #expect(Array(start.prefix(4)) == [above, "DATA/roost.state", "DATA", "DATA"])
            #expect(start.dropFirst(4).allSatisfy { $0 == "DATA/roost.state" })
            #expect(try synced { try database.markNow() } == ["DATA/roost.state"])
            let stop = try synced { try database.close() }
            #expect(stop.last == "DATA" && stop.dropLast().allSatisfy { $0 == "DATA/roost.state" }, "\(stop)")
        }
    }

    @Test("the connections share one page cache: three quarters of it are the writer's, the rest the readers'")
    func pageCache() throws {
        try inDirectory { directory in
            let database = try SQLiteDatabase(directory: directory, pageCacheBytes: 40 << 20)
            #expect(try database.pageCacheKibibytes() == [30 << 10, 5 << 10, 5 << 10])
        }
    }

    @Test("a statement is compiled once, whatever values are bound to it", .enabled(if: TestDatabase.Engine.chosen == .sqlite))
    func compilesOnce() throws {
        let world = try CoreWorld()
        let database = try #require(world.database as? SQLiteDatabase)
        try world.channel("general", owner: "ann")
        func round(_ user: UserID) throws {
            try world.user(user)
            // An invitation's state is compared in a partial index, a name with a pattern.
            try world.perform(InviteMembers(channel: "general", users: [user]), as: "ann")
            try world.perform(AddMembers(channel: "general", users: [user]), as: "ann")
            try world.perform(SearchMembers(channel: "general", text: user.rawValue), as: "ann")
            try world.perform(QueryChannels(nameContains: user.rawValue), as: user)
        }
        try round("bob")
        let before = try database.recompilations()
        for user in ["cid", "dan", "eve"] as [UserID] { try round(user) }
        #expect(try database.recompilations() == before)
    }

    @Test(
        "I18 NF-04 lists with ever different filters leave no more prepared statements than a connection keeps",
        .enabled(if: TestDatabase.Engine.chosen == .sqlite))
    func fewStatements() throws {
        let world = try CoreWorld()
        let database = try #require(world.database as? SQLiteDatabase)
        try world.channel("general", owner: "ann")
        let filters: [@Sendable (inout QueryChannels) -> Void] = [
            { $0.types = ["group"] }, { $0.ids = ["general"] }, { $0.includingTags = ["a"] }, { $0.excludingTags = ["b"] },
            { $0.customTypes = ["c"] }, { $0.nameContains = "gen" }, { $0.isPublic = true }, { $0.createdBy = "ann" },
            { $0.createdAfter = 1 }, { $0.includeEmpty = false }, { $0.includeFrozen = false },
        ]
        for number in 0..<1 << filters.count {
            let query = filters.enumerated().reduce(into: QueryChannels()) { query, filter in
                if number >> filter.offset & 1 == 1 { filter.element(&query) }
            }
            try world.perform(query, as: "ann")
            // Statements of every operation are used again and again, and stay.
            if number % 64 == 0 { try world.send("text", to: "general", as: "ann") }
        }
        let counts = try database.statementCounts()
        #expect(counts.allSatisfy { $0 <= 2 * 256 + 8 } && counts.contains { $0 > 256 }, "\(counts)")
        #expect(try world.perform(QueryChannels(), as: "ann").items.map(\.channel.channelId) == ["general"])
    }

    @Test("I1 a second database in the same directory is refused, in this process")
    func refusesSecondHere() throws {
        try inDirectory { directory in
            let first = try SQLiteDatabase(directory: directory)
            #expect(throws: DirectoryLock.Held.self) { try SQLiteDatabase(directory: directory) }
            #expect(try first.write(lane: 0) { try $0.epoch(orNew: "one") } == "one")
        }
    }

    @Test("I1 a second database in the same directory is refused, in another process, and named in the refusal")
    func refusesSecondProcess() async throws {
        let directory = TemporaryPlace.make()
        defer { try? FileManager.default.removeItem(at: directory) }
        let first = try SQLiteDatabase(directory: directory)
        let path = directory.path
        await #expect(processExitsWith: .exitCode(75)) { [path = path as String] in
            do {
                _ = try SQLiteDatabase(directory: URL(filePath: path))
                exit(1)
            } catch let held as DirectoryLock.Held {
                exit(held.description.contains(path) && held.process == "\(getppid())" ? 75 : 2)
            }
        }
        #expect(try first.write(lane: 0) { try $0.epoch(orNew: "one") } == "one")
    }

    @Test("I1 the directory is free again after the database is gone")
    func freesDirectory() throws {
        try inDirectory { directory in
            let epochs = try ["one", "two"].map { new in
                try TemporaryPlace.waitUntilFree(directory)
                return try SQLiteDatabase(directory: directory).write(lane: 0) { try $0.epoch(orNew: new) }
            }
            #expect(epochs == ["one", "one"])
        }
    }

    @Test("text with a NUL comes back as it was stored")
    func nulText() throws {
        try inDirectory { directory in
            let database = try SQLiteDatabase(directory: directory)
            let texts = ["\u{0}", "a\u{0}b"]
            try database.write(lane: 0) { transaction in
                for text in texts { try transaction.execute("INSERT INTO settings (name, value) VALUES (\(text), \(text))") }
            }
            let stored = try database.read { try $0.rows("SELECT value FROM settings ORDER BY name") { $0.string() } }
            #expect(stored == texts)
        }
    }

    @Test("a statement keeps its texts of any size while others run between its rows")
    func nestedTexts() throws {
        try inDirectory { directory in
            let database = try SQLiteDatabase(directory: directory)
            // Some are longer than a connection's whole space for texts.
            let names = (0..<40).map { "row \($0)" + String(repeating: "x", count: $0 * 1000) } + [""]
            var seen: [String] = []
            try database.write(lane: 0) { transaction in
                for name in names { try transaction.execute("INSERT INTO settings (name, value) VALUES (\(name), \(name))") }
                let (least, value) = ("row", "before")
                let rows: SQL = "SELECT name, \(value) FROM settings WHERE name >= \(least) AND value = name ORDER BY name"
                try transaction.each(rows) { row in
                    let (name, shown) = (row.string(), row.string())
                    seen.append(name)
                    #expect(shown == value)
                    let other = String(repeating: "y", count: seen.count)
                    let found = try transaction.rows("SELECT value FROM settings WHERE name = \(name) AND \(other) <> \(value)") {
                        $0.string()
                    }
                    #expect(found == [name])
                }
                #expect(try transaction.rows("SELECT \("") FROM settings WHERE name = \("")") { $0.string() } == [""])
            }
            #expect(seen == names.dropLast().sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })
        }
    }

    @Test("a statement continues even after more others ran between its rows than a connection keeps")
    func displacedStatement() throws {
        try inDirectory { directory in
            let database = try SQLiteDatabase(directory: directory)
            let names = ["a", "b", "c"]
            var seen: [String] = []
            try database.write(lane: 0) { transaction in
                for name in names { try transaction.execute("INSERT INTO settings (name, value) VALUES (\(name), 'row')") }
                try transaction.each("SELECT name FROM settings WHERE value = \("row") ORDER BY name") { row in
                    seen.append(row.string())
                    // Each has another text.
                    for number in 0..<1024 {
                        let text = (0..<10).reduce("SELECT 1 FROM settings WHERE 1 = 1") { (text: SQL, bit) -> SQL in
                            number >> bit & 1 == 1 ? "\(text) AND 1 = 1" : "\(text) AND 2 = 2"
                        }
                        let found = try transaction.first("\(text) LIMIT 1") { $0.int() }
                        #expect(found == 1)
                    }
                }
            }
            #expect(seen == names)
        }
    }

    @Test(
        "a process that turns off SQLite's memory counting before using SQLite has none counted; a later call has no effect")
    func uncounted() async {
        for isFirst in [true, false] {
            await #expect(processExitsWith: .exitCode(isFirst ? 70 : 71)) { [isFirst = isFirst as Bool] in
                if !isFirst { _ = sqlite3_initialize() }
                ProcessMemory.leaveSQLiteUncounted()
                let directory = TemporaryPlace.make()
                defer { try? FileManager.default.removeItem(at: directory) }
                let database = try SQLiteDatabase(directory: directory)
                guard try database.write(lane: 0, { try $0.epoch(orNew: "one") }) == "one" else { exit(1) }
                exit(sqlite3_memory_used() == 0 ? 70 : 71)
            }
        }
    }

    private func inDirectory(_ body: (URL) throws -> Void) throws {
        let directory = TemporaryPlace.make()
        defer { try? FileManager.default.removeItem(at: directory) }
        try body(directory)
    }
}
