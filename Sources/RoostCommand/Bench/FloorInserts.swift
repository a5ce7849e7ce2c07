import Foundation
import GRDBSQLite
import RoostCore

/// The floor of sending: SQLite alone writes the same rows into the same tables, as durably, in batches of the same size.
final class FloorInserts {
    struct Result {
        let rowsPerSecond: Double
        let cpuMicrosecondsPerRow: Double
    }

    private var connection: OpaquePointer?
    private var statements: [OpaquePointer?] = []

    static func measure(in directory: URL, batchSize: Int, channelCount: Int, seconds: Double) throws -> Result {
        let floor = try FloorInserts(path: directory.appending(path: "floor.sqlite").path, channelCount: channelCount)
        return try floor.run(batchSize: max(1, batchSize), channelCount: channelCount, seconds: seconds)
    }

    private init(path: String, channelCount: Int) throws {
        guard sqlite3_open(path, &connection) == SQLITE_OK else { throw BenchFailure("can't open \(path)") }
        for pragma in ["journal_mode = WAL", "synchronous = FULL", "wal_autocheckpoint = 4000", "cache_size = -65536"] {
            try execute("PRAGMA \(pragma)")
        }
        for step in Migrations.steps {
            for statement in step.statements(Dialect(text: "TEXT", clusteredTable: "WITHOUT ROWID", rowLock: nil)) {
                try execute(statement.text)
            }
        }
        for number in 0..<channelCount {
            try execute(
                """
                INSERT INTO channel_heads (channel_id, seq, member_count, message_count, last_activity)
                VALUES ('channel-\(number)', 1, 1, 0, 0)
                """)
            try execute(
                """
                INSERT INTO members (channel_id, user_id, role, state, joined_at, change_seq, user_seq, read_seq, read_count,
                                     last_sent_seq, joined_seq, joined_user_seq)
                VALUES ('channel-\(number)', 'user-\(number)', 'owner', 'member', 0, 1, 1, 1, 0, 0, 1, 1)
                """)
        }
        // The writes of a send, without its reads.
        for sql in [
            """
            INSERT INTO messages (channel_id, seq, message_id, change_seq, ordinal, sender_id, client_id, text, created_at)
            VALUES (?1, ?2, ?3, ?2, ?2, ?4, ?5, ?6, ?7) ON CONFLICT (channel_id, sender_id, client_id) DO NOTHING
            """,
            """
            UPDATE channel_heads
            SET seq = ?2, member_count = 1, message_count = ?2, last_activity = ?3, last_message_at = ?3, list_at = COALESCE(?3, list_at)
            WHERE channel_id = ?1
            """,
            "UPDATE members SET read_count = read_count + 1, last_sent_seq = ?2 WHERE channel_id = ?1 AND user_id = ?3",
        ] {
            var statement: OpaquePointer?
            guard sqlite3_prepare_v2(connection, sql, -1, &statement, nil) == SQLITE_OK else { throw failure() }
            statements.append(statement)
        }
    }

    deinit {
        for statement in statements { sqlite3_finalize(statement) }
        sqlite3_close(connection)
    }

    private func run(batchSize: Int, channelCount: Int, seconds: Double) throws -> Result {
        var row = 0
        let start = Clock.now()
        let startCPU = Clock.threadCPU()
        let end = start + UInt64(seconds * 1e9)
        while Clock.now() < end {
            try execute("BEGIN IMMEDIATE")
            for _ in 0..<batchSize {
                try insert(row, channel: row % channelCount, seq: Int64(row / channelCount + 2))
                row += 1
            }
            try execute("COMMIT")
        }
        let elapsed = Double(Clock.now() - start) / 1e9
        let cpu = Double(Clock.threadCPU() - startCPU) / 1000
        return Result(rowsPerSecond: Double(row) / elapsed, cpuMicrosecondsPerRow: cpu / Double(row))
    }

    private func insert(_ row: Int, channel: Int, seq: Int64) throws {
        let channelID = "channel-\(channel)"
        let user = "user-\(channel)"
        let now = Int64(1_750_000_000_000 + row)
        try step(0) { statement in
            bind(channelID, to: statement, at: 1)
            sqlite3_bind_int64(statement, 2, seq)
            sqlite3_bind_int64(statement, 3, now << 22)
            bind(user, to: statement, at: 4)
            bind("\(channel)-\(row)", to: statement, at: 5)
            bind(SampleText.message, to: statement, at: 6)
            sqlite3_bind_int64(statement, 7, now)
        }
        try step(1) { statement in
            bind(channelID, to: statement, at: 1)
            sqlite3_bind_int64(statement, 2, seq)
            sqlite3_bind_int64(statement, 3, now)
        }
        try step(2) { statement in
            bind(channelID, to: statement, at: 1)
            sqlite3_bind_int64(statement, 2, seq)
            bind(user, to: statement, at: 3)
        }
    }

    private func step(_ index: Int, _ bindAll: (OpaquePointer?) -> Void) throws {
        let statement = statements[index]
        bindAll(statement)
        guard sqlite3_step(statement) == SQLITE_DONE else { throw failure() }
        sqlite3_reset(statement)
    }

    private func bind(_ text: String, to statement: OpaquePointer?, at index: Int32) {
        // SQLite makes its own copy (SQLITE_TRANSIENT).
        sqlite3_bind_text(statement, index, text, -1, unsafeBitCast(-1, to: sqlite3_destructor_type.self))
    }

    private func execute(_ sql: String) throws {
        guard sqlite3_exec(connection, sql, nil, nil, nil) == SQLITE_OK else { throw failure() }
    }

    private func failure() -> BenchFailure { BenchFailure("SQLite: \(String(cString: sqlite3_errmsg(connection)))") }
}
