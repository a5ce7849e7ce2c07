import Foundation
import GRDB
import RoostAPI

/// Messages that were never changed aren't in the index of changes: their seq is that of their newest change.
extension Message: CachedRow {
    static let schema = """
        CREATE TABLE messages (\(Message.cacheColumns), is_own, counts, PRIMARY KEY (channel_id, seq));
        CREATE INDEX messages_by_id ON messages (message_id);
        CREATE INDEX messages_changed ON messages (channel_id, change_seq) WHERE change_seq > seq;
        CREATE INDEX messages_own ON messages (channel_id, client_id) WHERE is_own = 1;
        CREATE TABLE opened_channels (channel_id TEXT PRIMARY KEY NOT NULL, number INTEGER NOT NULL) WITHOUT ROWID;
        """

    /// Saves messages, except those concealed from the user (SB-14, SB-26) and those permanently deleted. Messages that the user has deleted for
    /// themselves lose their content.
    static func save(_ rows: [Message], of stream: StreamID, as user: UserID, in database: Database) throws {
        guard case .channel(let channel) = stream else { return }
        for message in try database.kept(rows, in: channel) {
            try database.run(upsert) { row in
                try row.put(message)
                try row.put(message.sender == user)
                try row.put(Unread.counts(message))
            }
        }
    }

    static let upsert = """
        INSERT INTO messages (\(Message.cacheColumns), is_own, counts) VALUES (\(Message.cacheColumns.placeholders), ?, ?)
        ON CONFLICT (channel_id, seq) DO UPDATE SET \(Message.cacheColumns.replaced)
        WHERE excluded.change_seq >= change_seq
        """

    static func forget(messages: ClosedRange<Seq>, in channel: ChannelID, _ database: Database) throws {
        try database.run(
            "DELETE FROM messages WHERE channel_id = ? AND seq BETWEEN ? AND ?",
            [channel.rawValue, messages.lowerBound, messages.upperBound])
    }
}

extension Database {
    /// Adds new messages to their channel's counters, unless the counters include them.
    func add(_ rows: Rows, toCountersOf channel: ChannelID) throws {
        for message in rows.messages ?? [] {
            try addToCounters(of: channel, messageAt: message.seq, counts: Unread.counts(message), sentAt: message.createdAt)
        }
    }

    /// Returns the messages of a channel that the cache keeps, in the form in which it keeps them.
    ///
    /// The data that decides this is read once for all of them: nearly always it is only the membership.
    fileprivate func kept(_ messages: [Message], in channel: ChannelID) throws -> [Message] {
        guard let lowest = messages.lazy.map(\.seq).min(), let highest = messages.lazy.map(\.seq).max() else { return [] }
        var (floor, purged, deletions): (Seq, Set<Seq>, [Seq: Timestamp]) = (0, [], [:])
        let sql = """
            SELECT 0, history_floor, NULL FROM memberships WHERE channel_id = ?1 AND is_member = 1
            UNION ALL SELECT 1, seq, NULL FROM purged WHERE channel_id = ?1 AND seq BETWEEN ?2 AND ?3
            UNION ALL SELECT 2, seq, deleted_at FROM own_deletions WHERE channel_id = ?1 AND seq BETWEEN ?2 AND ?3
            """
        try each(sql, [channel, lowest, highest]) { row in
            let (kind, seq): (Int, Seq) = (try row.value(), try row.value())
            switch kind {
            case 0: floor = seq
            case 1: purged.insert(seq)
            default: deletions[seq] = try row.value()
            }
        }
        guard lowest <= floor || !purged.isEmpty || !deletions.isEmpty else { return messages }
        return messages.filter { $0.seq > floor && !purged.contains($0.seq) }.map { message in
            deletions[message.seq].map { message.deletedForMe(at: $0) } ?? message
        }
    }
}

extension Message: CachedModel {
    // derived: cache columns, without droppedMentions
    static let cacheColumns: CacheColumns = """
        message_id, channel_id, seq, change_seq, sender, client_id, \(MessageContent.cacheColumns), created_at, edited_at,
        deleted_at, is_deleted_for_me
        """

    // derived: init(cached:)
    init(cached row: inout CacheReader) throws {
        try self.init(
            messageId: row.value(), channelId: row.value(), seq: row.value(), changeSeq: row.value(), sender: row.value(),
            clientId: row.value(), content: MessageContent(cached: &row), createdAt: row.value(), editedAt: row.value(),
            deletedAt: row.value(), isDeletedForMe: row.value())
    }

    // derived: cache(in:)
    func cache(in row: inout CacheWriter) throws {
        try row.put(messageId)
        try row.put(channelId)
        try row.put(seq)
        try row.put(changeSeq)
        try row.put(sender)
        try row.put(clientId)
        try row.put(content)
        try row.put(createdAt)
        try row.put(editedAt)
        try row.put(deletedAt)
        try row.put(isDeletedForMe)
    }
}

extension MessageContent: CachedModel {
    // derived: cache columns
    static let cacheColumns: CacheColumns = """
        text, kind, custom_type, data, metadata, tags, parent_id, mentionees, meta_arrays, push_option, target_languages, is_silent
        """

    // derived: init(cached:)
    init(cached row: inout CacheReader) throws {
        try self.init(
            text: row.value(), kind: row.value(), customType: row.value(), data: row.value(), metadata: row.value(),
            tags: row.value(), parentId: row.value(), mentionees: row.value(), metaArrays: row.value(), pushOption: row.value(),
            targetLanguages: row.value(), isSilent: row.value())
    }

    // derived: cache(in:)
    func cache(in row: inout CacheWriter) throws {
        try row.put(text)
        try row.put(kind)
        try row.put(customType)
        try row.put(data)
        try row.put(metadata)
        try row.put(tags)
        try row.put(parentId)
        try row.put(mentionees)
        try row.put(metaArrays)
        try row.put(pushOption)
        try row.put(targetLanguages)
        try row.put(isSilent)
    }
}
