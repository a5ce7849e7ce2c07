import Foundation
import GRDB
import RoostAPI

/// Kept for every followed channel, even if its messages aren't: its newest mentions decide whether it shows one.
extension ChannelMention: CachedRow {
    static let schema = """
        CREATE TABLE channel_mentions (
            channel_id, \(ChannelMention.cacheColumns), is_own, PRIMARY KEY (channel_id, seq)
        ) WITHOUT ROWID;
        """

    static func save(_ rows: [ChannelMention], of stream: StreamID, as user: UserID, in database: Database) throws {
        guard case .channel(let channel) = stream else { return }
        for mention in rows {
            try database.run(upsert) { row in
                try row.put(channel)
                try row.put(mention)
                try row.put(mention.sender == user)
            }
        }
    }

    private static let upsert = """
        INSERT INTO channel_mentions (channel_id, \(ChannelMention.cacheColumns), is_own)
        VALUES (?, \(ChannelMention.cacheColumns.placeholders), ?)
        ON CONFLICT (channel_id, seq) DO UPDATE
        SET change_seq = excluded.change_seq, mention_seq = excluded.mention_seq WHERE excluded.change_seq >= change_seq
        """

    static func forget(_ channel: ChannelID, as user: UserID, in database: Database) throws {
        try database.run("DELETE FROM channel_mentions WHERE channel_id = ?", [channel.rawValue])
    }

    /// Only those of messages that are concealed from the user or were permanently deleted. Others outlive their messages in the cache.
    static func forget(messages: ClosedRange<Seq>, in channel: ChannelID, _ database: Database) throws {
        try database.run(
            """
            DELETE FROM channel_mentions
            WHERE channel_id = ?1 AND seq BETWEEN ?2 AND ?3
                  AND (seq <= (SELECT history_floor FROM memberships WHERE channel_id = ?1)
                       OR EXISTS (SELECT 1 FROM purged WHERE channel_id = ?1 AND purged.seq = channel_mentions.seq))
            """, [channel.rawValue, messages.lowerBound, messages.upperBound])
    }

    /// Whether an unread message mentions the user (``Unread/hasMention(in:_:as:)``), from their membership `m` in a channel.
    static let isUnread = """
        (COALESCE(m.mention_seq, 0) > COALESCE(m.read_seq, 0)
         OR EXISTS (SELECT 1 FROM channel_mentions n WHERE n.channel_id = m.channel_id AND n.mention_seq > m.read_seq
                                                           AND n.seq > m.history_floor AND n.is_own = 0
                                                           AND NOT EXISTS (SELECT 1 FROM own_deletions d
                                                                           WHERE d.channel_id = n.channel_id AND d.seq = n.seq)))
        """
}

extension Database {
    /// The user's channels with an unread message that mentions them.
    func mentioningChannels() throws -> [ChannelID] {
        try values("SELECT m.channel_id FROM memberships m WHERE m.is_member = 1 AND \(ChannelMention.isUnread)")
    }
}

extension ChannelMention: CachedModel {
    // derived: cache columns
    static let cacheColumns: CacheColumns = "seq, change_seq, mention_seq, sender"

    // derived: init(cached:)
    init(cached row: inout CacheReader) throws {
        try self.init(seq: row.value(), changeSeq: row.value(), mentionSeq: row.value(), sender: row.value())
    }

    // derived: cache(in:)
    func cache(in row: inout CacheWriter) throws {
        try row.put(seq)
        try row.put(changeSeq)
        try row.put(mentionSeq)
        try row.put(sender)
    }
}
