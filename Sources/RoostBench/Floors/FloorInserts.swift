import Foundation

/// The cost of SQLite alone when it writes the server's rows in transactions of the same size.
struct FloorResult {
    let rowsPerSecond: Double
    let cpuMicrosecondsPerRow: Double
    /// The bytes that this process wrote to the disk meanwhile.
    let bytesWrittenPerRow: Double
}

/// The floor of sending: SQLite alone writes the same rows into the same tables, with the same durability, in batches of the same size.
struct FloorInserts {
    /// The writes of a send, without its reads: the server's own. `FloorTests` compares them.
    static let sql = [
        """
        INSERT INTO messages (channel_id, message_id, seq, change_seq, sender_id, client_id, text, kind, custom_type, data, metadata, tags, \
        parent_id, mentionees, meta_arrays, push_option, target_languages, is_silent, created_at, edited_at, deleted_at, ordinal, counts) \
        VALUES (?1, ?3, ?2, ?2, ?4, ?5, ?6, 'text', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'default', NULL, 0, ?7, NULL, NULL, ?2, 1) \
        ON CONFLICT (channel_id, sender_id, client_id) DO NOTHING
        """,
        """
        UPDATE channel_heads SET (seq, member_count, message_count, ordinal, last_activity, last_message_at) = (?2, 1, ?2, ?2, ?3, ?3), \
        list_at = COALESCE(?3, list_at) WHERE channel_id = ?1
        """,
        """
        UPDATE members SET read_count = read_count + 1, receipt_count = receipt_count + 1, last_sent_seq = ?2 \
        WHERE channel_id = ?1 AND user_id = ?3
        """,
    ]

    private let database: FloorDatabase
    private let statements: [FloorDatabase.Statement]

    /// On a new file, which is removed.
    static func measure(in directory: URL, batchSize: Int, channelCount: Int, seconds: Double) throws -> FloorResult {
        let file = directory.appending(path: "floor.sqlite").path
        defer { for suffix in ["", "-wal", "-shm"] { unlink(file + suffix) } }
        let floor = try FloorInserts(FloorDatabase(path: file), channelCount: channelCount)
        return try floor.database.measure(batchSize: batchSize, seconds: seconds) { row in
            let channel = row % channelCount
            try floor.insert(row, channel: channel, user: channel, seq: Int64(row / channelCount + 2))
        }
    }

    /// Measures on a copy of a server's file with existing channels, which belong to the users in turn and have messages up to a seq. Removes the
    /// copy.
    static func measure(
        onCopyOf file: URL, after seq: Int64, batchSize: Int, channelCount: Int, userCount: Int, seconds: Double
    ) throws -> FloorResult {
        let copy = file.deletingLastPathComponent().appending(path: "floor-copy.sqlite")
        try Disk.copy(file, to: copy)
        defer { for suffix in ["", "-wal", "-shm"] { unlink(copy.path + suffix) } }
        let floor = try FloorInserts(FloorDatabase(path: copy.path, isEmpty: false))
        return try floor.database.measure(batchSize: batchSize, seconds: seconds) { row in
            let channel = row % channelCount
            try floor.insert(row, channel: channel, user: channel % userCount, seq: seq + Int64(row / channelCount + 1))
        }
    }

    private init(_ database: FloorDatabase, channelCount: Int) throws {
        try self.init(database)
        for number in 0..<channelCount {
            try database.execute(
                """
                INSERT INTO channel_heads (channel_id, seq, member_count, message_count, last_activity)
                VALUES ('channel-\(number)', 1, 1, 0, 0)
                """)
            try database.execute(
                """
                INSERT INTO members (channel_id, user_id, role, state, joined_at, change_seq, user_seq, read_seq, read_count,
                                     last_sent_seq, joined_seq, joined_user_seq)
                VALUES ('channel-\(number)', 'user-\(number)', 'owner', 'member', 0, 1, 1, 1, 0, 0, 1, 1)
                """)
        }
    }

    private init(_ database: FloorDatabase) throws {
        self.database = database
        statements = try Self.sql.map(database.prepare)
    }

    private func insert(_ row: Int, channel: Int, user: Int, seq: Int64) throws {
        let channelID = "channel-\(channel)"
        let user = "user-\(user)"
        let now = Int64(1_750_000_000_000 + row)
        try statements[0].run([
            .text(channelID), .integer(seq), .integer(now << 22), .text(user), .text("\(channel)-\(row)"),
            .text(SampleText.message),
            .integer(now),
        ])
        try statements[1].run([.text(channelID), .integer(seq), .integer(now)])
        try statements[2].run([.text(channelID), .integer(seq), .text(user)])
    }
}

/// The floor of requesting an effect: SQLite alone writes the same rows, with the same durability, in batches of the same size.
enum FloorEffects {
    /// The server's own statement for one effect. `FloorTests` compares them.
    static let sql = """
        INSERT INTO effects (kind, effect_key, payload, due_at, revision, attempts) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
        ON CONFLICT (kind, effect_key) DO UPDATE SET payload = excluded.payload, due_at = excluded.due_at, revision = excluded.revision, \
        attempts = 0, failure = NULL, dead_at = NULL
        """

    static func measure(in directory: URL, batchSize: Int, seconds: Double) throws -> FloorResult {
        let database = try FloorDatabase(path: directory.appending(path: "floor-effects.sqlite").path)
        let insert = try database.prepare(sql)
        return try database.measure(batchSize: batchSize, seconds: seconds) { row in
            let now = Int64(1_750_000_000_000 + row)
            try insert.run([
                .text("bench.later"), .text("\(now << 22)"), .text(SampleText.effect), .integer(now + 3_600_000),
                .integer(now << 22), .integer(0),
            ])
        }
    }
}
