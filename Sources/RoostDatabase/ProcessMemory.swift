import CPageVFS
import Foundation
import GRDBSQLite

/// The memory that this process uses, and the unused memory that it keeps.
public enum ProcessMemory {
    /// From now on large blocks go back to the system when they are freed, instead of being kept for the next one by each thread.
    public static func returnEarly() { roost_return_memory() }

    /// From now on SQLite doesn't count the memory that it uses, for which it takes a lock that all connections share, twice for each piece. In all of the
    /// process: `sqlite3_memory_used` is 0 then, and a limit on its memory does nothing. Has no effect once SQLite was used.
    public static func leaveSQLiteUncounted() { roost_leave_sqlite_uncounted() }

    /// The memory that SQLite has counted as its own in this process: 0 if it counts none.
    package static var bytesCountedBySQLite: Int64 { sqlite3_memory_used() }

    /// Returns free memory to the system now, small blocks too. Takes milliseconds if there is much.
    public static func returnUnused() { roost_trim_memory() }

    /// Memory of the process that is resident. Nil on systems without `/proc`.
    public static func residentBytes() -> Int? {
        let file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var text = [UInt8](repeating: 0, count: 128)
        let count = read(file, &text, text.count)
        guard count > 0 else { return nil }
        let words = text.prefix(count).split(separator: UInt8(ascii: " "))
        guard words.count > 1, let pages = Int(String(decoding: words[1], as: UTF8.self)) else { return nil }
        return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
    }
}
