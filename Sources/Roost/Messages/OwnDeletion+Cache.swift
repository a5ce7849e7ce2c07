import Foundation
import GRDB
import RoostAPI

/// Kept for every channel, even if its messages aren't: a message that the user has deleted for themselves may still arrive, with an edit or a page.
extension OwnDeletion: CachedRow {
    static let schema = """
        CREATE TABLE own_deletions (\(OwnDeletion.cacheColumns), PRIMARY KEY (channel_id, seq)) WITHOUT ROWID;
        CREATE INDEX own_deletions_changed ON own_deletions (channel_id, user_seq);
        """

    /// Saves the deletions, and removes the content of cached messages.
    static func save(_ rows: [OwnDeletion], of stream: StreamID, as user: UserID, in database: Database) throws {
        for deletion in rows {
            try database.run(insert) { try $0.put(deletion) }
            let cached: Message? = try database.model(
                "SELECT \(Message.cacheColumns) FROM messages WHERE channel_id = ? AND seq = ?",
                [deletion.channelId.rawValue, deletion.seq])
            if let cached { try Message.save([cached], of: .channel(deletion.channelId), as: user, in: database) }
        }
    }

    private static let insert = """
        INSERT INTO own_deletions (\(OwnDeletion.cacheColumns)) VALUES (\(OwnDeletion.cacheColumns.placeholders))
        ON CONFLICT (channel_id, seq) DO NOTHING
        """

    // They belong to the user's stream, which isn't sent again when a channel starts over.
    static func forget(_ channel: ChannelID, as user: UserID, in database: Database) throws {}
    static func forget(messages: ClosedRange<Seq>, in channel: ChannelID, _ database: Database) throws {}

    static func note(_ rows: [OwnDeletion], of stream: StreamID, in change: inout StoreChange) {
        for deletion in rows { change.channels.insert(deletion.channelId) }
    }
}

extension Database {
    /// Returns a message as its user sees it: without content if they have deleted it for themselves.
    func shown(_ message: Message) throws -> Message {
        try ownDeletionTime(of: message.seq, in: message.channelId).map { message.deletedForMe(at: $0) } ?? message
    }

    /// When the user deleted a message for themselves; nil if they haven't.
    func ownDeletionTime(of message: Seq, in channel: ChannelID) throws -> Timestamp? {
        try first("SELECT deleted_at FROM own_deletions WHERE channel_id = ? AND seq = ?", [channel, message]) { try $0.value() }
    }
}

extension OwnDeletion: CachedModel {
    // derived: cache columns
    static let cacheColumns: CacheColumns = "channel_id, seq, deleted_at, user_seq"
    // derived: init(cached:)
    init(cached row: inout CacheReader) throws {
        try self.init(channelId: row.value(), seq: row.value(), deletedAt: row.value(), userSeq: row.value())
    }
    // derived: cache(in:)
    func cache(in row: inout CacheWriter) throws {
        try row.put(channelId)
        try row.put(seq)
        try row.put(deletedAt)
        try row.put(userSeq)
    }
}
