import GRDB
import RoostAPI

extension Store {
    /// Notes that the messages of a channel are shown: they stay longer than others.
    func noteOpening(of channel: ChannelID) async throws {
        try await change { database in
            try database.run(
                """
                INSERT OR REPLACE INTO opened_channels (channel_id, number)
                VALUES (?, 1 + COALESCE((SELECT MAX(number) FROM opened_channels), 0))
                """, [channel.rawValue])
        }
    }
}

/// The cache has a size that it is brought under when it is opened: the oldest messages of channels go, of those first that weren't shown
/// or weren't for longest. The newest of each channel stay, and the server has the others.
extension Database {
    /// The messages of a channel that stay.
    private static let messagesKept = 100

    /// Deletes messages of a cache that takes more than a number of bytes, until it takes an eighth less than that, if there are enough that may go. The
    /// positions of the channels say so, in the same transaction.
    ///
    /// - Returns: Whether some were deleted. Messages lie in the order in which they came, so that these leave gaps all over the file: it has to be packed then.
    func trim(to sizeBytesMax: Int, _ kinds: CachedRowKinds) throws -> Bool {
        let used = try usedBytes()
        guard used > sizeBytesMax else { return false }
        let excess = used - sizeBytesMax / 8 * 7
        var deleted = 0
        for channel in try channelsByOpening() where deleted < excess { deleted += try trim(channel, kinds) }
        return deleted > 0
    }

    /// Writes the file anew without its gaps. The log, through which all of it goes, is emptied after that.
    func pack() throws {
        try execute(sql: "VACUUM")
        try checkpoint(.truncate)
    }

    func usedBytes() throws -> Int {
        func pragma(_ name: String) throws -> Int { try value("PRAGMA \(name)") ?? 0 }
        return try (pragma("page_count") - pragma("freelist_count")) * pragma("page_size")
    }

    /// The followed channels, those first whose messages were never shown or longest ago.
    private func channelsByOpening() throws -> [ChannelID] {
        let sql = """
            SELECT p.channel_id FROM positions p LEFT JOIN opened_channels o ON o.channel_id = p.channel_id
            ORDER BY COALESCE(o.number, 0), p.channel_id
            """
        return try values(sql)
    }

    /// - Returns: The bytes of what was deleted, about.
    private func trim(_ channel: ChannelID, _ kinds: CachedRowKinds) throws -> Int {
        // Of the window, what comes after the messages that stay; of the stretches before it, nothing.
        let sql = """
            SELECT MAX(p.window_start, COALESCE((
                SELECT seq FROM messages WHERE channel_id = ?1 AND seq >= p.window_start ORDER BY seq DESC LIMIT 1 OFFSET ?2), 0))
            FROM positions p WHERE p.channel_id = ?1
            """
        let kept: Seq? = try value(sql, [channel, Self.messagesKept - 1])
        guard let kept, kept > 0 else { return 0 }
        let deleted: Int? = try value(Self.sizeOfMessages, [channel, kept])
        try kinds.forget(messages: 0...(kept - 1), in: channel, self)
        try beginWindow(of: channel, at: kept)
        return deleted ?? 0
    }

    /// Beside what is long, a message has some 200 bytes in its row and in the entries of the indexes.
    private static let sizeOfMessages = """
        SELECT COALESCE(SUM(200 + LENGTH(CAST(text AS BLOB)) + COALESCE(LENGTH(CAST(data AS BLOB)), 0) + COALESCE(LENGTH(metadata), 0)
                   + COALESCE(LENGTH(mentionees), 0) + COALESCE(LENGTH(meta_arrays), 0)), 0)
        FROM messages WHERE channel_id = ? AND seq < ?
        """
}
