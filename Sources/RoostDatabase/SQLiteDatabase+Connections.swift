import CPageVFS
import GRDB
import GRDBSQLite

/// A reading connection.
struct SQLiteReader: Sendable {
    let queue: DatabaseQueue
    let statements = PreparedStatements()

    func close() {
        statements.removeAll()
        try? queue.close()
    }
}

/// Statistics of the connections.
extension SQLiteDatabase {
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
