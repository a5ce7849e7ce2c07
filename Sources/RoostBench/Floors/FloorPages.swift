import Foundation
import GRDBSQLite
import RoostDatabase

/// The floor of history: SQLite alone steps through the rows of a page and reads their columns.
enum FloorPages {
    /// The columns that the server reads of a message. `FloorTests` compares them.
    static let columns = """
        message_id, seq, change_seq, sender_id, client_id, text, kind, custom_type, data, metadata, tags, parent_id, \
        mentionees, meta_arrays, push_option, target_languages, is_silent, created_at, edited_at, deleted_at
        """

    /// CPU microseconds of a page.
    static func measure(
        in directory: URL, channel: String, pageSize: Int, positions: ClosedRange<Int>, seconds: Double
    ) throws
        -> Double
    {
        var connection: OpaquePointer?
        var statement: OpaquePointer?
        defer {
            sqlite3_finalize(statement)
            sqlite3_close(connection)
        }
        let sql = """
            SELECT \(columns) FROM messages WHERE channel_id = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT \(pageSize)
            """
        guard sqlite3_open(directory.appending(path: "roost.sqlite").path, &connection) == SQLITE_OK,
            sqlite3_prepare_v2(connection, sql, -1, &statement, nil) == SQLITE_OK
        else { throw BenchFailure("SQLite: \(String(cString: sqlite3_errmsg(connection)))") }

        // As on a connection of the server.
        let texts = BoundTexts()
        var pages = 0
        var bytes: Int32 = 0
        let start = Clock.threadCPU()
        let end = Clock.now() + UInt64(seconds * 1e9)
        while Clock.now() < end {
            texts.removeAll(from: 0)
            _ = texts.bind(channel, to: statement, at: 1)
            sqlite3_bind_int64(statement, 2, Int64(Int.random(in: positions)))
            while sqlite3_step(statement) == SQLITE_ROW {
                for column in 0..<sqlite3_column_count(statement) where sqlite3_column_text(statement, column) != nil {
                    bytes &+= sqlite3_column_bytes(statement, column)
                }
            }
            sqlite3_reset(statement)
            pages += 1
        }
        guard bytes != 0 else { throw BenchFailure("the floor of history read nothing") }
        return Double(Clock.threadCPU() - start) / 1000 / Double(pages)
    }
}
