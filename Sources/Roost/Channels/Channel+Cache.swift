import Foundation
import GRDB
import RoostAPI

/// Channels aren't a row kind: they are streams. The cache keeps them, their counters and the user's permissions in them.
extension Channel {
    /// A list of channels reads every row of `channels`: the rows are narrow, and the attributes are stored elsewhere. A row of attributes gets a new
    /// revision with each write, so an unchanged one isn't read again. Only the usual order of a list has its index from the start
    /// (``Store/makeIndex(for:)``).
    static let cacheSchema = """
        CREATE TABLE channels (
            channel_id TEXT PRIMARY KEY NOT NULL, seq INTEGER NOT NULL, member_count INTEGER NOT NULL,
            message_count INTEGER NOT NULL, ordinal INTEGER NOT NULL, last_activity INTEGER NOT NULL, last_message_at INTEGER, list_at INTEGER NOT NULL,
            created_at INTEGER NOT NULL, created_by TEXT, type TEXT NOT NULL, custom_type TEXT, name_key TEXT NOT NULL,
            tags TEXT NOT NULL, has_policy INTEGER NOT NULL, is_public INTEGER NOT NULL, is_frozen INTEGER NOT NULL,
            is_deleted INTEGER NOT NULL
        ) WITHOUT ROWID;
        CREATE INDEX channels_listed ON channels (list_at, channel_id);
        CREATE TABLE channel_attributes (
            \(Channel.cacheColumns), revision, PRIMARY KEY (channel_id)
        );
        CREATE TABLE capabilities (channel_id, \(Capabilities.cacheColumns), PRIMARY KEY (channel_id)) WITHOUT ROWID;
        """
}

extension Channel: CachedModel {
    // derived: cache columns, without counters
    static let cacheColumns: CacheColumns = """
        channel_id, type, is_distinct, is_public, is_ephemeral, \(ChannelAttributes.cacheColumns), metadata, metadata_version,
        metadata_updated_by, tags, policy, is_frozen, is_muted, muted_until, is_rate_limited, rate_limit, rate_limit_window_seconds,
        rate_limited_until, created_by, created_at, updated_at, deleted_at
        """

    // derived: init(cached:)
    init(cached row: inout CacheReader, counters: ChannelCounters) throws {
        try self.init(
            channelId: row.value(), type: row.value(), isDistinct: row.value(), isPublic: row.value(), isEphemeral: row.value(),
            attributes: ChannelAttributes(cached: &row), metadata: row.value(), metadataVersion: row.value(),
            metadataUpdatedBy: row.value(), tags: row.value(), policy: row.value(), isFrozen: row.value(), isMuted: row.value(),
            mutedUntil: row.value(), isRateLimited: row.value(), rateLimit: row.value(), rateLimitWindowSeconds: row.value(),
            rateLimitedUntil: row.value(), counters: counters, createdBy: row.value(), createdAt: row.value(),
            updatedAt: row.value(), deletedAt: row.value())
    }

    // derived: cache(in:)
    func cache(in row: inout CacheWriter) throws {
        try row.put(channelId)
        try row.put(type)
        try row.put(isDistinct)
        try row.put(isPublic)
        try row.put(isEphemeral)
        try row.put(attributes)
        try row.put(metadata)
        try row.put(metadataVersion)
        try row.put(metadataUpdatedBy)
        try row.put(tags)
        try row.put(policy)
        try row.put(isFrozen)
        try row.put(isMuted)
        try row.put(mutedUntil)
        try row.put(isRateLimited)
        try row.put(rateLimit)
        try row.put(rateLimitWindowSeconds)
        try row.put(rateLimitedUntil)
        try row.put(createdBy)
        try row.put(createdAt)
        try row.put(updatedAt)
        try row.put(deletedAt)
    }

    /// Reads only the attributes: the counters are in another table.
    init(cached row: inout CacheReader) throws { try self.init(cached: &row, counters: .none) }
}

extension ChannelAttributes: CachedModel {
    // derived: cache columns
    static let cacheColumns: CacheColumns = "display_name, avatar_file_id, cover_url, custom_type, data"

    // derived: init(cached:)
    init(cached row: inout CacheReader) throws {
        try self.init(
            displayName: row.value(), avatarFileId: row.value(), coverUrl: row.value(), customType: row.value(), data: row.value())
    }

