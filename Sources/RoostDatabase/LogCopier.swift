import CPageVFS
import Dispatch
import Foundation
import GRDBSQLite
import Synchronization

/// Writes most of a large log into the database file beside the lane, which leaves little for the checkpoint there.
///
/// A checkpoint of 64 MB takes several milliseconds, and its fsync as many, or far more on a slow disk. So it is made in these steps:
/// 1. On the lane: a reader *pins* the log at its end.
/// 2. On a separate thread: a second connection writes the pages up to the pin into the file, and syncs them.
/// 3. On the lane: 1 and 2 are repeated, with fewer fsyncs each time, while the log has grown by more than a few frames meanwhile.
/// 4. On the lane: the checkpoint's number is committed, the pin released, and the rest written by the writer's connection.
///
/// The log restarts only when all of it is in the file and no reader uses it. So it doesn't restart while it is pinned, and step 4 alone completes a
/// checkpoint, as if it had found a small log. This also avoids the one bug of SQLite up to 3.51.2 with several connections, which requires a log
/// that restarts during a checkpoint (<https://sqlite.org/wal.html#walresetbug>).
final class LogCopier: @unchecked Sendable {  // the lane alone uses `pin`, the copying thread alone `copier`
    private enum Work {
        case none
        /// The file is to be synced after so many pages, and at the end.
        case asked(stepPages: Int32)
        /// How many frames of the log are in the file and on disk.
        case done(copied: Int32)
        case failed(DatabaseFailure)
        case stopped
    }

    /// The number of pages of the file that are synced together: 256 KiB in the first copy for a checkpoint. A commit in the meantime waits for these,
    /// not for thousands.
    ///
    /// A further copy means that the log grew by more than a few frames. On a disk whose fsyncs take longer than everything else, the lane appends
    /// more for each of them than 64 pages. So each further copy makes steps four times as large, and copies overtake the commits.
    private static func stepPages(copiesBefore: Int) -> Int32 {
        let first: Int32 = 64
        return first << (2 * copiesBefore)
    }

    private var pin: OpaquePointer?
    private var copier: OpaquePointer?
    private let work = Mutex(Work.none)
    private let asked = DispatchSemaphore(value: 0)
    /// Holds the current copy.
    private let inFlight = DispatchGroup()
    private let thread = DispatchGroup()
    private var isPinned = false
    /// The copies for the current checkpoint: how far the last of them reaches, and how many there are. Both are 0 while there is none.
    private(set) var copiedFrames: Int32 = 0
    private(set) var copies = 0

    /// Opens the two connections and starts the thread. The database already has its tables.
    ///
    /// - Throws: ``DatabaseFailure``.
    func open(_ uri: String) throws {
        pin = try Self.connection(uri)
        copier = try Self.connection(uri)
        thread.enter()
        Thread.detachNewThread { [self] in
            ThreadName.set("roost-copier")
            // Copying takes a core, and threads that send meanwhile go first.
            roost_lower_priority()
            run()
            thread.leave()
        }
    }

    private static func connection(_ uri: String) throws -> OpaquePointer? {
        var opened: OpaquePointer?
        let code = sqlite3_open_v2(uri, &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nil)
        guard code == SQLITE_OK, sqlite3_exec(opened, "PRAGMA synchronous = FULL", nil, nil, nil) == SQLITE_OK,
            // A connection learns with the first page it reads that there is a log.
            sqlite3_exec(opened, "SELECT 1 FROM sqlite_schema LIMIT 1", nil, nil, nil) == SQLITE_OK, roost_uses_vfs(opened) == 1
        else {
            defer { sqlite3_close(opened) }
            throw SQLiteDatabase.failure(opened)
        }
        roost_keep_log_on_close(opened, 1)
        return opened
    }

    // MARK: On the lane

    /// Pins the log at its end, and starts to copy it up to there. The previous copy has ended.
    ///
    /// The log is longer than what was copied before: a reader of a log that is copied completely would not keep it from restarting.
    func begin(at end: Int32) throws {
        if isPinned { try check(sqlite3_exec(pin, "COMMIT", nil, nil, nil)) }
        isPinned = false
        // The snapshot starts with the first page that is read.
        try check(sqlite3_exec(pin, "BEGIN; SELECT 1 FROM sqlite_schema LIMIT 1", nil, nil, nil))
        isPinned = true
        let stepPages = Self.stepPages(copiesBefore: copies)
        (copiedFrames, copies) = (end, copies + 1)
        inFlight.enter()
        work.withLock { $0 = .asked(stepPages: stepPages) }
        asked.signal()
    }

    /// Returns whether the copy has ended. A reader that still needs the former pages may have ended it early.
    ///
    /// - Throws: A fatal failure if it isn't known what is on disk.
    func hasEnded() throws -> Bool {
        switch work.withLock({ $0 }) {
        case .failed(let failure): throw failure
        case .done(let copied): copiedFrames = min(copiedFrames, copied)
        case .asked: return false
        case .none, .stopped: break
        }
        return true
    }

    /// Waits for the current copy, if there is one.
    func wait() { inFlight.wait() }

    /// Lets the log restart, once the number of the checkpoint is committed after everything that was copied.
    func unpin() throws {
        (copiedFrames, copies) = (0, 0)
        guard isPinned else { return }
        isPinned = false
        try check(sqlite3_exec(pin, "COMMIT", nil, nil, nil))
    }

    /// Abandons the checkpoint for now. The log stays pinned, since all of it may be in the file.
    func giveUp() { (copiedFrames, copies) = (0, 0) }

    private func check(_ code: Int32) throws {
        guard code == SQLITE_OK else {
            let failure = SQLiteDatabase.failure(pin)
            throw DatabaseFailure(message: "The log couldn't be pinned. \(failure.message)", kind: .fatal)
        }
    }

    /// Ends the thread after the current copy. The log stays pinned.
    ///
    /// - Throws: A fatal failure of the last copy.
    func stop() throws {
        wait()
        let last = work.withLock { work in
            defer { work = .stopped }
            return work
        }
        asked.signal()
        thread.wait()
        if case .failed(let failure) = last { throw failure }
    }

    /// Closes the connections, once the thread has ended.
    func close() {
        for connection in [pin, copier] { sqlite3_close(connection) }
        (pin, copier) = (nil, nil)
    }

    // MARK: On its own thread

    private func run() {
        while true {
            asked.wait()
            guard case .asked(let stepPages) = work.withLock({ $0 }) else { return }
            let result = copy(stepPages: stepPages)
            work.withLock { $0 = result }
            inFlight.leave()
        }
    }

    private func copy(stepPages: Int32) -> Work {
        var copied: Int32 = 0
        var code = roost_sync_in_steps(copier, stepPages)
        if code == SQLITE_OK { code = sqlite3_wal_checkpoint_v2(copier, "main", SQLITE_CHECKPOINT_PASSIVE, nil, &copied) }
        if code == SQLITE_OK || code & 255 == SQLITE_BUSY { code = roost_sync_database(copier) }
        if code == SQLITE_OK { return .done(copied: max(0, copied)) }
        // If the disk is full, the checkpoint on the lane finds that too: another copy would find the same.
        if code & 255 == SQLITE_FULL { return .done(copied: .max) }
        let failure = SQLiteDatabase.failure(copier)
        return .failed(
            DatabaseFailure(message: "The log couldn't be written into the database. \(failure.message)", kind: .fatal))
    }

    deinit { close() }
}
