public import Foundation
import GRDB
import GRDBSQLite
public import RoostCore
import Synchronization

/// Roost's rows in one SQLite file.
///
/// - One process: a lock file keeps a second one away. One writer connection; checkpoints happen only there, for the others are read-only.
/// - `journal_mode = WAL` and `synchronous = FULL`: a commit returns after fsync. GRDB sets NORMAL when it opens a file in WAL mode, so FULL
///   is set afterwards, and ``durability()`` reads it back.
/// - Readers are connections of their own and not GRDB's pool, which looks at the schema's version before each read.
public final class SQLiteDatabase: Database {
    private let writer: DatabaseQueue
    /// The readers that nobody uses at the moment, and how many those are.
    private let freeReaders = Mutex<[DatabaseQueue]>([])
    private let freeReaderCount = DispatchSemaphore(value: 0)
    private let lock: DirectoryLock

    /// Readers beside the writer.
    public let readerCount = 2
    public let laneCount = 1

    /// Opens the database in a directory, which is made when it isn't there, and brings its tables up to date.
    ///
    /// - Throws: ``DirectoryLock/Held`` when another process has it open.
    public init(directory: URL) throws {
        try FileManager.default.createDirectory(
            at: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        lock = try DirectoryLock(directory: directory)
        let path = directory.appending(path: "roost.sqlite").path
        var configuration = Self.configuration(label: "roost.writer")
        configuration.journalMode = .wal
        writer = try DatabaseQueue(path: path, configuration: configuration)
        try writer.writeWithoutTransaction { database in
            try database.execute(sql: "PRAGMA synchronous = FULL")
            // A checkpoint each 16 MB of the log: off most commits, and the file still small.
            try database.execute(sql: "PRAGMA wal_autocheckpoint = 4000")
        }
        try write(lane: 0) { try $0.migrate() }
        var readOnly = Self.configuration(label: "roost.reader")
        readOnly.readonly = true
        for _ in 0..<readerCount {
            let reader = try DatabaseQueue(path: path, configuration: readOnly)
            freeReaders.withLock { $0.append(reader) }
            freeReaderCount.signal()
        }
    }

    private static func configuration(label: String) -> Configuration {
        var configuration = Configuration()
        configuration.label = label
        configuration.prepareDatabase { database in
            try database.execute(sql: "PRAGMA cache_size = -65536")
            try database.execute(sql: "PRAGMA temp_store = MEMORY")
        }
        return configuration
    }

    /// The writer's journal mode and its level of `synchronous`, as SQLite itself tells them: `wal` and 2 for FULL.
    public func durability() throws -> (journalMode: String, synchronous: Int) {
        try writer.writeWithoutTransaction { database in
            let mode = try String.fetchOne(database, sql: "PRAGMA journal_mode") ?? ""
            return (mode, try Int.fetchOne(database, sql: "PRAGMA synchronous") ?? -1)
        }
    }

    public func write<T>(lane: Int, _ body: (any WriteTransaction) throws -> T) throws -> T {
        try writer.writeWithoutTransaction { database in
            try DatabaseFailure.translating {
                let transaction = SQLiteTransaction(database)
                try transaction.execute("BEGIN IMMEDIATE")
                let result: T
                do {
                    result = try body(transaction)
                } catch {
                    // After some errors SQLite has rolled back by itself, and then refuses to do it again.
                    _ = try? transaction.execute("ROLLBACK")
                    throw error
                }
                do {
                    try transaction.execute("COMMIT")
                } catch {
                    _ = try? transaction.execute("ROLLBACK")
                    throw error
                }
                return result
            }
        }
    }

    public func read<T>(_ body: (any Transaction) throws -> T) throws -> T {
        freeReaderCount.wait()
        defer { freeReaderCount.signal() }
        guard let reader = freeReaders.withLock({ $0.popLast() }) else {
            throw DatabaseFailure(message: "There is no reader.", kind: .transaction)
        }
        defer { freeReaders.withLock { $0.append(reader) } }
        return try reader.unsafeRead { database in
            try DatabaseFailure.translating {
                let transaction = SQLiteTransaction(database)
                try transaction.execute("BEGIN DEFERRED")
                defer { _ = try? transaction.execute("COMMIT") }
                return try body(transaction)
            }
        }
    }
}

extension DatabaseFailure {
    /// Tells SQLite's errors apart. `SQLITE_IOERR` has all failures of the disk, fsync among them.
    init(sqliteCode code: Int32, message: String) {
        let kind: Kind =
            switch code & 255 {
            case SQLITE_IOERR, SQLITE_CORRUPT, SQLITE_NOTADB: .fatal
            case SQLITE_FULL, SQLITE_BUSY, SQLITE_LOCKED, SQLITE_READONLY, SQLITE_NOMEM, SQLITE_CANTOPEN: .transaction
            default: .statement
            }
        self.init(message: "SQLite error \(code): \(message)", kind: kind)
    }

    /// Runs the body, and names GRDB's errors as failures of the database.
    static func translating<T>(_ body: () throws -> T) throws -> T {
        do {
            return try body()
        } catch let error as DatabaseError {
            throw DatabaseFailure(sqliteCode: error.extendedResultCode.rawValue, message: error.message ?? "")
        }
    }
}
