import CPageVFS
import Foundation
import GRDB
import GRDBSQLite
import Synchronization

/// The content of a copy of the database.
public struct DatabaseCopy: Codable, Equatable, Sendable {
    public let pages: Int64
    /// A checksum of 64 bits over all pages, in hexadecimal.
    public let checksum: String
    /// The number of rows of each table.
    public let rows: [String: Int64]
}

extension SQLiteDatabase {
    /// The number of pages copied per step, which is the longest wait of the writer.
    private static let pagesInStep: Int32 = 32
    /// The number of steps after which the disk has to write them, so no commit waits for much of the copy.
    private static let stepsInWrite = 4

    /// Copies the database, as it is when this returns, into a new file while operations continue.
    ///
    /// SQLite's own backup runs on the writer's connection, between two transactions, a few pages at a time: concurrent writes are included in the
    /// copy, and no reader holds up a checkpoint. A damaged page ends it, and so does a disk that refuses a part of the copy. From then on the thread
    /// has a lower priority, for checking the copy.
    /// - Throws: ``DatabaseFailure``.
    public func copy(to path: String, pace: CopyPace = .whileServing) throws {
        try copy(to: path, pace: pace, writeBehind: roost_write_behind)
    }

    /// - Parameter writeBehind: Makes the disk write what was copied so far, and returns 0 or an error number. Tests pass one that fails.
    package func copy(to path: String, pace: CopyPace = .whileServing, writeBehind: (_ descriptor: Int32) -> Int32) throws {
        copying.wait()
        defer { copying.signal() }
        guard !isClosed.load(ordering: .acquiring) else {
            throw DatabaseFailure(message: "The server is shutting down.", kind: .transaction)
        }
        let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw DatabaseFailure.system("Can't create \(path)") }
        defer { Foundation.close(descriptor) }
        var opened: OpaquePointer?
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX
        guard sqlite3_open_v2(SQLiteStart.uri(path, base: nil), &opened, flags, nil) == SQLITE_OK, let copy = opened else {
            defer { sqlite3_close(opened) }
            throw Self.failure(opened)
        }
        defer { sqlite3_close(copy) }
        // The file is synced as a whole when it is complete, and discarded if it never is.
        for pragma in ["PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF"] {
            guard sqlite3_exec(copy, pragma, nil, nil, nil) == SQLITE_OK else { throw Self.failure(copy) }
        }
        try run(Backup(copy), into: descriptor, pace, writeBehind: writeBehind)
        guard FileSync.sync(descriptor, path) else { throw DatabaseFailure.system("Can't sync \(path)") }
        // Checking the copy gives way to the server. Copying mustn't: it uses the writer's connection, and the lane would wait for a thread that gets
        // only the rest of a busy machine.
        roost_lower_priority()
    }

    /// SQLite's backup, used only on the writer's queue.
    private final class Backup: @unchecked Sendable {  // used on the writer's queue alone
        let copy: OpaquePointer
        var process: OpaquePointer?
        init(_ copy: OpaquePointer) { self.copy = copy }
    }

    private func run(_ backup: Backup, into descriptor: Int32, _ pace: CopyPace, writeBehind: (Int32) -> Int32) throws {
        try writer.writeWithoutTransaction { database in
            backup.process = sqlite3_backup_init(backup.copy, "main", database.sqliteConnection, "main")
            guard backup.process != nil else { throw Self.failure(backup.copy) }
        }
        var code = SQLITE_OK
        var steps = 0
        var stepsMax = Int.max
        var refusal: Int32 = 0
        repeat {
            (code, stepsMax) = writer.unsafeReentrantStep(backup.process, Self.pagesInStep)
            steps += 1
            if steps.isMultiple(of: Self.stepsInWrite) { refusal = writeBehind(descriptor) }
            if code == SQLITE_OK || code == SQLITE_BUSY || code == SQLITE_LOCKED { pace.pauseInCopying() }
        } while (code == SQLITE_OK || code == SQLITE_BUSY || code == SQLITE_LOCKED)
            && refusal == 0 && steps < stepsMax && !isClosed.load(ordering: .acquiring)
        let failure = writer.writeWithoutTransaction { _ -> DatabaseFailure? in
            let ended = sqlite3_backup_finish(backup.process)
            backup.process = nil
            // The system has already reported the error to this descriptor, and the final fsync wouldn't report it again.
            if refusal != 0 { return DatabaseFailure.system("The copy of the database couldn't be written", refusal) }
            if code == SQLITE_DONE, ended == SQLITE_OK { return nil }
            // Every step succeeded, but there were too few of them.
            if code == SQLITE_OK {
                let reason =
                    isClosed.load(ordering: .acquiring)
                    ? "The server is shutting down."
                    : "The database couldn't be copied: too many transactions were rolled back meanwhile, and each restarts the copy."
                return DatabaseFailure(message: reason, kind: .transaction)
            }
            return DatabaseFailure(
                sqliteCode: code == SQLITE_DONE ? ended : code, message: "The database couldn't be copied")
        }
        if let failure { throw failure }
    }

    /// Reads a copy back from the disk: checks every page's checksum, and every table and index, and counts the rows of each table.
    ///
    /// Pages that the system no longer has in memory once all were read are read again, for the tables and indexes.
    ///
    /// - Parameter pace: Nil to read without pauses.
    /// - Throws: ``DamagedFiles`` if anything doesn't match.
    public static func verify(copy path: String, pace: CopyPace? = nil) throws -> DatabaseCopy {
        try SQLiteStart.register(base: nil)
        dropCache(of: path)
        let found = try PageReading(of: path, pace: pace)
        if let page = found.firstDamaged {
            throw DamagedFiles("Page \(page) of \(path) doesn't match its checksum.", canBeAccepted: false)
        }
        var configuration = Configuration()
        configuration.label = "roost.copy"
        do {
            let queue = try DatabaseQueue(path: SQLiteStart.uri(path, base: nil), configuration: configuration)
            defer { try? queue.close() }
            let rows = try queue.writeWithoutTransaction { database in
                try CheckPauses.taken(by: database.sqliteConnection, pace) { try checkedRows(database, path) }
            }
            return DatabaseCopy(pages: found.pages, checksum: found.checksum, rows: rows)
        } catch let error as DatabaseError {
            throw DamagedFiles("\(path) can't be read: \(error.message ?? "no reason given").", canBeAccepted: false)
        }
    }

    /// Makes a copy complete without a log, by leaving the journal mode that needs one.
    public static func seal(copy path: String) throws {
        try SQLiteStart.register(base: nil)
        let mode = try DatabaseFailure.translating { () -> String? in
            let queue = try DatabaseQueue(path: SQLiteStart.uri(path, base: nil), configuration: Configuration())
            let mode = try queue.writeWithoutTransaction { try String.fetchOne($0, sql: "PRAGMA journal_mode = DELETE") }
            try queue.close()
            return mode
        }
        guard mode == "delete" else { throw DatabaseFailure(message: "\(path) is in use.", kind: .fatal) }
    }

    /// Makes the next read of a copy go to the disk: recently written data is also in the system's memory, which says nothing about the disk.
    private static func dropCache(of path: String) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        roost_drop_cache(descriptor)
        Foundation.close(descriptor)
    }

    /// Checks the tables and indexes, and returns the number of rows of each table.
    private static func checkedRows(_ database: GRDB.Database, _ path: String) throws -> [String: Int64] {
        let found = try String.fetchOne(database, sql: "PRAGMA integrity_check(1)")
        guard found == "ok" else { throw DamagedFiles("\(path) is inconsistent: \(found ?? "").", canBeAccepted: false) }
        let tables = try String.fetchAll(database, sql: "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        var rows: [String: Int64] = [:]
        for table in tables where !table.hasPrefix("sqlite_") {
            // A table's name can't be bound: the query builder quotes it.
            rows[table] = Int64(try Table(table).fetchCount(database))
        }
        return rows
    }

    /// Reads every page of a database that no server has open, and compares it with its checksum.
    ///
    /// - Returns: The number of pages, and the first damaged one.
    public static func examinePages(of path: String) throws -> (pages: Int64, damaged: Int64?) {
        let found = try PageReading(of: path)
        return (found.pages, found.firstDamaged)
    }
}

extension DatabaseQueue {
    /// Runs one step of a backup, and returns its limit of steps: a backup restarts whenever a transaction is rolled back.
    fileprivate func unsafeReentrantStep(_ process: OpaquePointer?, _ pages: Int32) -> (code: Int32, stepsMax: Int) {
        writeWithoutTransaction { _ in
            let code = sqlite3_backup_step(process, pages)
            return (code, 1000 + 10 * Int(sqlite3_backup_pagecount(process)) / Int(max(1, pages)))
        }
    }
}
