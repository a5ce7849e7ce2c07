import CFaultVFS
import CPageVFS
import Foundation
import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

@testable import RoostServer

/// Failing disks, files that disappear under a running server, and their permissions.
@Suite("Disk faults")
struct DiskFaultTests {
    /// A million characters. `String(repeating:count:)` would append them one by one, each time.
    private static let million = String(decoding: [UInt8](repeating: UInt8(ascii: "x"), count: 1_000_000), as: UTF8.self)

    @Test(
        "I1 a checkpoint whose fsync of the database file fails ends the process, like a failed commit, beside the lane or on it",
        arguments: [true, false])
    func checkpointFsync(isBesideLane: Bool) throws {
        try inDirectory { directory in
            let database = try open(directory)
            try insert("before", into: database)
            let fault = fault_begin("\(directory.lastPathComponent)/roost.sqlite", Int32(fault_sync.rawValue), 10 | 4 << 8, 0, 0)
            // Beyond the size at which the log is due.
            for number in 0..<70 { try insert("big \(number)", Self.million, into: database) }
            #expect(kind { _ = try checkpoint(database, isBesideLane: isBesideLane) } == .fatal)
            #expect(fault_end(fault) > 0)
        }
    }

    @Test("I1 a commit whose fsync of the log fails ends the process")
    func commitFsync() throws {
        try inDirectory { directory in
            let database = try open(directory)
            let fault = fault_begin(
                "\(directory.lastPathComponent)/roost.sqlite-wal", Int32(fault_sync.rawValue), 10 | 4 << 8, 0, 0)
            #expect(kind { try insert("lost", into: database) } == .fatal)
            #expect(fault_end(fault) > 0)
        }
    }

