import CPageVFS
public import Foundation
import GRDB
import GRDBSQLite
public import RoostAPI
public import RoostCore
import Synchronization

/// Roost's rows in one SQLite file.
///
/// - One process: locks keep out a second one. One writer connection; checkpoints end only there, and a large log is written into the file beside it
///   before that (``LogCopier``).
/// - `journal_mode = WAL` and `synchronous = FULL`: a commit returns after fsync. ``durability()`` reads both back.
/// - Every page carries a checksum (`CPageVFS`): a damaged one is an error of the operation that needs it, and never an answer.
/// - Checkpoints are run by ``maintain(lane:isIdle:)`` and not by SQLite, which would ignore their failures.
/// - The file, its log and `roost.state` are compared with each other at each start ([0031](docs/decisions/0031-data-files-that-verify-each-other.md)).
/// - Readers are separate connections and not GRDB's pool, which checks the schema's version before each read.
public final class SQLiteDatabase: Database {
    let writer: DatabaseQueue
    private let writerStatements = PreparedStatements()
    let readers = ReaderPool<SQLiteReader>()
    private let lock: DirectoryLock
    /// Whether the directory is released to other processes when the database is closed.
    private let releasesLock: Bool
    let files: DataFiles
    let marks: StorageMarks
    private let watch = Mutex(FileWatch())
    let isClosed = Atomic<Bool>(false)
    /// One copy is made at a time, and closing waits for it.
    let copying = DispatchSemaphore(value: 1)
    let checkpoints: Mutex<Checkpoints>
    let copier = LogCopier()
    private let logFrames: LogFrameCount
    private let clock: @Sendable () -> Timestamp
    let memory: SQLiteMemory
    private let savepointPolicy = SavepointPolicy()
    /// Whether the system can report which parts of the files it has in memory.
    package let canReadWithoutBlocking: Bool

    /// The number of readers besides the writer.
    public let readerCount = 2
    public let laneCount = 1
    /// Sentences for the operator about what the start found and did.
    public let notes: [String]
    /// The losses that the server was started to accept; empty otherwise.
    public let losses: [String]

    /// The default size of all page caches together: 12 MiB, for small machines. The system caches the file too.
    public static let standardPageCacheBytes = 12 << 20

    /// The values kept between reads take at most two thirds of the size of the page caches, in addition to these: 8 MiB by default.
    private static func memoryBytes(of pageCacheBytes: Int) -> Int { pageCacheBytes / 3 * 2 }

    /// The writer's share of the page caches.
    package static func writerCacheBytes(of pageCacheBytes: Int) -> Int { pageCacheBytes / 4 * 3 }

    /// Opens the database in a directory, which is created if it doesn't exist, and brings its tables up to date.
    ///
    /// - Parameters:
    ///   - acceptsDataLoss: Starts with a new epoch if the files show data loss.
    ///   - pageCacheBytes: The size of the page caches of all connections together.
    /// - Throws: ``DirectoryLock/Held`` if another process has it open; ``DamagedFiles`` if the files don't belong together; ``DatabaseFailure`` with
    ///   its ``DatabaseFailure/obstacle`` for other obstacles, such as a full disk.
    public convenience init(
        directory: URL, acceptsDataLoss: Bool = false, pageCacheBytes: Int = SQLiteDatabase.standardPageCacheBytes
    ) throws {
        try self.init(directory: directory, acceptsDataLoss: acceptsDataLoss, pageCacheBytes: pageCacheBytes, base: nil)
    }

