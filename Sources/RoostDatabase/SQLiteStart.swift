import CPageVFS
import Foundation
import GRDB
import GRDBSQLite
import RoostCore

/// The start of a database on SQLite, up to its first commit:
/// 1. A database that another program has open is refused. Files that others could open are closed to them.
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
        // When such a program ends it writes the log into the database, without checksums: nothing may be in the log by then.
        guard !files.isOpenElsewhere else { throw files.inUse }
        notes = try files.close()
        examination = try StorageExamination(files: files, acceptsDataLoss: acceptsDataLoss)
        state = examination.state
        stateFile = try StateFile(path: files.state, writeBytes: writeState)
        if !losses.isEmpty {
            state.nextLineage = state.nextLineage ?? UUID().uuidString.lowercased()
            // Before the log is set aside or made anew, with which the loss might be found no more: what was known stays, and whatever ends this
            // start, the next one is refused too or takes a new epoch. A state that is missing or damaged stays so till then.
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
            // Before the database: a kill between the two must not look like a database without its state. Where there was one, a start that
            // fails from here on leaves what was found, so that the next one finds it too.
            state.sequence += 1
            try stateFile.write(state)
        }
        try files.makeDatabase()
        // Read while SQLite hasn't the file open: closing a descriptor of it would take SQLite's locks away.
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
    /// Whether SQLite takes a path with the name of a VFS. Where it doesn't, ours has to be everybody's.
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

    /// Makes the VFS known that verifies pages.
    static func register(base: String?) throws {
        guard roost_vfs_register(name(over: base), base, takesURI ? 0 : 1) == SQLITE_OK else {
            throw DatabaseFailure(message: "SQLite refused the VFS that verifies pages.", kind: .fatal)
        }
    }

    /// Opens the writer. Nothing is written into a database that is there.
    ///
    /// - Parameter logSizeBytesMax: What is left of a larger file of the log once all of that is in the database and the next log begins.
    func open(logSizeBytesMax: Int64) throws -> DatabaseQueue {
        try Self.register(base: base)
        var configuration = Self.configuration(
            label: "roost.writer", cacheBytes: SQLiteDatabase.writerCacheBytes(of: pageCacheBytes))
        let logFrames = logFrames
        configuration.prepareDatabase { database in
            let connection = database.sqliteConnection
            // Until everything is in order, what was found is left as it was found.
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

    /// Has the log's name in the directory on disk before anything that relies on it.
    func syncDirectory() throws { try lock.syncDirectory() }

    /// Returns a failure of the start as sentences that say what to do, if that is known.
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
