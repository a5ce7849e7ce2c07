import Foundation
import GRDB
import RoostAPI

extension Database {
    /// Applies one write. See ``StoreWrite`` for what each means.
    func apply(_ write: StoreWrite, as user: UserID, _ kinds: CachedRowKinds) throws {
        switch write {
        case .erase(let epoch): try erase(epoch: epoch, kinds)
        case .userPosition(let seq): try run("UPDATE state SET user_cursor = ?", [seq])
        case .position(let channel, let position):
            try run(
                "INSERT OR REPLACE INTO positions (channel_id, cursor, window_start, message_count, has_hole) VALUES (?, ?, ?, ?, ?)",
                [channel.rawValue, position.cursor, position.windowStart, position.messageCount, position.hasHole])
        case .forget(let channel): try forget(channel, as: user, kinds)
        case .leave(let channel):
            try forget(channel, as: user, kinds)
            try run("DELETE FROM positions WHERE channel_id = ?", [channel.rawValue])
        case .channel(let channel): try save(channel)
        case .counters(let channel, let counters): try save(counters, of: channel)
        case .rows(let rows, let stream): try kinds.save(rows, of: stream, as: user, in: self)
        case .count(let channel, let messages, let purged):
            if let membership = try membership(of: channel) {
                try replace(Unread.bringUp(membership, as: user, with: messages, purged))
            }
        case .capabilities(let channel, let own):
            try changeCapabilities(in: channel) { if !$0.own.isNewer(than: own) { $0.own = own } }
        case .roleCapabilities(let channel, let byRole):
            try changeCapabilities(in: channel) { if byRole.channelSeq >= $0.byRole.channelSeq { $0.byRole = byRole } }
        }
    }

    /// Statements are prepared once and kept.
    func run(_ sql: String, _ arguments: StatementArguments) throws {
        try cachedStatement(sql: sql).execute(arguments: arguments)
    }

    private func erase(epoch: String, _ kinds: CachedRowKinds) throws {
        try Store.makeTables(in: self, kinds)
        try run("UPDATE state SET epoch = ?", [epoch])
    }

    private func forget(_ channel: ChannelID, as user: UserID, _ kinds: CachedRowKinds) throws {
        try kinds.forget(channel, as: user, in: self)
        // The next counters replace these, even lower ones: a restored backup goes back.
        try run("UPDATE channels SET seq = 0 WHERE channel_id = ?", [channel.rawValue])
    }

    // MARK: Channels

    private func save(_ channel: Channel) throws {
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
                id, channel.createdAt.milliseconds, channel.createdBy?.rawValue, channel.type.rawValue, channel.customType,
                NameKey.of(channel.displayName), String(decoding: try JSONWriter.bytes(of: channel.tags), as: UTF8.self),
                channel.isPublic, channel.isFrozen, channel.deletedAt != nil,
            ])
        try run("INSERT OR REPLACE INTO channel_attributes (channel_id, json) VALUES (?, ?)", [id, try StoredJSON.encode(channel)])
        try save(channel.counters, of: channel.channelId)
    }

    private func save(_ counters: ChannelCounters, of channel: ChannelID) throws {
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

    private func changeCapabilities(in channel: ChannelID, _ change: (inout Capabilities) -> Void) throws {
        let statement = try cachedStatement(sql: "SELECT json FROM capabilities WHERE channel_id = ?")
        let stored = try Data.fetchOne(statement, arguments: [channel.rawValue])
        var capabilities = try stored.map { try StoredJSON.decode(Capabilities.self, from: $0) } ?? Capabilities()
        change(&capabilities)
        try run(
            "INSERT OR REPLACE INTO capabilities (channel_id, json) VALUES (?, ?)",
            [channel.rawValue, try StoredJSON.encode(capabilities)])
    }
}
