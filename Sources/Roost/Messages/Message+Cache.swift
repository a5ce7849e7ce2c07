import Foundation
import GRDB
import RoostAPI

extension Message: CachedRow {
    static let schema = """
        CREATE TABLE messages (
            channel_id TEXT NOT NULL, seq INTEGER NOT NULL, change_seq INTEGER NOT NULL, message_id INTEGER NOT NULL,
            own_client_id TEXT, json BLOB NOT NULL,
            PRIMARY KEY (channel_id, seq)
        ) WITHOUT ROWID;
        CREATE INDEX messages_by_id ON messages (message_id);
        CREATE INDEX messages_changed ON messages (channel_id, change_seq);
        CREATE INDEX messages_own ON messages (channel_id, own_client_id) WHERE own_client_id IS NOT NULL;
        CREATE TABLE opened_channels (channel_id TEXT PRIMARY KEY NOT NULL, number INTEGER NOT NULL) WITHOUT ROWID;
        """

    /// Saves messages, except those concealed from the user (SB-14, SB-26) and those deleted for good.
    static func save(_ rows: [Message], of stream: StreamID, as user: UserID, in database: Database) throws {
        for message in rows {
            try database.run(
                """
                INSERT INTO messages (channel_id, seq, change_seq, own_client_id, json, message_id)
                SELECT ?1, ?2, ?3, ?4, ?5, ?6
                WHERE ?2 > COALESCE((SELECT history_floor FROM memberships WHERE channel_id = ?1), 0)
                      AND NOT EXISTS (SELECT 1 FROM purged WHERE channel_id = ?1 AND seq = ?2)
                ON CONFLICT (channel_id, seq) DO UPDATE SET change_seq = excluded.change_seq, json = excluded.json
                WHERE excluded.change_seq >= change_seq
                """,
                [
                    message.channelId.rawValue, message.seq, message.changeSeq,
                    message.sender == user ? message.clientId.rawValue : nil, try StoredJSON.encode(message),
                    message.messageId.rawValue,
                ])
        }
    }

    static func forget(messages: ClosedRange<Seq>, in channel: ChannelID, _ database: Database) throws {
        try database.run(
            "DELETE FROM messages WHERE channel_id = ? AND seq BETWEEN ? AND ?",
            [channel.rawValue, messages.lowerBound, messages.upperBound])
    }
}