    /// - Parameters:
    ///   - base: The VFS for accessing the files, nil for the system's. Tests pass one that fails.
    ///   - checkpointFrames: The number of log frames at which the log is written into the database even if operations wait.
    ///   - checksMemory: Keeps as much as possible between reads, however little it saves, and compares it with what statements read.
    ///   - writeState: Writes a slot of `roost.state`, see `StateFile.Write`. Tests pass one that fails.
    ///   - lock: The lock of the directory if the caller has it and keeps it; nil to take it for as long as the database is open.
    ///   - clock: The machine's clock, or a simulation's.
    package init(
        directory: URL, acceptsDataLoss: Bool, pageCacheBytes: Int = SQLiteDatabase.standardPageCacheBytes, base: String?,
        checkpointFrames: Int32 = Checkpoints.logFrames, checksMemory: Bool = false,
        writeState: @escaping @Sendable ([UInt8], Int, Int32) -> Int32 = { StateFile.write($0, at: $1, of: $2) },
        lock: DirectoryLock? = nil, clock: @escaping @Sendable () -> Timestamp = { .now }
    ) throws {
        self.clock = clock
        memory = SQLiteMemory(sizeBytesMax: Self.memoryBytes(of: pageCacheBytes), isChecked: checksMemory)
        try MissingDirectories.make(directory)
        files = DataFiles(directory: directory)
        try files.requireUsable()
        releasesLock = lock == nil
        self.lock = try lock ?? DirectoryLock(directory: directory)
        let start = try SQLiteStart(
            files: files, acceptsDataLoss: acceptsDataLoss, lock: self.lock, pageCacheBytes: pageCacheBytes, base: base,
            writeState: writeState)
        do {
            writer = try start.open(logSizeBytesMax: Checkpoints.logSizeBytesMax(dueAtFrames: checkpointFrames))
            try start.syncDirectory()
        } catch {
            throw SQLiteStart.explained(error, files)
        }
        marks = StorageMarks(state: start.state, file: start.stateFile, logPath: files.log)
        logFrames = start.logFrames
        checkpoints = Mutex(Checkpoints(generation: start.state.generation, logFrames: checkpointFrames))
        canReadWithoutBlocking = roost_allow_at_once(files.state) == 1
        notes = start.notes
        losses = start.losses
        do {
            try finishStart(start, base: base)
        } catch {
            // The files are left as they were found, as far as possible.
            isClosed.store(true, ordering: .releasing)
            marks.stop()
            try? copier.stop()
            throw SQLiteStart.explained(error, files)
        }
    }

    /// Creates the tables, writes the whole log into the database, and opens the readers.
    private func finishStart(_ start: SQLiteStart, base: String?) throws {
        let state = start.state
        try requireKnownTables()
        // Before the first change, and again after a start that was killed in between: the next start has no losses left to accept.
        if state.nextLineage != nil { try requireIntegrity() }
        try marks.begin()
        try write(lane: 0) { transaction in
            try transaction.migrate()
            if state.nextLineage != nil { try transaction.renewEpoch(to: UUID().uuidString.lowercased()) }
        }
        try writer.writeWithoutTransaction { database in
            let connection = database.sqliteConnection
            let id = state.applicationIDs.last ?? state.applicationID
            guard roost_set_application_id(connection, id) == SQLITE_OK else { throw Self.failure(connection) }
            if roost_has_checksums(connection) == 0 {
                // Every page is rewritten, with room for its checksum.
                try database.execute(sql: "VACUUM")
            }
            if let obstacle = try checkpoint(database, SQLITE_CHECKPOINT_TRUNCATE).obstacle {
                throw DatabaseFailure(
                    message: "The log of \(files.database) couldn't be written into it.", kind: .fatal, obstacle: obstacle)
            }
            guard roost_has_checksums(connection) == 1 else {
                throw DatabaseFailure(message: "The pages of \(files.database) have no checksums.", kind: .fatal)
            }
            try Self.requireWhole(database, files.database)
            // Before the disk becomes full. If it is full already, the index grows when it has to, as it would without this.
            roost_reserve_log_index(connection, Checkpoints.indexedFrames)
        }
        try marks.started()
        for _ in 0..<readerCount {
            let path = SQLiteStart.uri(files.database, base: base)
            readers.add(
                SQLiteReader(queue: try DatabaseQueue(path: path, configuration: start.readerConfiguration(of: readerCount))))
        }
        try copier.open(SQLiteStart.uri(files.database, base: base))
        try watch.withLock { watch in
            try watch.add(files.database, noticesChanges: true)
            try watch.add(files.log)
            try watch.add(files.lock)
            try watch.add(files.state)
        }
    }

    /// Returns a failure of a server's start on this database as sentences with the remedy, if that is known.
    package func explained(_ error: any Error) -> any Error { SQLiteStart.explained(error, files) }

    /// Refuses the files of a newer version without changing them.
    private func requireKnownTables() throws {
        try writer.writeWithoutTransaction { database in
            let isThere = try Int.fetchOne(database, sql: "SELECT 1 FROM sqlite_schema WHERE name = 'migrations'") != nil
            guard isThere else { return }
            try DatabaseFailure.ofNewerTables {
                try Migrations.made(in: SQLiteTransaction(database, writerStatements, clock: clock))
            }
        }
    }

