import CFaultVFS
import CPageVFS
import Foundation
import RoostCore
import RoostTestSupport
import Testing

@testable import RoostDatabase

/// The power is cut at any call of the file system, while the lane commits and a checkpoint is made beside it, or while a start upgrades the tables.
/// Unsynced parts of either file reach the disk or not.
@Suite("A power cut at any call")
struct PowerCutTests {
    @Test(
        "I1 a power cut at any write or sync, whatever parts of both files were on disk by then, loses no commit",
        arguments: Seeds.first(4))
    func anyCall(seed: UInt64) throws {
        let directory = TemporaryPlace.make()
        defer { try? FileManager.default.removeItem(at: directory) }
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        var run = try Run(directory, seed: seed)
        defer { power_end(run.disk) }
        try run.steps(200)
        #expect(run.checkpoints > 3 && run.restarts > 3, "\(run.checkpoints) checkpoints, \(run.restarts) new logs")
        // Both files, writes and syncs, with something lost from each; and some of the starts were cut too.
        let summary = "\(run.cuts), lost \(run.lostBytes), \(run.cutStarts) starts cut"
        print("Power cuts of seed \(seed): \(summary), \(run.checkpoints) checkpoints, \(run.restarts) new logs")
        #expect(run.cuts.count == 4 && run.lostBytes.allSatisfy { $0 > 0 } && run.cutStarts > 0, "\(summary)")
        try run.database.close()
        #expect(try PowerCutTests.rows(of: SQLiteDatabase(directory: directory)) == run.models.last)
    }

    @Test(
        "I1 I24 a power cut at any call of an upgrade from a former version loses nothing, and the next start completes the upgrade"
    )
    func upgrade() throws {
        let place = TemporaryPlace.make()
        defer { try? FileManager.default.removeItem(at: place) }
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        #expect(fault_vfs_register() == 0)
        let whole = place.appending(path: "whole")
        try FileManager.default.copyItem(at: Self.former, to: whole)
        try SQLiteDatabase(directory: whole).close()
        let expected = Self.contents(of: whole)
        #expect(expected["migrations"]?.count == Migrations.steps.count)

        var random = SeededGenerator(seed: 1)
        var cuts: [Call: Int] = [:]
        var lostBytes = [0, 0]
        // Most calls are writes of the database, by the checkpoint that follows the one transaction of the upgrade.
        for (operation, isLog, step) in [
            (power_write, true, 1), (power_sync, true, 1), (power_write, false, 16), (power_sync, false, 1),
        ] {
            for calls in stride(from: 1, to: 1000, by: step) {
                let name = "\(operation.rawValue)-\(isLog)-\(calls)"
                let (folder, copy) = (place.appending(path: "upgraded-\(name)"), place.appending(path: "cut-\(name)"))
                try FileManager.default.copyItem(at: Self.former, to: folder)
                try FileManager.default.createDirectory(at: copy, withIntermediateDirectories: true)
                defer { for directory in [folder, copy] { try? FileManager.default.removeItem(at: directory) } }
                let disk = power_begin(folder.path)
                try #require(disk >= 0)
                defer { power_end(disk) }
                power_cut_after(disk, Int32(operation.rawValue), isLog ? 1 : 0, Int32(calls), random.next(), copy.path)
                let database = try SQLiteDatabase(directory: folder, acceptsDataLoss: false, base: "faults")
                let found = power_look(disk)
                try database.close()
                // The start has fewer such calls.
                guard found.operation != Int32(power_on.rawValue) else { break }
                let call = Call(isSync: operation == power_sync, isLog: isLog)
                cuts[call, default: 0] += 1
                lostBytes[0] += Int(found.lost_bytes.0)
                lostBytes[1] += Int(found.lost_bytes.1)
                let again = try SQLiteDatabase(directory: copy)
                #expect(again.losses == [], "cut at number \(calls) of the \(call)")
                try again.close()
                #expect(Self.contents(of: copy) == expected, "cut at number \(calls) of the \(call)")
            }
        }
        #expect(cuts.count == 4 && lostBytes.allSatisfy { $0 > 0 }, "\(cuts), lost \(lostBytes)")
        print("Power cuts of an upgrade: \(cuts), lost \(lostBytes)")
    }

