import Foundation
import GRDB
import RoostAPI

extension Database {
    /// Applies one write. See ``StoreWrite`` for what each means.
    func apply(_ write: StoreWrite, as user: UserID) throws {
        switch write {
        case .erase(let epoch): try erase(epoch: epoch)
        case .userPosition(let seq): try run("UPDATE state SET user_cursor = ?", [seq])
        case .position(let channel, let position):
            try run(
                "INSERT OR REPLACE INTO positions (channel_id, cursor, window_start, message_count, has_hole) VALUES (?, ?, ?, ?, ?)",
                [channel.rawValue, position.cursor, position.windowStart, position.messageCount, position.hasHole])
        case .forget(let channel): try forget(channel, as: user)
        case .leave(let channel):
            try forget(channel, as: user)
            try run("DELETE FROM positions WHERE channel_id = ?", [channel.rawValue])
        case .channel(let channel): try save(channel)
        case .counters(let channel, let counters): try save(counters, of: channel)
        case .membership(let membership): try save(membership, of: user)
        case .countOwn(let message): try countOwn(message, as: user)
        case .members(let channel, let members): try save(members, of: channel)
        case .messages(let messages): try save(messages)
        case .users(let users): try save(users)
        case .invitation(let invitation): try save(invitation, as: user)
        case .preferences(let preferences):
            try run("INSERT OR REPLACE INTO preferences (id, json) VALUES (1, ?)", [try StoredJSON.encode(preferences)])
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

    private func erase(epoch: String) throws {
        let tables = [
            "positions", "channels", "channel_attributes", "memberships", "capabilities", "messages", "members", "invitations",
            "users", "preferences",
        ]
        for table in tables { try execute(sql: "DELETE FROM \(table)") }
        try run("UPDATE state SET epoch = ?, user_cursor = 0", [epoch])
    }

    private func forget(_ channel: ChannelID, as user: UserID) throws {
        try run("DELETE FROM messages WHERE channel_id = ?", [channel.rawValue])
        try run("DELETE FROM members WHERE channel_id = ?", [channel.rawValue])
        // Those that concern the user come with the user's own stream.
        try run(
            "DELETE FROM invitations WHERE channel_id = ?1 AND user_id <> ?2 AND inviter <> ?2", [channel.rawValue, user.rawValue])
        // The counters that come next count, even lower ones: a restored backup goes back.
        try run("UPDATE channels SET seq = 0 WHERE channel_id = ?", [channel.rawValue])
    }

    // MARK: Channels

    private func save(_ channel: Channel) throws {
        let id = channel.channelId.rawValue
        try run(
            """
            INSERT INTO channels (channel_id, seq, member_count, message_count, last_activity, list_at, created_at, created_by,
                                  type, custom_type, name_key, tags, is_public, is_frozen, is_deleted)
            VALUES (?1, 0, 0, 0, 0, ?2, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
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
            SET seq = ?1, member_count = ?2, message_count = ?3, last_activity = ?4, last_message_at = ?5,
                list_at = COALESCE(?5, created_at)
            WHERE channel_id = ?6 AND seq <= ?1
            """,
            [
                counters.seq, counters.memberCount, counters.messageCount, counters.lastActivity.milliseconds,
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

    // MARK: The own membership

    private func save(_ membership: Membership, of user: UserID) throws {
        let membership = Unread.bringUp(
            membership,
            ownSeqs: try followedMessages(in: membership.channelId, after: membership.channelSeq).filter { $0.sender == user }.map(
                \.seq))
        if let stored = try self.membership(of: membership.channelId), stored.isNewer(than: membership) { return }
        try replace(membership)
        if membership.state != .member {
            try run("DELETE FROM capabilities WHERE channel_id = ?", [membership.channelId.rawValue])
        }
        if membership.historyFloor > 0 {
            try run(
                "DELETE FROM messages WHERE channel_id = ? AND seq <= ?", [membership.channelId.rawValue, membership.historyFloor])
        }
    }

    private func replace(_ membership: Membership) throws {
        try run(
            """
            INSERT OR REPLACE INTO memberships (channel_id, is_member, read_count, hidden, hidden_message_count, history_floor, json)
            VALUES (?, ?, ?, ?, ?, ?, ?)
            """,
            [
                membership.channelId.rawValue, membership.state == .member, membership.readCount, membership.hiddenState.rawValue,
                membership.hiddenMessageCount, membership.historyFloor, try StoredJSON.encode(membership),
            ])
    }

    /// The messages after a seq, up to where the channel is followed.
    private func followedMessages(in channel: ChannelID, after seq: Seq) throws -> [Message] {
        let statement = try cachedStatement(
            sql: """
                SELECT json FROM messages
                WHERE channel_id = ?1 AND seq > ?2 AND seq <= (SELECT cursor FROM positions WHERE channel_id = ?1)
                """)
        return try Data.fetchAll(statement, arguments: [channel.rawValue, seq]).map {
            try StoredJSON.decode(Message.self, from: $0)
        }
    }

    private func countOwn(_ message: Message, as user: UserID) throws {
        guard var membership = try membership(of: message.channelId) else { return }
        Unread.receive(message, as: user, in: &membership)
        try replace(membership)
    }

    // MARK: Members, messages, users, invitations

    private func save(_ members: [Member], of channel: ChannelID) throws {
        for member in members {
            try run(
                """
                INSERT INTO members (channel_id, user_id, change_seq, json) VALUES (?, ?, ?, ?)
                ON CONFLICT (channel_id, user_id) DO UPDATE SET change_seq = excluded.change_seq, json = excluded.json
                WHERE excluded.change_seq >= change_seq
                """, [channel.rawValue, member.userId.rawValue, member.changeSeq, try StoredJSON.encode(member)])
        }
    }

    /// Those that are concealed from the user are left out (SB-14, SB-26).
    private func save(_ messages: [Message]) throws {
        for message in messages {
            try run(
                """
                INSERT INTO messages (channel_id, seq, change_seq, json)
                SELECT ?1, ?2, ?3, ?4
                WHERE ?2 > COALESCE((SELECT history_floor FROM memberships WHERE channel_id = ?1), 0)
                ON CONFLICT (channel_id, seq) DO UPDATE SET change_seq = excluded.change_seq, json = excluded.json
                WHERE excluded.change_seq >= change_seq
                """, [message.channelId.rawValue, message.seq, message.changeSeq, try StoredJSON.encode(message)])
        }
    }

    private func save(_ users: [User]) throws {
        for user in users {
            try run(
                """
                INSERT INTO users (user_id, version, json) VALUES (?, ?, ?)
                ON CONFLICT (user_id) DO UPDATE SET version = excluded.version, json = excluded.json
                WHERE excluded.version >= version
                """, [user.userId.rawValue, user.version, try StoredJSON.encode(user)])
        }
    }

    private func save(_ invitation: Invitation, as user: UserID) throws {
        try run(
            """
            INSERT INTO invitations (channel_id, user_id, inviter, revision, is_waiting, invited_at, json) VALUES (?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (channel_id, user_id, inviter) DO UPDATE
            SET revision = excluded.revision, is_waiting = excluded.is_waiting, invited_at = excluded.invited_at, json = excluded.json
            WHERE excluded.revision >= revision
            """,
            [
                invitation.channelId.rawValue, invitation.userId.rawValue, invitation.inviter.rawValue, invitation.revision,
                invitation.userId == user && invitation.state == .pending, invitation.invitedAt.milliseconds,
                try StoredJSON.encode(invitation),
            ])
    }
}

extension Membership {
    /// Whether another one is older than this. Of two with one stamp, more own messages have come since the one that counts more.
    func isNewer(than other: Membership) -> Bool {
        (userSeq, readCount) > (other.userSeq, other.readCount)
    }
}
