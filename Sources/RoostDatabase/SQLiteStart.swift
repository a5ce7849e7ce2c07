import CPageVFS
import Foundation
import GRDB
import GRDBSQLite
import RoostCore

/// The start of a database on SQLite, up to its first commit:
/// 1. A database that another program has open is refused. Files that others could open are restricted to their owner.
/// 2. The files are compared with each other (``StorageExamination``). A refusal here changes nothing.
/// 3. SQLite opens the database through the VFS that verifies pages, and reads the log.
struct SQLiteStart {
    let files: DataFiles
    let stateFile: StateFile
    let logFrames = LogFrameCount()
    private let lock: DirectoryLock
    private let pageCacheBytes: Int
    private let base: String?
    private var examination: StorageExamination
    private(set) var state: StorageState
    private(set) var notes: [String]

    var losses: [String] { examination.losses }

    init(
        files: DataFiles, acceptsDataLoss: Bool, lock: DirectoryLock, pageCacheBytes: Int, base: String?,
        writeState: @escaping StateFile.Write
    ) throws {
        self.files = files
        self.pageCacheBytes = pageCacheBytes
        self.lock = lock
        self.base = base
        // When such a program ends, it writes the log into the database without checksums: the log must be empty by then.
        guard !files.isOpenElsewhere else { throw files.inUse }
        notes = try files.close()
        examination = try StorageExamination(files: files, acceptsDataLoss: acceptsDataLoss)
        state = examination.state
        stateFile = try StateFile(path: files.state, writeBytes: writeState)
        if !losses.isEmpty {
            state.nextLineage = state.nextLineage ?? UUID().uuidString.lowercased()
            // Before the log is set aside or recreated, which might hide the loss: the known state is kept, and however this start ends, the next one
            // is refused too or takes a new epoch. A missing or damaged state stays so until then.
            if var known = examination.known {
                known.nextLineage = state.nextLineage
                known.sequence += 1
                try stateFile.write(known)
                state.sequence = known.sequence
            }
        }
        if examination.setsLogAside { try Self.setAside(files.log, &notes) }
        if examination.removesLog, unlink(files.log) != 0, errno != ENOENT {
            throw DatabaseFailure.system("Can't remove \(files.log)")
        }
        if state.phase == .new, !examination.isKnown, losses.isEmpty {
            // Before the database: a kill between the two must not look like a database without its state. If there was one, a start that fails from
            // here on leaves the files as found, so the next one finds the same.
            state.sequence += 1
            try stateFile.write(state)
        }
        try files.makeDatabase()
        // Read before SQLite opens the file: closing a descriptor of it would release SQLite's locks.
        state.generation = DatabaseHeader(path: files.database)?.generation ?? 0
        try lock.syncDirectory()
    }

    private static func setAside(_ path: String, _ notes: inout [String]) throws {
        let aside = "\(path).set-aside-\(Int(Date().timeIntervalSince1970))-\(getpid())"
        guard rename(path, aside) == 0 || errno == ENOENT else { throw DatabaseFailure.system("Can't rename \(path)") }
        notes.append("\(path) doesn't belong to the database. It is kept as \(aside).")
    }

    // MARK: Opening

    private static let vfs = "roost"
    /// Whether SQLite accepts a path with the name of a VFS. If it doesn't, ours has to be the default.
    private static let takesURI = sqlite3_compileoption_used("USE_URI") == 1

    static func uri(_ path: String, base: String?) -> String {
        guard takesURI else { return path }
        let allowed = CharacterSet.urlPathAllowed.subtracting(CharacterSet(charactersIn: "?#;%"))
        return "file:\(path.addingPercentEncoding(withAllowedCharacters: allowed) ?? path)?vfs=\(name(over: base))"
    }

    private static func name(over base: String?) -> String { base.map { "\(vfs)-\($0)" } ?? vfs }

