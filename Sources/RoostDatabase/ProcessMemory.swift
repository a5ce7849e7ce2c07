import CPageVFS
import Foundation

/// The memory that this process uses, and the unused memory that it keeps.
public enum ProcessMemory {
    /// From now on large blocks are returned to the system when they are freed, instead of being kept by each thread for the next one.
    public static func returnEarly() { roost_return_memory() }

    /// From now on SQLite doesn't count the memory that it uses, which takes a lock shared by all connections, twice for each allocation. This
    /// applies to the whole process: `sqlite3_memory_used` is 0 then, and a limit on its memory has no effect. Does nothing once SQLite has been
    /// used.
    public static func leaveSQLiteUncounted() { roost_leave_sqlite_uncounted() }

    /// Returns free memory to the system now, including small blocks. Takes milliseconds if there is much.
    public static func returnUnused() { roost_trim_memory() }

    /// The resident memory of the process. Nil on systems without `/proc`.
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
