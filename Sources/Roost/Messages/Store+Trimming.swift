import GRDB
import RoostAPI

extension Store {
    /// Records that the messages of a channel are shown: they stay longer than others.
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

/// The cache is kept under its size when it is opened, and while it is open (``CacheUpkeep``): the oldest messages of channels are deleted, starting
/// with channels that were never shown or not for longest. The newest messages of each channel stay, and the server has the others.
extension Database {
    /// The number of messages of a channel that stay.
    private static let messagesKept = 100

    /// Deletes messages of a cache that takes more than the given number of bytes, until it takes an eighth less than that, if enough messages may be
    /// deleted. The positions of the channels are updated in the same transaction.
    ///
    /// - Returns: Whether any were deleted. Messages are stored in the order in which they arrived, so deletions leave gaps all over the file: it has
    ///   to be packed then.
    func trim(to sizeBytesMax: Int, _ kinds: CachedRowKinds) throws -> Bool {
        let used = try usedBytes()
        guard used > sizeBytesMax else { return false }
        let excess = used - sizeBytesMax / 8 * 7
        var deleted = 0
        for channel in try channelsByOpening() where deleted < excess { deleted += try trim(channel, kinds) }
        return deleted > 0
    }

    /// Rewrites the file without its gaps. The log, through which all of it goes, is emptied after that.
    func pack() throws {
        try execute(sql: "VACUUM")
        try checkpoint(.truncate)
    }

    func usedBytes() throws -> Int {
        func pragma(_ name: String) throws -> Int { try value("PRAGMA \(name)") ?? 0 }
        return try (pragma("page_count") - pragma("freelist_count")) * pragma("page_size")
    }

    /// The followed channels, starting with those whose messages were never shown or were shown longest ago.
    func channelsByOpening() throws -> [ChannelID] {
        let sql = """
            SELECT p.channel_id FROM positions p LEFT JOIN opened_channels o ON o.channel_id = p.channel_id
            ORDER BY COALESCE(o.number, 0), p.channel_id
            """
        return try values(sql)
    }

    /// - Returns: The approximate number of bytes deleted.
    private func trim(_ channel: ChannelID, _ kinds: CachedRowKinds) throws -> Int {
        guard let kept = try firstKept(of: channel) else { return 0 }
        let deleted = try size(ofMessagesIn: channel, before: kept).bytes
        try kinds.forget(messages: 0...(kept - 1), in: channel, self)
        try beginWindow(of: channel, at: kept)
        return deleted
    }

    /// The seq from which a channel keeps its messages whatever the cache's size: the later messages of the window stay, and no stretches. Nil if all
    /// messages stay.
    ///
    /// - Parameter shown: The first message that a list shows.
    func firstKept(of channel: ChannelID, shownFrom shown: Seq = .max) throws -> Seq? {
        guard let position = try position(of: channel), shown >= position.windowStart else { return nil }
        let sql = "SELECT seq FROM messages WHERE channel_id = ? AND seq >= ? ORDER BY seq DESC LIMIT 1 OFFSET ?"
        let oldest: Seq? = try value(sql, [channel, position.windowStart, Self.messagesKept - 1])
        let kept = max(position.windowStart, min(oldest ?? 0, shown))
        return kept > 0 ? kept : nil
    }

    /// The seq from which a channel keeps its messages if at most about `count` of the messages before `kept` are deleted: stretches are all deleted
    /// at once.
    func firstKept(of channel: ChannelID, before kept: Seq, afterDeleting count: Int) throws -> Seq {
        let sql = "SELECT seq FROM messages WHERE channel_id = ? AND seq < ? ORDER BY seq LIMIT 1 OFFSET ?"
        let next: Seq? = try value(sql, [channel, kept, count])
        return max(next ?? kept, try position(of: channel)?.windowStart ?? 0)
    }

    /// The number of messages of a channel before one, and approximately the bytes that they take.
    func size(ofMessagesIn channel: ChannelID, before kept: Seq) throws -> (count: Int, bytes: Int) {
        var size = (count: 0, bytes: 0)
        try each(Self.sizeOfMessages, [channel, kept]) { row in size = (try row.value(), try row.value()) }
        return size
    }

    /// Besides its long fields, a message takes some 200 bytes in its row and in the index entries.
    private static let sizeOfMessages = """
        SELECT COUNT(*), COALESCE(SUM(200 + LENGTH(CAST(text AS BLOB)) + COALESCE(LENGTH(CAST(data AS BLOB)), 0) + COALESCE(LENGTH(metadata), 0)
                   + COALESCE(LENGTH(mentionees), 0) + COALESCE(LENGTH(meta_arrays), 0)), 0)
        FROM messages WHERE channel_id = ? AND seq < ?
        """
}