    private static func configuration(label: String, cacheBytes: Int) -> Configuration {
        var configuration = Configuration()
        configuration.label = label
        configuration.prepareDatabase { database in
            let connection = database.sqliteConnection
            guard roost_set_page_cache(connection, Int32(clamping: cacheBytes >> 10)) == SQLITE_OK,
                roost_keep_plans(connection) == SQLITE_OK
            else { throw SQLiteDatabase.failure(connection) }
            try database.execute(sql: "PRAGMA temp_store = MEMORY")
        }
        return configuration
    }

    /// The readers share a quarter of the cache, enough for the inner pages of trees. The rest is the writer's, which changes pages all over the
    /// file.
    func readerConfiguration(of count: Int) -> Configuration {
        var configuration = Self.configuration(label: "roost.reader", cacheBytes: pageCacheBytes / 4 / max(1, count))
        configuration.readonly = true
        return configuration
    }

    /// Registers the VFS that verifies pages.
    static func register(base: String?) throws {
        guard roost_vfs_register(name(over: base), base, takesURI ? 0 : 1) == SQLITE_OK else {
            throw DatabaseFailure(message: "SQLite refused the VFS that verifies pages.", kind: .fatal)
        }
    }

    /// Opens the writer. Nothing is written into an existing database.
    ///
    /// - Parameter logSizeBytesMax: The size to which a larger log file is truncated once all of it is in the database and the next log begins.
    func open(logSizeBytesMax: Int64) throws -> DatabaseQueue {
        try Self.register(base: base)
        var configuration = Self.configuration(
            label: "roost.writer", cacheBytes: SQLiteDatabase.writerCacheBytes(of: pageCacheBytes))
        let logFrames = logFrames
        configuration.prepareDatabase { database in
            let connection = database.sqliteConnection
            // Until everything has been checked, the files stay as they were found.
            roost_keep_log_on_close(connection, 1)
            roost_count_log_frames(connection, logFrames.memory)
            guard roost_reserve_bytes(connection) == SQLITE_OK else { throw SQLiteDatabase.failure(connection) }
        }
        let writer = try DatabaseQueue(path: Self.uri(files.database, base: base), configuration: configuration)
        try writer.writeWithoutTransaction { database in
            guard roost_uses_vfs(database.sqliteConnection) == 1 else {
                throw DatabaseFailure(message: "SQLite doesn't use the VFS that verifies pages.", kind: .fatal)
            }
            let mode = try String.fetchOne(database, sql: "PRAGMA journal_mode = WAL")
            guard mode == "wal" else { throw DatabaseFailure(message: "SQLite refused a write-ahead log.", kind: .fatal) }
            try database.execute(sql: "PRAGMA synchronous = FULL")
            // Freed pages are overwritten: their content is gone, and each page of the file has been written once.
            try database.execute(sql: "PRAGMA secure_delete = ON")
            // A log that readers held up leaves a large file, which would stay until the server stops.
            guard roost_limit_log(database.sqliteConnection, logSizeBytesMax) == SQLITE_OK else {
                throw SQLiteDatabase.failure(database.sqliteConnection)
            }
        }
        return writer
    }

    /// Syncs the log's name in the directory before anything relies on it.
    func syncDirectory() throws { try lock.syncDirectory() }

    /// Returns a failure of the start as sentences with the remedy, if that is known.
    static func explained(_ error: any Error, _ files: DataFiles) -> any Error {
        let failure =
            (error as? DatabaseFailure)
            ?? (error as? DatabaseError).map {
                DatabaseFailure(sqliteCode: $0.extendedResultCode.rawValue, message: $0.message ?? "")
            }
        guard let failure else { return error }
        guard failure.kind != .damage else {
            return DamagedFiles("\(files.database) is damaged. \(failure.message)", canBeAccepted: false)
        }
        return switch failure.obstacle {
        case .fullDisk?: files.fullDisk
        case .inUse?: files.inUse
        case .refusedFile?: files.writingFailure() ?? failure
        case nil: failure
        }
    }
}
