import Foundation
import GRDB
import RoostAPI

/// Kept for every channel. A removed draft stays as a row without text.
extension ChannelDraft: CachedRow {
    static let schema = """
        CREATE TABLE drafts (channel_id TEXT PRIMARY KEY NOT NULL, user_seq INTEGER NOT NULL, json BLOB NOT NULL) WITHOUT ROWID;
        """

    static func save(_ rows: [ChannelDraft], of stream: StreamID, as user: UserID, in database: Database) throws {
        for draft in rows {
            try database.run(
                """
                INSERT INTO drafts (channel_id, user_seq, json) VALUES (?, ?, ?)
                ON CONFLICT (channel_id) DO UPDATE SET user_seq = excluded.user_seq, json = excluded.json
                WHERE excluded.user_seq >= user_seq
                """, [draft.channelId.rawValue, draft.userSeq, try StoredJSON.encode(draft)])
        }
    }

    // They belong to the user's stream, which isn't sent again when a channel starts over.
    static func forget(_ channel: ChannelID, as user: UserID, in database: Database) throws {}
    static func forget(messages: ClosedRange<Seq>, in channel: ChannelID, _ database: Database) throws {}

    static func note(_ rows: [ChannelDraft], of stream: StreamID, in change: inout StoreChange) {
        for draft in rows { change.channels.insert(draft.channelId) }
    }
}

/// A pending draft.
struct DraftOverlay: Codable, Hashable, Sendable {
    var operation: SetDraft
    var createdAt: Timestamp

    /// The draft as shown. Without a text there will be none.
    fileprivate var draft: ChannelDraft {
        ChannelDraft(
            channelId: operation.channel, text: operation.text, metadata: operation.metadata, updatedAt: createdAt, userSeq: 0)
    }
}

extension Database {
    /// All of the user's drafts, by channel.
    func drafts() throws -> [ChannelID: ChannelDraft] {
        let ids: [ChannelID] = try values(
            "SELECT channel_id FROM drafts UNION SELECT channel_id FROM overlays WHERE channel_id <> ''")
        var drafts: [ChannelID: ChannelDraft] = [:]
        for id in ids { drafts[id] = try draft(of: id) }
        return drafts
    }

    /// The user's draft in a channel, including pending operations; nil if there is none, in a deleted channel, and in one that the user has left.
    func draft(of channel: ChannelID) throws -> ChannelDraft? {
        let overlay = try overlay(of: channel)
        // The server removes the draft with the membership.
        guard overlay?.isLeaving != true else { return nil }
        let stored: ChannelDraft? = try json("SELECT json FROM drafts WHERE channel_id = ?", [channel])
        guard let draft = overlay?.draft?.draft ?? stored, !draft.isRemoved else { return nil }
        return try self.channel(channel)?.deletedAt == nil ? draft : nil
    }
}
