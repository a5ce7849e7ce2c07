import CFaultVFS
import Foundation
import GRDB
import Synchronization
import Testing

/// A way in which the system refuses to write a file. It is injected below SQLite's own files, so SQLite finds the error in a commit, for
/// example, and rolls it back.
enum DiskFault: CaseIterable, Sendable {
    case full, readOnly, broken

    /// SQLite's message for it.
    var words: String {
        switch self {
        case .full: "database or disk is full"
        case .readOnly: "attempt to write a readonly database"
        case .broken: "disk I/O error"
        }
    }

    private var code: ResultCode {
        switch self {
        case .full: .SQLITE_FULL
        case .readOnly: .SQLITE_READONLY
        case .broken: .SQLITE_IOERR_WRITE
        }
    }

    /// For the whole process: files that no fault names are left alone.
    private static let isRegistered = fault_vfs_register_as_default() == 0

    /// Makes databases that are opened from now on able to fail.
    static func prepare() throws { try #require(isRegistered) }

    /// Fails every write of a database from now on, of its file and of its log.
    func begin(_ database: URL) throws -> Failing {
        try Self.prepare()
        // The directory's name is the test's own.
        let path = database.pathComponents.suffix(3).joined(separator: "/")
        let faults = ["", "-wal"].map { fault_begin(path + $0, Int32(fault_write.rawValue), code.rawValue, 0, 0) }
        let failing = Failing(faults: faults)
        if faults.contains(-1) { failing.end() }
        try #require(!faults.contains(-1), "There are too many faults at once.")
        return failing
    }

    /// A database that can't be written.
    final class Failing: Sendable {
        private let faults: Mutex<[Int32]>

        fileprivate init(faults: [Int32]) { self.faults = Mutex(faults) }

        /// Makes the database writable again. Another test may get the fault's numbers afterwards, so each fault is ended once.
        ///
        /// - Returns: How many writes have failed; 0 if it was ended before.
        @discardableResult
        func end() -> Int {
            let ended = faults.withLock { faults in
                defer { faults = [] }
                return faults
            }
            return ended.reduce(0) { $0 + Int(fault_end($1)) }
        }
    }
}