    // derived: cache(in:)
    func cache(in row: inout CacheWriter) throws {
        try row.put(displayName)
        try row.put(avatarFileId)
        try row.put(coverUrl)
        try row.put(customType)
        try row.put(data)
    }
}

/// In `channels`.
extension ChannelCounters: CachedModel {
    // derived: cache columns
    static let cacheColumns: CacheColumns = "seq, member_count, message_count, ordinal, last_activity, last_message_at"

    // derived: init(cached:)
    init(cached row: inout CacheReader) throws {
        try self.init(
            seq: row.value(), memberCount: row.value(), messageCount: row.value(), ordinal: row.value(), lastActivity: row.value(),
            lastMessageAt: row.value())
    }

    // derived: cache(in:)
    func cache(in row: inout CacheWriter) throws {
        try row.put(seq)
        try row.put(memberCount)
        try row.put(messageCount)
        try row.put(ordinal)
        try row.put(lastActivity)
        try row.put(lastMessageAt)
    }

    fileprivate static let none = ChannelCounters(
        seq: 0, memberCount: 0, messageCount: 0, ordinal: 0, lastActivity: Timestamp(milliseconds: 0))
}

extension Store {
    /// Creates the index for the order of a list, unless it exists. It stays in the file, and finds the first rows for the next list with that order.
    func makeIndex(for sort: ChannelSort) async throws {
        guard try await !read({ try $0.hasIndex(of: sort) }) else { return }
        try await change { try $0.execute(sql: sort.indexStatement) }
    }
}

extension Database {
    /// Whether an order of lists has its index.
    func hasIndex(of sort: ChannelSort) throws -> Bool {
        if sort.isAlwaysIndexed { return true }
        return try value("SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'index' AND name = ?)", [sort.index]) ?? false
    }

    /// A channel with all of the user's state in it and its newest message; nil if it isn't cached.
    ///
    /// - Parameter now: As for a row.
    func channelView(_ channel: ChannelID, now: Timestamp? = nil) throws -> ChannelView? { try channelRow(channel, now: now)?.view }

    /// The same as a row of a list.
    ///
    /// - Parameters:
    ///   - known: The row as read before, parts of which may still be right.
    ///   - now: The time by which silences, rate limits and mutes have ended; nil leaves them as they were stored.
    func channelRow(_ channel: ChannelID, known: ChannelRow? = nil, now: Timestamp? = nil) throws -> ChannelRow? {
        try first(ChannelRow.query, [channel]) { try ChannelRow(&$0, known: known, now: now) }
    }

    /// The types of those of the given channels that are cached, and whether they have their own policy, by id. A single statement, since there are
    /// thousands of them after a first connection.
    func types(of channels: some Collection<ChannelID>) throws -> [(id: ChannelID, type: ChannelType, hasPolicy: Bool)] {
        let sql = """
            SELECT channel_id, type, has_policy FROM channels
            WHERE channel_id IN (SELECT value FROM json_each(?)) ORDER BY channel_id
            """
        let ids = String(decoding: try JSONWriter.bytes(of: channels.map(\.rawValue)), as: UTF8.self)
        var types: [(id: ChannelID, type: ChannelType, hasPolicy: Bool)] = []
        try each(sql, [ids]) { types.append((try $0.value(), try $0.value(), try $0.value())) }
        return types
    }

    /// A channel's attributes and counters; nil if it isn't cached.
    func channel(_ id: ChannelID) throws -> Channel? {
        let sql = """
            SELECT \(Channel.cacheColumns.of("a")), \(ChannelCounters.cacheColumns.of("c"))
            FROM channels c JOIN channel_attributes a ON a.channel_id = c.channel_id WHERE c.channel_id = ?
            """
        return try first(sql, [id]) { row in
            var channel = try Channel(cached: &row)
            channel.counters = try ChannelCounters(cached: &row)
            return channel
        }
    }

    /// Whether a channel is ephemeral; nil if it isn't cached.
    func isEphemeral(_ channel: ChannelID) throws -> Bool? {
        try value("SELECT is_ephemeral FROM channel_attributes WHERE channel_id = ?", [channel])
    }

