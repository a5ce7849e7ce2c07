import Foundation
import GRDB
import RoostAPI

extension Message: CachedRow {
    static let schema = """
        CREATE TABLE messages (
            channel_id TEXT NOT NULL, seq INTEGER NOT NULL, change_seq INTEGER NOT NULL, json BLOB NOT NULL,
            PRIMARY KEY (channel_id, seq)
        ) WITHOUT ROWID;
        """

    /// Saves messages, except those concealed from the user (SB-14, SB-26) and those deleted for good.
    static func save(_ rows: [Message], of stream: StreamID, as user: UserID, in database: Database) throws {
        for message in rows {
            try database.run(
                """
                INSERT INTO messages (channel_id, seq, change_seq, json)
                SELECT ?1, ?2, ?3, ?4
                WHERE ?2 > COALESCE((SELECT history_floor FROM memberships WHERE channel_id = ?1), 0)
                      AND NOT EXISTS (SELECT 1 FROM purged WHERE channel_id = ?1 AND seq = ?2)
                ON CONFLICT (channel_id, seq) DO UPDATE SET change_seq = excluded.change_seq, json = excluded.json
                WHERE excluded.change_seq >= change_seq
                """, [message.channelId.rawValue, message.seq, message.changeSeq, try StoredJSON.encode(message)])
        }
    }

    static func forget(messages: ClosedRange<Seq>, in channel: ChannelID, _ database: Database) throws {
        try database.run(
            "DELETE FROM messages WHERE channel_id = ? AND seq BETWEEN ? AND ?",
            [channel.rawValue, messages.lowerBound, messages.upperBound])
    }
}

extension StoreWrite {
    /// Puts messages of a channel in the place of older ones.
    static func messages(_ messages: [Message], of channel: ChannelID) -> StoreWrite {
        .rows(Rows(messages), of: .channel(channel))
    }
}

/// A message of the cache. It need not be decoded again while it is stored as the same bytes.
struct CachedMessage: Sendable {
    let seq: Seq
    let json: Data
    let item: MessageItem
}

/// Cached messages of a channel, the newest ones up to a number.
struct CachedMessages: Sendable {
    /// In the order of their seq.
    var rows: [CachedMessage] = []
    /// Whether there are older ones, in the cache or on the server.
    var hasOlder = false
    /// Whether more than these are cached.
    var hasOlderCached = false
}

extension Database {
    /// Returns the newest messages of a channel: `limit` of them, or more to reach back to `lowest`.
    ///
    /// - Parameter known: Messages that were read before, in the order of their seq. Those that are stored unchanged are handed on.
    func messages(
        of channel: ChannelID, from lowest: Seq? = nil, limit: Int, known: [CachedMessage] = []
    ) throws -> CachedMessages {
        let count = try cachedStatement(sql: "SELECT COUNT(*) FROM messages WHERE channel_id = ? AND seq >= ?")
        let reaching = try lowest.flatMap { try Int.fetchOne(count, arguments: [channel.rawValue, $0]) } ?? 0
        let limit = max(limit, reaching)
        let statement = try cachedStatement(sql: "SELECT seq, json FROM messages WHERE channel_id = ? ORDER BY seq DESC LIMIT ?")
        let stored = try Row.fetchCursor(statement, arguments: [channel.rawValue, limit + 1])
        var rows: [CachedMessage] = []
        rows.reserveCapacity(known.count)
        var older = known[...]
        var hasOlderCached = false
        while let row = try stored.next() {
            guard rows.count < limit else {
                hasOlderCached = true
                continue
            }
            let seq: Seq = row[0]
            while let last = older.last, last.seq > seq { older.removeLast() }
            if let same = older.last, same.seq == seq, try row.withUnsafeData(atIndex: 1, { $0 == same.json }) {
                rows.append(same)
            } else {
                let json: Data = row[1]
                rows.append(CachedMessage(seq: seq, json: json, item: MessageItem(try StoredJSON.decode(from: json))))
            }
        }
        // Concealed messages can't be requested.
        let position = try cachedStatement(
            sql: """
                SELECT window_start FROM positions WHERE channel_id = ?1
                AND window_start > 1 + COALESCE((SELECT history_floor FROM memberships WHERE channel_id = ?1), 0)
                """)
        let windowStart = try Seq.fetchOne(position, arguments: [channel.rawValue]) ?? 0
        return CachedMessages(
            rows: rows.reversed(), hasOlder: hasOlderCached || windowStart > 0, hasOlderCached: hasOlderCached)
    }
}