    /// The calls at which the power was cut.
    private struct Call: Hashable, CustomStringConvertible {
        let isSync: Bool
        let isLog: Bool
        var description: String { "\(isSync ? "syncs" : "writes") of the \(isLog ? "log" : "database")" }
    }

    /// One history of commits, with its cuts.
    private struct Run {
        let directory: URL
        let database: SQLiteDatabase
        let disk: Int32
        var random: SeededGenerator
        /// The rows after each number of commits.
        var models: [[String: String]]
        var (checkpoints, restarts, cutStarts) = (0, 0, 0)
        var cuts: [Call: Int] = [:]
        var lostBytes = [0, 0]
        private var cutCount = 0
        private var salts: Data?
        private var cut: URL?

        init(_ directory: URL, seed: UInt64) throws {
            self.directory = directory
            random = SeededGenerator(seed: seed)
            #expect(fault_vfs_register() == 0)
            disk = power_begin(directory.path)
            #expect(disk >= 0)
            database = try PowerCutTests.open(directory)
            models = [try PowerCutTests.rows(of: database)]
        }

        mutating func steps(_ count: Int) throws {
            for _ in 0..<count {
                if cut == nil { try armCut() }
                // A reader holds up the log's restart.
                if random.once(in: 60) {
                    let before = models.last
                    try database.read { transaction in
                        let seen = try PowerCutTests.rows(in: transaction)
                        for _ in 0..<random.number(1...40) { try step() }
                        #expect(try seen == before && PowerCutTests.rows(in: transaction) == before)
                    }
                } else {
                    try step()
                }
                try lookAtCut()
            }
            database.waitForCopy()
        }

        /// One commit, and the lane's maintenance afterwards. The copy of the log continues beside it.
        private mutating func step() throws {
            var model = models[models.count - 1]
            // Mostly few pages, sometimes more than are written at once.
            let changed = random.once(in: 40) ? 30 : 1
            var rows: [(String, String)] = []
            for _ in 0..<changed {
                rows.append(("row \(random.number(1...60))", String(repeating: "x", count: random.number(0...9000))))
            }
            for (name, value) in rows { model[name] = value }
            models.append(model)
            try database.write(lane: 0) { transaction in
                for (name, value) in rows {
                    _ = try transaction.execute("DELETE FROM settings WHERE name = \(name)")
                    _ = try transaction.execute("INSERT INTO settings (name, value) VALUES (\(name), \(value))")
                }
            }
            power_note(disk, Int64(models.count - 1))
            // On a busy machine a copy takes longer than many commits, and there would be few checkpoints.
            if random.once(in: 8) { database.waitForCopy() }
            if try database.maintain(lane: 0, isIdle: random.once(in: 30))?.isComplete == true { checkpoints += 1 }
            let salts = try PowerCutTests.salts(directory)
            if self.salts != salts { (self.salts, restarts) = (salts, restarts + 1) }
        }

        // MARK: Cuts

        private mutating func armCut() throws {
            let copy = directory.appending(path: "cut-\(models.count)")
            try FileManager.default.createDirectory(at: copy, withIntermediateDirectories: true)
            // At any call, and sometimes at one of a kind, since most are writes and few are syncs of the database.
            let kind = cutCount % 5
            let (operation, isLog) = kind == 4 ? (power_on, false) : (kind < 2 ? power_write : power_sync, kind % 2 == 1)
            let calls = random.number(1...(operation == power_sync && !isLog ? 3 : 30))
            power_cut_after(disk, Int32(operation.rawValue), isLog ? 1 : 0, Int32(calls), random.next(), copy.path)
            cut = copy
        }