    /// Checks that the file is as long as its header says. A shorter one was truncated.
    private static func requireWhole(_ database: GRDB.Database, _ path: String) throws {
        let pages = try Int64.fetchOne(database, sql: "PRAGMA page_count") ?? 0
        let size = DataFiles.size(of: path) ?? 0
        guard size == pages * DatabaseHeader.pageSizeBytes else {
            throw DamagedFiles("\(path) has \(size) bytes where \(pages) pages are needed: it was cut off.", canBeAccepted: false)
        }
    }

    /// Checks the whole database: pieces that don't belong together can make it contradict itself.
    private func requireIntegrity() throws {
        let found = try writer.writeWithoutTransaction { try String.fetchOne($0, sql: "PRAGMA integrity_check(1)") }
        guard found == "ok" else {
            throw DamagedFiles("\(files.database) is inconsistent (\(found ?? "no answer")).", canBeAccepted: false)
        }
    }

    static func failure(_ connection: OpaquePointer?) -> DatabaseFailure {
        let message = sqlite3_errmsg(connection).map { String(cString: $0) } ?? ""
        return DatabaseFailure(sqliteCode: sqlite3_extended_errcode(connection), message: message)
    }

    /// Returns the writer's journal mode and its level of `synchronous`, as SQLite reports them: `wal` and 2 for FULL.
    public func durability() throws -> (journalMode: String, synchronous: Int) {
        try writer.writeWithoutTransaction { database in
            let mode = try String.fetchOne(database, sql: "PRAGMA journal_mode") ?? ""
            return (mode, try Int.fetchOne(database, sql: "PRAGMA synchronous") ?? -1)
        }
    }

    // MARK: Writing and reading

    public func now() -> Timestamp { clock() }

    public func write<T>(lane: Int, _ body: (any WriteTransaction) throws -> T) throws -> T {
        try writer.writeWithoutTransaction { database in
            try DatabaseFailure.translating {
                try requireLog()
                let usesSavepoints = savepointPolicy.isNeeded()
                var transaction = SQLiteTransaction(database, writerStatements, usesSavepoints: usesSavepoints, clock: clock)
                let result: T
                do {
                    result = try commit(transaction, body)
                } catch  where transaction.needsSavepoints {
                    savepointPolicy.noteNeed()
                    transaction = SQLiteTransaction(database, writerStatements, usesSavepoints: true, clock: clock)
                    result = try commit(transaction, body)
                }
                try watch.withLock { try $0.check() }
                marks.committed(logFrames: logFrames.value)
                return result
            }
        }
    }

    /// Runs a body in a transaction, and commits it.
    private func commit<T>(_ transaction: SQLiteTransaction, _ body: (any WriteTransaction) throws -> T) throws -> T {
        try transaction.begin()
        let result: T
        do {
            result = try body(transaction)
        } catch {
            // After some errors SQLite has rolled back by itself, and then refuses to do so again.
            try? transaction.rollBack()
            throw error
        }
        do {
            memory.willCommit(transaction.changes)
            // Also if it fails: reads then check more than has changed.
            defer { memory.didCommit() }
            try transaction.commit()
        } catch {
            try? transaction.rollBack()
            throw error
        }
        return result
    }

    /// Checks that the log has kept its length. Otherwise the loss is recorded before the process ends, so the next start notices it too.
    private func requireLog() throws {
        do {
            try watch.withLock { try $0.checkLog(files.log, frames: logFrames.value) }
        } catch {
            try? marks.mark()
            throw error
        }
    }

    public func read<T>(_ body: (any Transaction) throws -> T) throws -> T {
        try readers.withReader { try read(on: $0, body) }
    }

    public func readWithoutBlocking<T>(_ body: (any Transaction) throws -> T) throws -> T? {
        guard canReadWithoutBlocking else { return nil }
        let found: T?? = try readers.withFreeReader { reader in
            roost_begin_at_once()
            let result = Result { try read(on: reader, body) }
            // A statement that would have waited has failed, however the body handled that.
            return roost_end_at_once() == 1 ? try result.get() : nil
        }
        return found ?? nil
    }

