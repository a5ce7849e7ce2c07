import Foundation
import GRDB
import RoostAPI

/// Channels aren't a kind of rows: streams are made of them. The cache keeps them, their counters and the user's permissions in them.
extension Channel {
    /// A list of channels reads every row of `channels`: they are narrow, and the JSON is stored elsewhere. A row of JSON has another revision
    /// with each write, so that it is decoded once.
    static let cacheSchema = """
        CREATE TABLE channels (
            channel_id TEXT PRIMARY KEY NOT NULL, seq INTEGER NOT NULL, member_count INTEGER NOT NULL,
            message_count INTEGER NOT NULL, ordinal INTEGER NOT NULL, last_activity INTEGER NOT NULL, last_message_at INTEGER, list_at INTEGER NOT NULL,
            created_at INTEGER NOT NULL, created_by TEXT, type TEXT NOT NULL, custom_type TEXT, name_key TEXT NOT NULL,
            tags TEXT NOT NULL, is_public INTEGER NOT NULL, is_frozen INTEGER NOT NULL, is_deleted INTEGER NOT NULL
        ) WITHOUT ROWID;
        CREATE INDEX channels_listed ON channels (list_at, channel_id);
        CREATE TABLE channel_attributes (
            channel_id TEXT PRIMARY KEY NOT NULL, revision INTEGER NOT NULL, json BLOB NOT NULL
        ) WITHOUT ROWID;
        CREATE TABLE capabilities (
            channel_id TEXT PRIMARY KEY NOT NULL, revision INTEGER NOT NULL, json BLOB NOT NULL
        ) WITHOUT ROWID;
        """
}

extension ChannelCounters {
    /// Their columns in `channels AS c`.
    fileprivate static let cacheColumns = "c.seq, c.member_count, c.message_count, c.ordinal, c.last_activity, c.last_message_at"

    /// Reads ``cacheColumns``, which begin at an index.
    init(_ row: Row, from index: Int) {
        self.init(
            seq: row[index], memberCount: row[index + 1], messageCount: row[index + 2], ordinal: row[index + 3],
            lastActivity: Timestamp(milliseconds: row[index + 4]),
            lastMessageAt: (row[index + 5] as Int64?).map(Timestamp.init(milliseconds:)))
    }
}

extension Database {
    /// A channel with all that the user has in it and its newest message; nil when it isn't cached.
    func channelView(_ channel: ChannelID) throws -> ChannelView? { try channelRow(channel)?.view }

    /// The same as a row of a list.
    ///
    /// - Parameters:
    ///   - known: The row as it was read before: what is stored unchanged isn't decoded again.
    ///   - now: The time for states that end by the clock; nil to leave them as they are stored.
    func channelRow(_ channel: ChannelID, known: ChannelRow? = nil, now: Timestamp? = nil) throws -> ChannelRow? {
        let sql = """
            SELECT a.revision, m.revision, k.revision, l.seq, l.change_seq,
                   \(ChannelCounters.cacheColumns),
                   a.json, m.json, k.json, l.json, (SELECT json FROM invitations WHERE channel_id = ?1 AND is_waiting)
            FROM channels c JOIN channel_attributes a ON a.channel_id = c.channel_id
            LEFT JOIN memberships m ON m.channel_id = c.channel_id
            LEFT JOIN capabilities k ON k.channel_id = c.channel_id
            LEFT JOIN positions p ON p.channel_id = c.channel_id
            LEFT JOIN messages l ON l.channel_id = c.channel_id
                      AND l.seq = (SELECT seq FROM messages WHERE channel_id = ?1 AND seq >= COALESCE(p.window_start, 0)
                                   ORDER BY seq DESC LIMIT 1)
            WHERE c.channel_id = ?1
            """
        let rows = try Row.fetchCursor(try cachedStatement(sql: sql), arguments: [channel.rawValue])
        return try rows.next().map { try ChannelRow($0, known: known, now: now) }
    }

    func save(_ channel: Channel) throws {
        let id = channel.channelId.rawValue
        try run(
            """
            INSERT INTO channels (channel_id, seq, member_count, message_count, ordinal, last_activity, list_at, created_at, created_by,
                                  type, custom_type, name_key, tags, is_public, is_frozen, is_deleted)
            VALUES (?1, 0, 0, 0, 0, 0, ?2, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
            ON CONFLICT (channel_id) DO UPDATE
            SET list_at = COALESCE(last_message_at, excluded.list_at), created_at = excluded.created_at,
                created_by = excluded.created_by, type = excluded.type, custom_type = excluded.custom_type,
                name_key = excluded.name_key, tags = excluded.tags, is_public = excluded.is_public,
                is_frozen = excluded.is_frozen, is_deleted = excluded.is_deleted
            """,
            [
                id, channel.createdAt.milliseconds, channel.createdBy?.rawValue, channel.type.rawValue,
                channel.attributes.customType, NameKey.of(channel.attributes.displayName),
                String(decoding: try JSONWriter.bytes(of: channel.tags), as: UTF8.self), channel.isPublic, channel.isFrozen,
                channel.deletedAt != nil,
            ])
        try run(
            "INSERT OR REPLACE INTO channel_attributes (channel_id, revision, json) VALUES (?, random(), ?)",
            [id, try StoredJSON.encode(channel)])
        try save(channel.counters, of: channel.channelId)
    }

    func save(_ counters: ChannelCounters, of channel: ChannelID) throws {
        try run(
            """
            UPDATE channels
            SET seq = ?1, member_count = ?2, message_count = ?3, ordinal = ?4, last_activity = ?5, last_message_at = ?6,
                list_at = COALESCE(?6, created_at)
            WHERE channel_id = ?7 AND seq <= ?1
            """,
            [
                counters.seq, counters.memberCount, counters.messageCount, counters.ordinal, counters.lastActivity.milliseconds,
                counters.lastMessageAt?.milliseconds, channel.rawValue,
            ])
    }

    func counters(of channel: ChannelID) throws -> ChannelCounters? {
        let statement = try cachedStatement(sql: "SELECT \(ChannelCounters.cacheColumns) FROM channels c WHERE channel_id = ?")
        return try Row.fetchOne(statement, arguments: [channel.rawValue]).map { ChannelCounters($0, from: 0) }
    }

    func changeCapabilities(in channel: ChannelID, _ change: (inout Capabilities) -> Void) throws {
        let statement = try cachedStatement(sql: "SELECT json FROM capabilities WHERE channel_id = ?")
        let stored = try Data.fetchOne(statement, arguments: [channel.rawValue])
        var capabilities = try stored.map { try StoredJSON.decode(Capabilities.self, from: $0) } ?? Capabilities()
        change(&capabilities)
        try run(
            "INSERT OR REPLACE INTO capabilities (channel_id, revision, json) VALUES (?, random(), ?)",
            [channel.rawValue, try StoredJSON.encode(capabilities)])
    }

    func forgetCapabilities(in channel: ChannelID) throws {
        try run("DELETE FROM capabilities WHERE channel_id = ?", [channel.rawValue])
    }

    /// Has the next counters replace these, even lower ones: a restored backup goes back.
    func outdateCounters(of channel: ChannelID) throws {
        try run("UPDATE channels SET seq = 0 WHERE channel_id = ?", [channel.rawValue])
    }
}