        /// If the power was cut meanwhile: a start has every commit that had returned, and at most the one in progress.
        private mutating func lookAtCut() throws {
            let found = power_look(disk)
            guard let copy = cut, found.operation != Int32(power_on.rawValue) else { return }
            cut = nil
            let call = Call(isSync: found.operation == Int32(power_sync.rawValue), isLog: found.is_log == 1)
            cuts[call, default: 0] += 1
            cutCount += 1
            lostBytes[0] += Int(found.lost_bytes.0)
            lostBytes[1] += Int(found.lost_bytes.1)
            let returned = Int(found.noted)
            let allowed = Array(models[returned...min(returned + 1, models.count - 1)])
            try requireStart(copy, allowed, "cut at one of the \(call) after commit \(returned)")
            try FileManager.default.removeItem(at: copy)
        }

        /// The start may be cut too.
        private mutating func requireStart(_ copy: URL, _ allowed: [[String: String]], _ place: String) throws {
            let again = copy.appending(path: "again")
            try FileManager.default.createDirectory(at: again, withIntermediateDirectories: true)
            let second = power_begin(copy.path)
            #expect(second >= 0)
            power_cut_after(second, Int32(power_on.rawValue), 0, Int32(random.number(1...150)), random.next(), again.path)
            try PowerCutTests.requireRows(PowerCutTests.open(copy), allowed, place)
            let found = power_look(second)
            power_end(second)
            guard found.operation != Int32(power_on.rawValue) else { return }
            cutStarts += 1
            try PowerCutTests.requireRows(
                SQLiteDatabase(directory: again), allowed, "\(place), and again soon after the start behind it")
        }
    }

    private static func requireRows(_ database: SQLiteDatabase, _ allowed: [[String: String]], _ place: String) throws {
        let rows = try rows(of: database)
        #expect(database.losses == [] && allowed.contains(rows), "\(place)")
        let integrity = try database.read { try $0.rows("PRAGMA integrity_check(1)") { $0.string() } }
        #expect(integrity == ["ok"], "\(place)")
    }

    // MARK: Files

    /// A database with tables that are not current, closed in good order.
    private static let former = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Fixtures/2026-11")

    /// The rows of all tables of a closed database, and the definitions of the tables and their indexes. Read past our own VFS.
    private static func contents(of directory: URL) -> [String: [String]] {
        var connection: OpaquePointer?
        #expect(sqlite3_open(directory.appending(path: "roost.sqlite").path, &connection) == SQLITE_OK)
        defer { sqlite3_close(connection) }
        func rows(_ sql: String) -> [String] {
            var statement: OpaquePointer?
            #expect(sqlite3_prepare_v2(connection, sql, -1, &statement, nil) == SQLITE_OK, "\(sql)")
            defer { sqlite3_finalize(statement) }
            var found: [String] = []
            while sqlite3_step(statement) == SQLITE_ROW {
                let values = (0..<sqlite3_column_count(statement)).map { column in
                    sqlite3_column_text(statement, column).map { String(cString: $0) } ?? "NULL"
                }
                found.append(values.joined(separator: "|"))
            }
            return found.sorted()
        }
        #expect(rows("PRAGMA integrity_check(1)") == ["ok"])
        var contents = ["": rows("SELECT name, sql FROM sqlite_schema")]
        for table in rows("SELECT name FROM sqlite_schema WHERE type = 'table'") {
            contents[table] = rows("SELECT * FROM \(table)")
        }
        return contents
    }

    /// With a log that is due at 150 pages.
    private static func open(_ directory: URL) throws -> SQLiteDatabase {
        try SQLiteDatabase(directory: directory, acceptsDataLoss: false, base: "faults", checkpointFrames: 150)
    }

    private static func rows(of database: SQLiteDatabase) throws -> [String: String] { try database.read { try rows(in: $0) } }

    private static func rows(in transaction: any RoostCore.Transaction) throws -> [String: String] {
        let rows = try transaction.rows("SELECT name, value FROM settings WHERE name <> 'epoch'") { ($0.string(), $0.string()) }
        return Dictionary(uniqueKeysWithValues: rows)
    }

    /// The salts that distinguish a log from the previous one.
    private static func salts(_ directory: URL) throws -> Data {
        let file = try FileHandle(forReadingFrom: directory.appending(path: "roost.sqlite-wal"))
        defer { try? file.close() }
        try file.seek(toOffset: 16)
        return try file.read(upToCount: 8) ?? Data()
    }
}
