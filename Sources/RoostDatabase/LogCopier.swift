import CPageVFS
import Dispatch
import Foundation
import GRDBSQLite
import Synchronization

/// Writes most of a large log into the database file beside the lane, so that little is left for the checkpoint there.
///
/// A checkpoint of 64 MB takes several milliseconds, and its fsync as many, or far more on a slow disk. So it is made in these steps:
/// 1. On the lane: a reader *pins* the log at its end.
/// 2. On a thread of its own: a second connection writes the pages up to the pin into the file, and has them on disk.
/// 3. On the lane: 1 and 2 are repeated while the log has grown by more than a few frames meanwhile.
/// 4. On the lane: the checkpoint's number is committed, the pin let go, and the rest written by the writer's connection.
///
/// The log restarts only when all of it is in the file and no reader uses it. So while the pin is there it doesn't restart, and step 4 alone
/// completes a checkpoint, as if it had found a small log. It also keeps away the one fault of SQLite up to 3.51.2 with several
/// connections, which takes a log that restarts during a checkpoint (<https://sqlite.org/wal.html#walresetbug>).
final class LogCopier: @unchecked Sendable {  // the lane alone uses `pin`, the copying thread alone `copier`
    private enum Work {
        case none
        case asked
        /// How many frames of the log are in the file, and on disk.
        case done(copied: Int32)
        case failed(DatabaseFailure)
        case stopped
    }

    /// Pages of the file that are synced together: 256 KiB. A commit that comes meanwhile waits for these, and not for thousands.
    private static let stepPages: Int32 = 64

    private var pin: OpaquePointer?
    private var copier: OpaquePointer?
    private let work = Mutex(Work.none)
    private let asked = DispatchSemaphore(value: 0)
    /// Holds the copy under way.
    private let underWay = DispatchGroup()
    private let thread = DispatchGroup()
    private var isPinned = false
    /// The copies for the checkpoint that is being made: how far the last of them comes, and how many there are. Both are 0 while none is made.
    private(set) var copiedFrames: Int32 = 0
    private(set) var copies = 0

    /// Opens the two connections, and begins the thread. The database has its tables by now.
    ///
    /// - Throws: ``DatabaseFailure``.
    func open(_ uri: String) throws {
        pin = try Self.connection(uri)
        copier = try Self.connection(uri)
        guard roost_sync_in_steps(copier, Self.stepPages) == SQLITE_OK else { throw SQLiteDatabase.failure(copier) }
        thread.enter()
        Thread.detachNewThread { [self] in
            ThreadName.set("roost-copier")
            // It takes a core for as long as it copies, and whoever sends meanwhile goes first.
            roost_lower_priority()
            run()
            thread.leave()
        }
    }

    private static func connection(_ uri: String) throws -> OpaquePointer? {
        var opened: OpaquePointer?
        let code = sqlite3_open_v2(uri, &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nil)
        guard code == SQLITE_OK, sqlite3_exec(opened, "PRAGMA synchronous = FULL", nil, nil, nil) == SQLITE_OK,
            // A connection learns that there is a log with the first page it reads.
            sqlite3_exec(opened, "SELECT 1 FROM sqlite_schema LIMIT 1", nil, nil, nil) == SQLITE_OK, roost_uses_vfs(opened) == 1
        else {
            defer { sqlite3_close(opened) }
            throw SQLiteDatabase.failure(opened)
        }
        roost_keep_log_on_close(opened, 1)
        return opened
    }

    // MARK: On the lane

    /// Pins the log at its end, and begins to copy it up to there. A copy of before has ended.
    ///
    /// The log is longer than what was copied before: a reader of a log that is copied as a whole would not keep it from restarting.
    func begin(at end: Int32) throws {
        if isPinned { try check(sqlite3_exec(pin, "COMMIT", nil, nil, nil)) }
        isPinned = false
        // The snapshot begins with the first page that is read.
        try check(sqlite3_exec(pin, "BEGIN; SELECT 1 FROM sqlite_schema LIMIT 1", nil, nil, nil))
        isPinned = true
        (copiedFrames, copies) = (end, copies + 1)
        underWay.enter()
        work.withLock { $0 = .asked }
        asked.signal()
    }

    /// Returns whether the copy has ended. A reader that still needs the former pages may have ended it early.
    ///
    /// - Throws: A fatal failure if it is not known what is on disk.
    func hasEnded() throws -> Bool {
        switch work.withLock({ $0 }) {
        case .failed(let failure): throw failure
        case .done(let copied): copiedFrames = min(copiedFrames, copied)
        case .asked: return false
        case .none, .stopped: break
        }
        return true
    }

    /// Waits for the copy under way, if there is one.
    func wait() { underWay.wait() }

    /// Lets the log restart, once the number of the checkpoint is committed behind all that was copied.
    func unpin() throws {
        (copiedFrames, copies) = (0, 0)
        guard isPinned else { return }
        isPinned = false
        try check(sqlite3_exec(pin, "COMMIT", nil, nil, nil))
    }

    /// Gives the checkpoint up for now. The log stays pinned, since all of it may be in the file.
    func giveUp() { (copiedFrames, copies) = (0, 0) }

    private func check(_ code: Int32) throws {
        guard code == SQLITE_OK else {
            let failure = SQLiteDatabase.failure(pin)
            throw DatabaseFailure(message: "The log couldn't be pinned. \(failure.message)", kind: .fatal)
        }
    }

    /// Ends the thread, after the copy under way. The log stays pinned.
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
            if case .stopped = work.withLock({ $0 }) { return }
            let result = copy()
            work.withLock { $0 = result }
            underWay.leave()
        }
    }

    private func copy() -> Work {
        var copied: Int32 = 0
        var code = sqlite3_wal_checkpoint_v2(copier, "main", SQLITE_CHECKPOINT_PASSIVE, nil, &copied)
        if code == SQLITE_OK || code & 255 == SQLITE_BUSY { code = roost_sync_database(copier) }
        if code == SQLITE_OK { return .done(copied: max(0, copied)) }
        // On a full disk the checkpoint on the lane finds that too: another copy would find nothing else.
        if code & 255 == SQLITE_FULL { return .done(copied: .max) }
        let failure = SQLiteDatabase.failure(copier)
        return .failed(
            DatabaseFailure(message: "The log couldn't be written into the database. \(failure.message)", kind: .fatal))
    }

    deinit { close() }
}