    private func read<T>(on reader: SQLiteReader, _ body: (any Transaction) throws -> T) throws -> T {
        try reader.queue.unsafeRead { database in
            try DatabaseFailure.translating {
                // The snapshot starts later, with the first statement that reads.
                let transaction = SQLiteTransaction(
                    database, reader.statements, readCache: memory.forSnapshot(), clock: clock)
                try transaction.execute("BEGIN DEFERRED")
                defer { _ = try? transaction.execute("COMMIT") }
                return try body(transaction)
            }
        }
    }

    // MARK: Checkpoints

    public func maintain(lane: Int, isIdle: Bool) throws -> Maintenance? {
        if let failure = marks.failure { throw failure }
        let frames = logFrames.value
        guard copier.copies > 0 || checkpoints.withLock({ $0.isDue(frames: frames, isIdle: isIdle) }) else { return nil }
        guard try copier.hasEnded() else { return nil }
        // In a pause too: an operation that ends the pause shouldn't wait for a slow disk.
        if Checkpoints.isCopiedFirst(frames: frames - copier.copiedFrames, copies: copier.copies) {
            watch.withLock { $0.allowChanges(of: files.database) }
            try copier.begin(at: frames)
            return nil
        }
        return try writer.writeWithoutTransaction { database in
            try checkpoint(database, SQLITE_CHECKPOINT_PASSIVE)
        }
    }

    public func isMaintaining(lane: Int) -> Bool { copier.copies > 0 }

    /// Writes the log into the database file, as far as no reader is in the way, and syncs the file.
    ///
    /// - Throws: A fatal failure, like a commit whose fsync fails: the content of the file is unknown.
    @discardableResult
    func checkpoint(_ database: GRDB.Database, _ mode: Int32) throws -> Maintenance {
        let connection = database.sqliteConnection
        let started = DispatchTime.now()
        var (frames, done): (Int32, Int32) = (0, 0)
        func heldByFullDisk() -> Maintenance {
            // The log keeps its content until there is room.
            _ = checkpoints.withLock { $0.end(isComplete: false, frames: logFrames.value) }
            return Maintenance(
                logFrames: Int(logFrames.value), framesDone: Int(max(0, done)), obstacle: .fullDisk,
                nanoseconds: DispatchTime.now().uptimeNanoseconds - started.uptimeNanoseconds)
        }
        guard try setGeneration(connection) else {
            copier.giveUp()
            watch.withLock { $0.noteChange(of: files.database) }
            return heldByFullDisk()
        }
        try copier.unpin()
        let code = sqlite3_wal_checkpoint_v2(connection, "main", mode, &frames, &done)
        watch.withLock { $0.noteChange(of: files.database) }
        if code & 255 == SQLITE_FULL { return heldByFullDisk() }
        guard code == SQLITE_OK || code & 255 == SQLITE_BUSY else {
            let failure = Self.failure(connection)
            throw DatabaseFailure(message: "The log couldn't be written into the database. \(failure.message)", kind: .fatal)
        }
        let isComplete = code == SQLITE_OK && frames == done
        if isComplete, mode == SQLITE_CHECKPOINT_TRUNCATE { logFrames.reset() }
        if let completed = checkpoints.withLock({ $0.end(isComplete: isComplete, frames: frames) }) {
            try marks.completed(generation: completed)
        }
        return Maintenance(
            logFrames: Int(max(0, frames)), framesDone: Int(max(0, done)), obstacle: isComplete ? nil : .inUse,
            nanoseconds: DispatchTime.now().uptimeNanoseconds - started.uptimeNanoseconds)
    }

    /// Writes the checkpoint's number as the log's last commit: the file has it only once the whole log is in the file.
    ///
    /// - Returns: False if the disk has no room for it.
    private func setGeneration(_ connection: OpaquePointer?) throws -> Bool {
        let next = checkpoints.withLock { $0.begin() }
        let code = roost_set_generation(connection, next)
        if code & 255 == SQLITE_FULL { return false }
        guard code == SQLITE_OK else {
            let failure = Self.failure(connection)
            throw DatabaseFailure(message: failure.message, kind: .fatal, obstacle: failure.obstacle)
        }
        marks.committed(logFrames: logFrames.value)
        return true
    }

    // MARK: Closing

