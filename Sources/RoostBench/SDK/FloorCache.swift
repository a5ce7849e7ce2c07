import Foundation
import GRDBSQLite
import Roost

/// The floor of the SDK's cache: SQLite alone, with the SDK's own tables, pragmas and statements, does the same to the same rows.
///
/// It is the SQLite that GRDB calls, without GRDB. The rest of the SDK's figures is everything else that an app pays for: the network, the frames,
/// the lists.
final class FloorCache {
    private var connection: OpaquePointer?

    /// - Parameter file: A cache, which a chat may have open.
    private init(_ file: URL, flags: Int32 = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) throws {
        guard sqlite3_open_v2(file.path, &connection, flags, nil) == SQLITE_OK else {
            throw BenchFailure("can't open \(file.path)")
        }
    }

    deinit { sqlite3_close_v2(connection) }

    /// The cache of the only chat whose files are in a directory.
    static func file(in directory: URL) throws -> URL {
        let files = FileManager.default.enumerator(at: directory, includingPropertiesForKeys: nil)
        while let file = files?.nextObject() as? URL { if file.lastPathComponent == "cache.sqlite" { return file } }
        throw BenchFailure("there is no cache in \(directory.path)")
    }

    /// The number of transactions that were committed to a cache, modulo 2^32: SQLite counts them in the index of its log (`iChange`).
    static func transactionCount(of cache: URL) throws -> UInt32 {
        let index = try FileHandle(forReadingFrom: URL(filePath: cache.path + "-shm"))
        defer { try? index.close() }
        try index.seek(toOffset: 8)
        let bytes = try index.read(upToCount: 4) ?? Data()
        guard bytes.count == 4 else { throw BenchFailure("the index of the cache's log is too short") }
        return bytes.withUnsafeBytes { $0.loadUnaligned(as: UInt32.self) }
    }

    // MARK: Writing messages

    /// A copy of a cache, page for page, from before messages arrived.
    struct Copy {
        let file: URL

        init(of cache: URL, at file: URL) throws {
            let (from, to) = (try FloorCache(cache), try FloorCache(file))
            guard let backup = sqlite3_backup_init(to.connection, "main", from.connection, "main") else { throw to.failure() }
            let result = sqlite3_backup_step(backup, -1)
            guard sqlite3_backup_finish(backup) == SQLITE_OK, result == SQLITE_DONE else { throw to.failure() }
            self.file = file
        }

        /// Writes the newest messages of a cache, with the positions and counters of their channels, in as many transactions as the SDK did.
        /// Removes the copy.
        ///
        /// - Returns: CPU milliseconds.
        func write(_ count: Int, newestOf cache: URL, transactions: Int) throws -> Double {
            defer { for suffix in ["", "-wal", "-shm"] { unlink(file.path + suffix) } }
            let messages = try FloorCache(cache).newestMessages(count)
            guard messages.count == count else { throw BenchFailure("the cache has \(messages.count) new messages of \(count)") }
            return try FloorCache(file).write(messages, transactions: max(1, min(transactions, count)))
        }
    }

    /// A message's row, with the fields that the SDK needs for the position and the counters.
    private struct StoredMessage {
        var channel: Value
        var seq: Value
        var counts: Value
        var createdAt: Value
        /// The position's count of messages, whether it has a hole, and whether it has ended, as they are in the end.
        var position: [Value]
        var row: [Value]
    }

    private func newestMessages(_ count: Int) throws -> [StoredMessage] {
        let statement = try prepare(
            """
            SELECT m.channel_id, m.seq, m.counts, m.created_at, p.message_count, p.has_hole, p.has_ended, m.*
            FROM messages m LEFT JOIN positions p ON p.channel_id = m.channel_id ORDER BY m.rowid DESC LIMIT \(count)
            """)
        var messages: [StoredMessage] = []
        while try statement.step() {
            let values = (0..<statement.columnCount).map(statement.value)
            messages.append(
                StoredMessage(
                    channel: values[0], seq: values[1], counts: values[2], createdAt: values[3], position: Array(values[4..<7]),
                    row: Array(values.dropFirst(7))))
        }
        return messages.reversed()
    }