    @Test(
        "I1 a server's process ends with status 74 if the fsync of a checkpoint fails, and before the next ack if a commit's does",
        arguments: ["roost.sqlite", "roost.sqlite-wal"])
    func serverEnds(name: String) async {
        await #expect(processExitsWith: .exitCode(74)) { [name = name as String] in
            // The server's own VFS, over the failing one.
            guard fault_vfs_register() == 0, roost_vfs_register("roost", "faults", 1) == 0 else { exit(1) }
            let server = try await TestServer()
            let path = "\(server.directory.lastPathComponent)/\(name)"
            guard fault_begin(path, Int32(fault_sync.rawValue), 10 | 4 << 8, 0, 0) >= 0 else { exit(1) }
            // Beyond the size at which the log is due.
            for number in 0..<100 {
                let (row, value) = ("big \(number)", DiskFaultTests.million)
                try await server.perform { context in
                    _ = try context.transaction.execute("INSERT INTO settings (name, value) VALUES (\(row), \(value))")
                }
                if name == "roost.sqlite-wal" { exit(2) }
            }
            exit(3)
        }
    }

    @Test(
        "I1 a log that can't grow, on a full disk or by a quota, fails only its transaction, whether half of it is written or not",
        arguments: [false, true], [ENOSPC, EDQUOT])
    func fullDisk(isShort: Bool, error: Int32) throws {
        try inDirectory { directory in
            let database = try open(directory)
            try insert("before", into: database)
            for passes in Int32(0)..<12 {
                // More than a dozen writes of 31 pages.
                let fault = fault_begin_write_error(
                    "\(directory.lastPathComponent)/roost.sqlite-wal", error, passes, isShort ? 1 : 0)
                #expect(kind { try insert("lost", Self.million + Self.million, into: database) } == .transaction)
                #expect(fault_end(fault) > 0)
                try insert("after \(passes)", into: database)
            }
            try database.markNow()
            // As after a kill.
            let copy = directory.deletingLastPathComponent().appending(path: "\(directory.lastPathComponent)-copy")
            defer { try? FileManager.default.removeItem(at: copy) }
            try FileManager.default.copyItem(at: directory, to: copy)
            let again = try SQLiteDatabase(directory: copy)
            let names = try again.read { try $0.rows("SELECT name FROM settings") { $0.string() } }
            #expect(Set(names) == Set(["before"] + (0..<12).map { "after \($0)" }))
        }
    }

    @Test("I1 a log write that fails for another reason ends the process")
    func brokenDisk() throws {
        try inDirectory { directory in
            let database = try open(directory)
            let fault = fault_begin_write_error("\(directory.lastPathComponent)/roost.sqlite-wal", EIO, 0, 0)
            #expect(kind { try insert("lost", into: database) } == .fatal)
            #expect(fault_end(fault) > 0)
        }
    }

    /// SQLite's own VFS reports a disk's failure to read (`EIO` and similar) as SQLITE_IOERR_CORRUPTFS, which SQLite treats like a damaged file: the
    /// transaction continues. It reports any other failure as SQLITE_IOERR_READ, and SQLite rolls the transaction back.
    @Test(
        "I1 if the disk can't read a page, only the operation that needs it is refused; a read that fails for another reason ends the process",
        arguments: [(code: 10 | 33 << 8, outcomes: ["stored", "internal_error", "stored"]), (10 | 1 << 8, ["ended"])])
    func failedRead(code: Int, outcomes: [String]) throws {
        try inDirectory { directory in
            let first = try open(directory)
            try insert("cold", String(repeating: "x", count: 100_000), into: first)
            try first.close()
            let database = try open(directory)
            // From here on, the log has all pages of the file that the operations share: the row takes a new one, which changes the first.
            try insert("warm", String(repeating: "x", count: 5000), into: database)
            let settings = BatchSettings(access: try AccessGate(database), presence: PresenceBoard())
            let batch = (1...3).map { number in
                Job(
                    caller: Caller(user: "ann"),
                    run: { context in
                        let name = "operation \(number)"
                        _ = try context.transaction.execute("INSERT INTO settings (name, value) VALUES (\(name), '')")
                        if number == 2 { _ = try context.transaction.setting("cold") }
                        return []
                    }, destination: .waiting { _ in })
            }
            let fault = fault_begin("/\(directory.lastPathComponent)/roost.sqlite", Int32(fault_read.rawValue), Int32(code), 0, 0)
            var ids: IDGenerator?
            var ends: [String] = []
            _ = WriteBatch.run(batch, in: database, lane: 0, &ids, settings) { action in
                switch action {
                case .committed(let entries): ends += entries.map { $0.outcome.refusal?.code.rawValue ?? "stored" }
                case .lost(let jobs, _, let refusal): ends += jobs.map { _ in refusal.code.rawValue }
                case .end: ends.append("ended")
                default: break
                }
            }
            #expect(fault_end(fault) > 0)
            #expect(ends == outcomes)
            // Nothing is damaged: the same page can be read again.
            let names = try database.read { transaction in
                try transaction.rows("SELECT name FROM settings WHERE name LIKE 'operation %' ORDER BY name") { $0.string() }
            }
            #expect(names == (outcomes.count > 1 ? ["operation 1", "operation 3"] : []))
            #expect(try database.read { try $0.setting("cold") }?.count == 100_000)
        }
    }

    @Test(
        "I1 the index of a log of up to 99 MB needs no more space on a full disk; that of a larger one ends the process: the commit is in the log"
    )
    func fullDiskForIndex() throws {
        try inDirectory { directory in
            let database = try open(directory)
            // SQLITE_IOERR_SHMSIZE.
            let fault = fault_begin("\(directory.lastPathComponent)/roost.sqlite", Int32(fault_index.rawValue), 10 | 19 << 8, 0, 0)
            for number in 0..<90 { try insert("big \(number)", Self.million, into: database) }
            let failed = kind {
                for number in 90..<110 { try insert("big \(number)", Self.million, into: database) }
            }
            #expect(failed == .fatal)
            #expect(fault_end(fault) > 0)
        }
    }

    @Test("a commit of up to 31 pages is one write of the log")
    func oneWrite() throws {
        try inDirectory { directory in
            let database = try open(directory)
            try insert("before", into: database)
            let fault = fault_begin("\(directory.lastPathComponent)/roost.sqlite-wal", Int32(fault_write.rawValue), 13, 2, 0)
            for number in 0..<2 { try insert("row \(number)", String(repeating: "x", count: 100_000), into: database) }
            #expect(kind { try insert("third", into: database) } == .transaction)
            #expect(fault_end(fault) > 0)
        }
    }

    @Test(
        "I1 a full disk or an exhausted quota holds up a checkpoint, but doesn't end the server, beside the lane or on it",
        arguments: [true, false], [ENOSPC, EDQUOT])
    func fullDiskAtCheckpoint(isBesideLane: Bool, error: Int32) throws {
        try inDirectory { directory in
            let database = try open(directory)
            for number in 0..<70 { try insert("big \(number)", Self.million, into: database) }
            let fault = fault_begin_write_error("\(directory.lastPathComponent)/roost.sqlite", error, 0, 0)
            #expect(try checkpoint(database, isBesideLane: isBesideLane)?.isComplete == false)
            #expect(fault_end(fault) > 0)
            for number in 70..<90 { try insert("big \(number)", Self.million, into: database) }
            #expect(try checkpoint(database, isBesideLane: isBesideLane)?.isComplete == true)
        }
    }

    @Test(
        "I1 a start ended by a full disk does no damage: the next one, with room, has everything",
        arguments: ["roost.sqlite", "roost.sqlite-wal"])
    func fullDiskAtStart(name: String) throws {
        try inDirectory { directory in
            let first = try open(directory)
            try insert("before", into: first)
            try first.close()
            let fault = fault_begin("\(directory.lastPathComponent)/\(name)", Int32(fault_write.rawValue), 13, 0, 0)
            let failure = #expect(throws: DatabaseFailure.self) { try open(directory) }
            #expect(fault_end(fault) > 0)
            #expect(failure?.message == "The disk of \(directory.path) is full. Free some space, then try again.")
            let second = try open(directory)
            #expect(second.losses == [])
            #expect(try second.read { try $0.setting("before") } == "")
        }
    }

    @Test(
        "I1 a file removed, replaced, truncated or overwritten under a running server ends it before the next ack",
        arguments: ["roost.sqlite", "roost.sqlite-wal", "roost.lock", "roost.state"], ["removed", "replaced"])
    func filesUnderServer(name: String, how: String) throws {
        try inDirectory { directory in
            let database = try SQLiteDatabase(directory: directory)
            try insert("before", into: database)
            let file = directory.appending(path: name)
            let data = try Data(contentsOf: file)
            try FileManager.default.removeItem(at: file)
            if how == "replaced" { try data.write(to: file) }
            #expect(kind { try insert("after", into: database) } == .fatal)
        }
    }

    @Test("I1 a log that another program truncates in place ends the server before the next ack")
    func logInPlace() throws {
        try inDirectory { directory in
            let database = try SQLiteDatabase(directory: directory)
            try insert("before", into: database)
            let file = try FileHandle(forUpdating: directory.appending(path: "roost.sqlite-wal"))
            try file.truncate(atOffset: 0)
            try file.close()
            #expect(kind { try insert("after", into: database) } == .fatal)
            #expect(throws: (any Error).self) { try database.close() }
            // The next start misses the log's contents, although they were acknowledged less than a second earlier.
            #expect(throws: DamagedFiles.self) { try SQLiteDatabase(directory: directory) }
        }
    }

    @Test("I1 a log truncated after a kill is missed from its first commit on, before a second has passed")
    func firstCommit() throws {
        try inDirectory { directory in
            let database = try SQLiteDatabase(directory: directory)
            try insert("before", into: database)
            database.waitForMarks()
            let killed = directory.deletingLastPathComponent().appending(path: "\(directory.lastPathComponent)-killed")
            defer { try? FileManager.default.removeItem(at: killed) }
            try FileManager.default.copyItem(at: directory, to: killed)
            try Data().write(to: killed.appending(path: "roost.sqlite-wal"))
            #expect(throws: DamagedFiles.self) { try SQLiteDatabase(directory: killed) }
        }
    }

    @Test(
        "I1 a database file that another program overwrites in place ends the server before the next ack",
        arguments: ["cut off", "written over"])
    func fileInPlace(how: String) throws {
        try inDirectory { directory in
            let database = try SQLiteDatabase(directory: directory)
            try insert("before", into: database)
            let file = try FileHandle(forUpdating: directory.appending(path: "roost.sqlite"))
            if how == "cut off" { try file.truncate(atOffset: 4096) } else { try file.write(contentsOf: Data("SQLite".utf8)) }
            try file.close()
            #expect(kind { try insert("after", into: database) } == .fatal)
        }
    }

    @Test("I1 a second server doesn't start in the directory even if the lock file was removed")
    func lockFileRemoved() throws {
        try inDirectory { directory in
            let database = try SQLiteDatabase(directory: directory)
            try FileManager.default.removeItem(at: directory.appending(path: "roost.lock"))
            #expect(throws: DirectoryLock.Held.self) { try SQLiteDatabase(directory: directory) }
            withExtendedLifetime(database) {}
        }
    }

    @Test("I1 after closing, one file has everything: no log, and every row in it")
    func oneFile() throws {
        try inDirectory { directory in
            let database = try SQLiteDatabase(directory: directory)
            for number in 0..<50 { try insert("row \(number)", into: database) }
            try database.close()
            let names = try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted()
            #expect(names == ["roost.lock", "roost.sqlite", "roost.state"])
            #expect(try SQLiteDatabase.examinePages(of: directory.appending(path: "roost.sqlite").path).damaged == nil)
            try FileManager.default.removeItem(at: directory.appending(path: "roost.state"))
            let alone = try SQLiteDatabase(directory: directory, acceptsDataLoss: true)
            #expect(try alone.read { try $0.rows("SELECT name FROM settings WHERE name LIKE 'row%'") { $0.string() } }.count == 50)
        }
    }

    @Test("in a directory open to others the files are private, and files that weren't are made so, with a note")
    func modes() throws {
        try inDirectory { directory in
            try FileManager.default.createDirectory(
                at: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
            let files = DataFiles(directory: directory)
            let first = try SQLiteDatabase(directory: directory)
            try insert("row", into: first)
            #expect(files.exposed.map(\.path) == [] && first.notes == [])
            try first.close()
            for path in [files.database, files.state] { chmod(path, 0o644) }
            #expect(files.exposed.map(\.path) == [files.database, files.state])
            let second = try SQLiteDatabase(directory: directory)
            #expect(files.exposed.map(\.path) == [] && second.notes.count == 2)
        }
    }

    @Test("I24 a database from before checksums gets them at the first start and keeps its rows")
    func convertsOldDatabase() throws {
        try inDirectory { directory in
            let path = directory.appending(path: "roost.sqlite").path
            let made = try SQLiteDatabase(directory: directory)
            for number in 0..<100 { try insert("row \(number)", String(repeating: "x", count: 9000), into: made) }
            let tables = try made.read { try $0.rows("SELECT name FROM sqlite_master WHERE type = 'table'") { $0.string() } }
            let schema = try made.read { transaction in
                try transaction.rows("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type DESC") { $0.string() }
            }
            try made.close()
            for name in ["roost.state", "roost.lock"] { try FileManager.default.removeItem(at: directory.appending(path: name)) }
            let source = directory.appending(path: "source").path
            try FileManager.default.moveItem(atPath: path, toPath: source)
            // As SQLite makes one by default.
            var connection: OpaquePointer?
            #expect(sqlite3_open(path, &connection) == 0)
            let copying = ["ATTACH '\(source)' AS source"] + schema + tables.map { "INSERT INTO \($0) SELECT * FROM source.\($0)" }
            for sql in ["PRAGMA journal_mode = WAL"] + copying {
                #expect(sqlite3_exec(connection, sql, nil, nil, nil) == 0, "\(sql)")
            }
            sqlite3_close(connection)
            try FileManager.default.removeItem(atPath: source)
            #expect(try SQLiteDatabase.examinePages(of: path).damaged != nil)

            let database = try SQLiteDatabase(directory: directory)
            #expect(database.losses == [])
            #expect(
                try database.read { try $0.rows("SELECT name FROM settings WHERE name LIKE 'row%'") { $0.string() } }.count == 100)
            try database.close()
            #expect(try SQLiteDatabase.examinePages(of: path).damaged == nil)
        }
    }

    private func open(_ directory: URL) throws -> SQLiteDatabase {
        #expect(fault_vfs_register() == 0)
        return try SQLiteDatabase(directory: directory, acceptsDataLoss: false, base: "faults")
    }

    private func insert(_ name: String, _ value: String = "", into database: SQLiteDatabase) throws {
        try database.write(lane: 0) { _ = try $0.execute("INSERT INTO settings (name, value) VALUES (\(name), \(value))") }
    }

    /// A checkpoint of a due log: copied beside the lane first, as usual, or entirely on the lane, as when it grows too quickly for that.
    private func checkpoint(_ database: SQLiteDatabase, isBesideLane: Bool) throws -> Maintenance? {
        guard isBesideLane else { return try database.checkpointNow() }
        #expect(try database.maintain(lane: 0, isIdle: false) == nil)
        database.waitForCopy()
        return try database.maintain(lane: 0, isIdle: false)
    }

    private func kind(_ body: () throws -> Void) -> DatabaseFailure.Kind? {
        do {
            try body()
            return nil
        } catch {
            return (error as? DatabaseFailure)?.kind
        }
    }

    private func inDirectory(_ body: (URL) throws -> Void) throws {
        let directory = TemporaryPlace.make()
        defer { try? FileManager.default.removeItem(at: directory) }
        try body(directory)
    }
}