    /// Writes the log into the database file, which then contains everything, and closes it. Does nothing the second time.
    ///
    /// None of that is left to the file system: if the machine fails afterwards, the log is as empty as `roost.state` says.
    public func close() throws {
        guard !isClosed.exchange(true, ordering: .acquiringAndReleasing) else { return }
        // A running copy ends at its next step.
        copying.wait()
        defer {
            copying.signal()
            if releasesLock { lock.release() }
        }
        for reader in readers.drain(readerCount) { reader.close() }
        marks.stop()
        try copier.stop()
        try writer.writeWithoutTransaction { database in
            try requireLog()
            try watch.withLock { try $0.check() }
            let last = try checkpoint(database, SQLITE_CHECKPOINT_TRUNCATE)
            guard last.isComplete else {
                let reason = last.obstacle == .fullDisk ? "the disk is full" : "another program is using it"
                throw DatabaseFailure(
                    message: "The log couldn't be written into \(files.database): \(reason). The next start does it.", kind: .fatal,
                    obstacle: last.obstacle)
            }
            // SQLite truncates the log without syncing.
            let code = roost_sync_log(database.sqliteConnection)
            guard code == SQLITE_OK else {
                throw DatabaseFailure(message: "\(files.log) couldn't be emptied: SQLite error \(code).", kind: .fatal)
            }
            try marks.closed()
            roost_keep_log_on_close(database.sqliteConnection, 0)
        }
        // The last connection deletes the log.
        copier.close()
        writerStatements.removeAll()
        try writer.close()
        try lock.syncDirectory()
    }

    deinit { try? close() }
}

/// The count that SQLite updates at each commit. SQLite uses the memory for as long as the connection lasts.
final class LogFrameCount: @unchecked Sendable {  // the writer's queue alone touches the memory
    let memory: UnsafeMutablePointer<Int32>

    init() {
        memory = .allocate(capacity: 1)
        memory.initialize(to: 0)
    }

    var value: Int32 { memory.pointee }
    /// Records that the log was emptied.
    func reset() { memory.pointee = 0 }

    deinit { memory.deallocate() }
}

extension DatabaseFailure {
    /// SQLite's extended codes for damage: a page that doesn't match its checksum, and damage found by the file system.
    private static let damageCodes: Set<Int32> = [SQLITE_IOERR | 32 << 8, SQLITE_IOERR | 33 << 8]

    /// Classifies SQLite's errors. `SQLITE_IOERR` covers all failures of the disk, including fsync.
    init(sqliteCode code: Int32, message: String) {
        var place = ""
        let isDamage = Self.damageCodes.contains(code) || code & 255 == SQLITE_CORRUPT || code & 255 == SQLITE_NOTADB
        if isDamage {
            var page: UInt32 = 0
            let kind = roost_take_damage(&page)
            if kind != 0 { place = " Page \(page) of the \(kind == 2 ? "log" : "database") doesn't match its checksum." }
        }
        let kind: Kind =
            switch code & 255 {
            case _ where isDamage: .damage
            case SQLITE_IOERR: .fatal
            case SQLITE_FULL, SQLITE_BUSY, SQLITE_LOCKED, SQLITE_READONLY, SQLITE_NOMEM, SQLITE_CANTOPEN: .transaction
            default: .statement
            }
        self.init(
            message: "SQLite error \(code): \(message).\(place)", kind: kind, obstacle: isDamage ? nil : Self.obstacle(of: code))
    }

    /// The code for an index of the log that couldn't grow, which only a lack of disk space causes (`SQLITE_IOERR_SHMSIZE`).
    ///
    /// It is fatal anyway: by then the commit is in the log. If only the operation were refused, a start would find it done, or find its end after a
    /// later commit, which looks like damage. A start reserves room for a log of the usual size to avoid this.
    private static let indexCode = SQLITE_IOERR | 19 << 8

    private static func obstacle(of code: Int32) -> Obstacle? {
        switch code & 255 {
        case _ where code == indexCode: .fullDisk
        case SQLITE_FULL: .fullDisk
        case SQLITE_BUSY, SQLITE_LOCKED: .inUse
        case SQLITE_IOERR, SQLITE_CANTOPEN, SQLITE_READONLY: .refusedFile
        default: nil
        }
    }

    /// Runs the body, and converts GRDB's errors into failures of the database.
    static func translating<T>(_ body: () throws -> T) throws -> T {
        do {
            return try body()
        } catch let error as DatabaseError {
            throw DatabaseFailure(sqliteCode: error.extendedResultCode.rawValue, message: error.message ?? "")
        }
    }
}