    private func write(_ messages: [StoredMessage], transactions: Int) throws -> Double {
        for pragma in NewMessageSQL.pragmas { try execute("PRAGMA \(pragma)") }
        let insert = try prepare(NewMessageSQL.message)
        let add = try prepare(NewMessageSQL.counters)
        let advance = try prepare(NewMessageSQL.position)
        let limit = try prepare("SELECT \(Int.max)")
        _ = try limit.step()
        let countMax = limit.value(0)
        let start = Clock.threadCPU()
        for number in 0..<transactions {
            try execute("BEGIN IMMEDIATE")
            let range = messages.count * number / transactions..<messages.count * (number + 1) / transactions
            for message in messages[range] {
                try insert.run(message.row)
                try add.run([message.seq, message.counts, message.createdAt, message.channel, countMax])
                // No other store visits the channel, so the last parameter is NULL.
                try advance.run([message.channel, message.seq] + message.position)
            }
            try execute("COMMIT")
        }
        return Double(Clock.threadCPU() - start) / 1e6
    }

    // MARK: Reading rows

    /// Opens a cache and reads the first rows of a channel list by the list's index: the median of several runs.
    ///
    /// - Returns: CPU milliseconds.
    static func firstRows(_ count: Int, of cache: URL) throws -> Double {
        let times = try (0..<21).map { _ in
            let start = Clock.threadCPU()
            let rows = try FloorCache(cache, flags: SQLITE_OPEN_READONLY).readRows(count)
            guard rows == count else { throw BenchFailure("the floor read \(rows) channels of \(count)") }
            return Double(Clock.threadCPU() - start) / 1e6
        }
        return times.sorted()[times.count / 2]
    }

    private func readRows(_ count: Int) throws -> Int {
        let statement = try prepare(
            """
            SELECT c.*, a.*, m.*, k.*, l.*, u.*
            FROM (SELECT channel_id FROM channels INDEXED BY channels_listed ORDER BY list_at DESC, channel_id DESC LIMIT \(count)) first
            CROSS JOIN channels c ON c.channel_id = first.channel_id
            CROSS JOIN channel_attributes a ON a.channel_id = c.channel_id
            LEFT JOIN memberships m ON m.channel_id = c.channel_id
            LEFT JOIN capabilities k ON k.channel_id = c.channel_id
            LEFT JOIN messages l ON l.channel_id = c.channel_id
                      AND l.seq = (SELECT seq FROM messages WHERE channel_id = c.channel_id ORDER BY seq DESC LIMIT 1)
            LEFT JOIN users u ON u.user_id = l.sender
            """)
        var rows = 0
        while try statement.step() {
            rows += 1
            statement.takeColumns()
        }
        return rows
    }

    // MARK: Statements

    private func execute(_ sql: String) throws {
        guard sqlite3_exec(connection, sql, nil, nil, nil) == SQLITE_OK else { throw failure() }
    }

    private func prepare(_ sql: String) throws -> Statement {
        var statement: OpaquePointer?
        guard sqlite3_prepare_v2(connection, sql, -1, &statement, nil) == SQLITE_OK else { throw failure() }
        return Statement(pointer: statement)
    }

    private func failure() -> BenchFailure { BenchFailure("SQLite: \(String(cString: sqlite3_errmsg(connection)))") }

    /// A value of a row, of any type.
    private final class Value {
        fileprivate let pointer: OpaquePointer?
        init(copying value: OpaquePointer?) { pointer = sqlite3_value_dup(value) }
        deinit { sqlite3_value_free(pointer) }
    }

    private final class Statement {
        private let pointer: OpaquePointer?

        init(pointer: OpaquePointer?) { self.pointer = pointer }

        deinit { sqlite3_finalize(pointer) }

        var columnCount: Int32 { sqlite3_column_count(pointer) }

        func value(_ column: Int32) -> Value { Value(copying: sqlite3_column_value(pointer, column)) }

        /// Reads the values of a row's columns and discards them.
        func takeColumns() {
            for column in 0..<columnCount where sqlite3_column_text(pointer, column) != nil {
                _ = sqlite3_column_bytes(pointer, column)
            }
        }

        /// Returns whether there is another row.
        func step() throws -> Bool {
            switch sqlite3_step(pointer) {
            case SQLITE_ROW: return true
            case SQLITE_DONE: return false
            default: throw BenchFailure("SQLite: \(String(cString: sqlite3_errmsg(sqlite3_db_handle(pointer))))")
            }
        }

        func run(_ values: [Value]) throws {
            for (index, value) in zip(Int32(1)..., values) { sqlite3_bind_value(pointer, index, value.pointer) }
            _ = try step()
            sqlite3_reset(pointer)
        }
    }
}
