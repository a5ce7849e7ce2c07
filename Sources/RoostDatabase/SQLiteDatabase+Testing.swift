import CPageVFS
import GRDB
import GRDBSQLite

/// For tests alone: what the server does in its own time, done or awaited now, and what only it can see.
extension SQLiteDatabase {
    /// Forgets what is kept between reads. Tests call it after writing rows without the rules.
    package func forgetReads() { memory.forget() }

    /// The size of what is kept between reads, and the number of users it belongs to.
    package var kept: (sizeBytes: Int, userCount: Int) { memory.extent }

    /// Records now what is committed, instead of within a second.
    package func markNow() throws { try marks.mark() }

    /// Waits for the record that is currently being written. Later marks aren't waited for.
    package func waitForMarks() { marks.wait() }

    /// Waits for the current copy of the log, if there is one.
    package func waitForCopy() { copier.wait() }

    /// Runs a checkpoint now, entirely on the calling thread.
    @discardableResult
    package func checkpointNow() throws -> Maintenance {
        copier.wait()
        return try writer.writeWithoutTransaction { try checkpoint($0, SQLITE_CHECKPOINT_PASSIVE) }
    }

    /// The sizes of the page caches in KiB as reported by SQLite, the writer's first.
    package func pageCacheKibibytes() throws -> [Int] {
        func size(_ connection: DatabaseQueue) throws -> Int {
            try connection.unsafeRead { -(try Int.fetchOne($0, sql: "PRAGMA cache_size") ?? 0) }
        }
        return try [size(writer)]
            + readers.withReader { first in try readers.withReader { try [size(first.queue), size($0.queue)] } }
    }

    /// How many times the connections' kept statements were recompiled, the writer's first.
    package func recompilations() throws -> [Int] {
        func count(_ connection: DatabaseQueue) -> Int {
            connection.unsafeRead { Int(roost_recompilations($0.sqliteConnection)) }
        }
        return try [count(writer)]
            + readers.withReader { first in try readers.withReader { [count(first.queue), count($0.queue)] } }
    }

    /// The number of statements that the connections have prepared, the writer's first.
    package func statementCounts() throws -> [Int] {
        func count(_ connection: DatabaseQueue) -> Int {
            connection.unsafeRead { database in
                var (count, statement) = (0, sqlite3_next_stmt(database.sqliteConnection, nil))
                while let found = statement {
                    (count, statement) = (count + 1, sqlite3_next_stmt(database.sqliteConnection, found))
                }
                return count
            }
        }
        return try [count(writer)]
            + readers.withReader { first in try readers.withReader { [count(first.queue), count($0.queue)] } }
    }
}

extension ProcessMemory {
    /// The memory that SQLite has counted in this process: 0 if it doesn't count.
    package static var bytesCountedBySQLite: Int64 { sqlite3_memory_used() }
}