    func save(_ channel: Channel) throws {
        let counters = channel.counters
        try run(Self.upsertOfChannel) { row in
            try row.put(channel.channelId)
            try row.put(counters)
            try row.put(counters.lastMessageAt ?? channel.createdAt)
            try row.put(channel.createdAt)
            try row.put(channel.createdBy)
            try row.put(channel.type)
            try row.put(channel.attributes.customType)
            try row.put(NameKey.of(channel.attributes.displayName))
            try row.put(String(decoding: JSONWriter.bytes(of: channel.tags), as: UTF8.self))
            try row.put(channel.policy != nil)
            try row.put(channel.isPublic)
            try row.put(channel.isFrozen)
            try row.put(channel.deletedAt != nil)
        }
        try run(Self.replacementOfAttributes) { try $0.put(channel) }
    }

    /// The columns of `channels` that lists use, besides the counters.
    private static let listedColumns: CacheColumns = """
        created_at, created_by, type, custom_type, name_key, tags, has_policy, is_public, is_frozen, is_deleted
        """

    /// The counters are replaced unless they are older than the stored ones.
    private static let upsertOfChannel = """
        INSERT INTO channels (channel_id, \(ChannelCounters.cacheColumns), list_at, \(listedColumns))
        VALUES (?, \(ChannelCounters.cacheColumns.placeholders), ?, \(listedColumns.placeholders))
        ON CONFLICT (channel_id) DO UPDATE
        SET \(ChannelCounters.cacheColumns.names.map { "\($0) = \(newer($0))" }.joined(separator: ", ")),
            list_at = COALESCE(\(newer("last_message_at")), excluded.created_at), \(listedColumns.replaced)
        """

    private static func newer(_ column: String) -> String { "IIF(excluded.seq >= seq, excluded.\(column), \(column))" }

    func save(_ counters: ChannelCounters, of channel: ChannelID) throws {
        try run(
            Self.updateOfCounters,
            [
                counters.seq, counters.memberCount, counters.messageCount, counters.ordinal, counters.lastActivity,
                counters.lastMessageAt, channel,
            ])
    }

    private static let updateOfCounters = """
        UPDATE channels
        SET seq = ?1, member_count = ?2, message_count = ?3, ordinal = ?4, last_activity = ?5, last_message_at = ?6,
            list_at = COALESCE(?6, created_at)
        WHERE channel_id = ?7 AND seq <= ?1
        """

    /// Adds a new message to its channel's counters, unless they include it. It doesn't read them first: it is ``ChannelCounters/add(_:)`` in SQL.
    ///
    /// - Parameter counts: Whether it counts as unread.
    func addToCounters(of channel: ChannelID, messageAt seq: Seq, counts: Bool, sentAt time: Timestamp) throws {
        try run(Self.additionToCounters) { row in
            try row.put(seq)
            try row.put(counts)
            try row.put(time)
            try row.put(channel)
            try row.put(Int.max)
        }
    }

    /// SQLite turns an integer that overflows into a floating-point number, so a counter that has reached its maximum stays.
    static let additionToCounters = """
        UPDATE channels
        SET seq = ?1, message_count = message_count + (message_count < ?5), ordinal = ordinal + (?2 AND ordinal < ?5),
            last_activity = ?3, last_message_at = ?3, list_at = ?3
        WHERE channel_id = ?4 AND seq < ?1
        """

    private static let replacementOfAttributes = """
        INSERT OR REPLACE INTO channel_attributes (\(Channel.cacheColumns), revision)
        VALUES (\(Channel.cacheColumns.placeholders), random())
        """

    func counters(of channel: ChannelID) throws -> ChannelCounters? {
        try model(Self.queryOfCounters, [channel.rawValue])
    }

    private static let queryOfCounters = "SELECT \(ChannelCounters.cacheColumns) FROM channels WHERE channel_id = ?"

    func forgetCapabilities(in channel: ChannelID) throws {
        try run("DELETE FROM capabilities WHERE channel_id = ?", [channel.rawValue])
    }

    /// Lets the next counters replace these, even lower ones: a restored backup goes back.
    func invalidateCounters(of channel: ChannelID) throws {
        try run("UPDATE channels SET seq = 0 WHERE channel_id = ?", [channel.rawValue])
    }
}
