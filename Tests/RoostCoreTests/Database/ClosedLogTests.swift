import CFaultVFS
import Foundation
import RoostCore
import RoostTestSupport
import Testing

@testable import RoostDatabase

/// The log after a clean stop: it is empty and removed, but that may not be on disk when the machine fails.
@Suite("The log of a stopped server")
struct ClosedLogTests {
    private static let name = "roost.sqlite-wal"
    private static let epoch = "first"
    private static let rows = (0..<60).map { "row \($0)" }

    /// The server's files: at the end of a first run and in a second one, which then stopped.
    private struct Used {
        let directory = TemporaryPlace.make()
        /// The log of the first run.
        var olderLog = Data()
        /// The log of the second run, to which stopping added one more commit.
        var lastLog = Data()

        var log: URL { directory.appending(path: ClosedLogTests.name) }

        init(base: String? = nil) throws {
            for (run, rows) in [ClosedLogTests.rows.prefix(20), ClosedLogTests.rows.suffix(40)].enumerated() {
                let database = try SQLiteDatabase(directory: directory, acceptsDataLoss: false, base: base)
                for row in rows {
                    try database.write(lane: 0) { transaction in
                        _ = try transaction.epoch(orNew: ClosedLogTests.epoch)
                        // The pages of earlier rows are written repeatedly: a part of the log has older ones.
                        _ = try transaction.execute("UPDATE settings SET value = value || 'x' WHERE name LIKE 'row%'")
                        _ = try transaction.execute("INSERT INTO settings (name, value) VALUES (\(row), '')")
                    }
                }
                if run == 0 { olderLog = try Data(contentsOf: log) } else { lastLog = try Data(contentsOf: log) }
                try database.close()
                try TemporaryPlace.waitUntilFree(directory)
            }
        }

        /// Writes a log as SQLite makes one.
        func put(_ data: Data) throws {
            try data.write(to: log)
            chmod(log.path, 0o600)
        }

        func remove() { try? FileManager.default.removeItem(at: directory) }
    }

    /// Starts a server and compares all that was acknowledged.
    private func requireEverything(in directory: URL) throws {
        let database = try SQLiteDatabase(directory: directory)
        #expect(database.notes == [] && database.losses == [])
        let values = try database.read { transaction in
            try transaction.rows("SELECT name, value FROM settings WHERE name LIKE 'row%'") { [$0.string(), $0.string()] }
        }
        let expected = Self.rows.enumerated().map { [$1, String(repeating: "x", count: Self.rows.count - 1 - $0)] }
        #expect(Set(values) == Set(expected))
        #expect(try database.read { try $0.setting("epoch") } == Self.epoch)
        #expect(try database.read { try $0.rows("PRAGMA integrity_check") { $0.string() } } == ["ok"])
        try database.close()
        try TemporaryPlace.waitUntilFree(directory)
        let names = try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted()
        #expect(names == ["roost.lock", "roost.sqlite", "roost.state"])
    }

    @Test(
        "I1 if a power cut brings back a stopped server's last log, whole, in part or damaged, the start has everything and reports nothing",
        arguments: ["as it was", "half", "its first frames", "damaged"])
    func lastLog(how: String) throws {
        let used = try Used()
        defer { used.remove() }
        let frames = (used.lastLog.count - 32) / 4120
        var log = used.lastLog
        switch how {
        case "half": log = log.prefix(32 + frames / 2 * 4120)
        case "its first frames": log = log.prefix(32 + 12 * 4120)
        case "damaged": log[32 + frames / 2 * 4120 + 2000] ^= 1
        default: break
        }
        try used.put(log)
        #expect(DataFiles(directory: used.directory).refusal() == nil)
        try requireEverything(in: used.directory)
    }

    @Test(
        "I1 any other log beside a stopped server's database is refused, and left unchanged",
        arguments: ["of the run before", "of another server", "of unknown salts"])
    func otherLog(which: String) throws {
        let used = try Used()
        defer { used.remove() }
        var log = used.lastLog
        switch which {
        case "of the run before": log = used.olderLog
        case "of another server":
            let other = try Used()
            other.remove()
            log = other.lastLog
        // The checksum of the header includes them.
        default: log[20] ^= 1
        }
        try used.put(log)
        for _ in 0..<2 {
            #expect(throws: DamagedFiles.self) { try SQLiteDatabase(directory: used.directory) }
            try TemporaryPlace.waitUntilFree(used.directory)
        }
        #expect(try Data(contentsOf: used.log) == log)
        try FileManager.default.removeItem(at: used.log)
        try requireEverything(in: used.directory)
    }

    @Test("I1 the last log doesn't help a database that is an older copy")
    func olderDatabase() throws {
        let used = try Used()
        defer { used.remove() }
        let file = used.directory.appending(path: "roost.sqlite")
        let older = try Data(contentsOf: file)
        try SQLiteDatabase(directory: used.directory).close()
        try TemporaryPlace.waitUntilFree(used.directory)
        try older.write(to: file)
        try used.put(used.lastLog)
        #expect(throws: DamagedFiles.self) { try SQLiteDatabase(directory: used.directory) }
        #expect(try Data(contentsOf: used.log) == used.lastLog)
    }

    @Test("I1 the emptied log is on disk once the server has stopped, and before roost.state says so")
    func synced() throws {
        #expect(fault_vfs_register() == 0)
        let used = try Used(base: "faults")
        defer { used.remove() }
        let (path, state) = ("\(used.directory.lastPathComponent)/\(Self.name)", used.directory.appending(path: "roost.state").path)
        func phase() -> StorageState.Phase? {
            guard case .state(let state) = StateFile.read(path: state) else { return nil }
            return state.phase
        }
        func write(_ row: String) throws -> SQLiteDatabase {
            let database = try SQLiteDatabase(directory: used.directory, acceptsDataLoss: false, base: "faults")
            try database.write(lane: 0) { _ = try $0.execute("INSERT INTO settings (name, value) VALUES (\(row), '')") }
            return database
        }
        #expect(phase() == .closed)
        let kept = fault_keep_synced(path)
        try write("first").close()
        _ = fault_end(kept)
        let synced = used.directory.appending(path: "\(Self.name).synced")
        #expect(try Data(contentsOf: synced) == Data())
        try FileManager.default.removeItem(at: synced)

        // The commit of the checkpoint's number syncs the log, and so does the checkpoint before it reads it. The rest isn't synced then.
        try TemporaryPlace.waitUntilFree(used.directory)
        let database = try write("second")
        let fault = fault_begin(path, Int32(fault_sync.rawValue), 10 | 4 << 8, 2, 0)
        let failure = #expect(throws: DatabaseFailure.self) { try database.close() }
        #expect(fault_end(fault) > 0)
        #expect(failure?.message.contains("couldn't be emptied") == true)
        #expect(phase() == .open)
    }
}
