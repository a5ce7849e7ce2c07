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
                "INSERT OR REPLACE INTO positions (channel_id, cursor, window_start) VALUES (?, ?, ?)",
                [channel.rawValue, position.cursor, position.windowStart])
        case .forget(let channel): try forget(channel)
        case .leave(let channel):
            try forget(channel)
            try run("DELETE FROM positions WHERE channel_id = ?", [channel.rawValue])
        case .channel(let channel): try save(channel)
        case .counters(let channel, let counters): try save(counters, of: channel)
        case .membership(let membership): try save(membership, of: user)
        case .countOwn(let message): try countOwn(message, as: user)
        case .members(let channel, let members): try save(members, of: channel)
        case .messages(let messages): try save(messages)
        case .users(let users):
            for user in users {
                try run(
                    "INSERT OR REPLACE INTO users (user_id, json) VALUES (?, ?)",
                    [user.userId.rawValue, try StoredJSON.encode(user)])
            }
        }
    }

    /// Statements are prepared once and kept.
    private func run(_ sql: String, _ arguments: StatementArguments) throws {
        try cachedStatement(sql: sql).execute(arguments: arguments)
    }

    private func erase(epoch: String) throws {
        for table in ["positions", "channels", "memberships", "messages", "members", "users"] {
            try execute(sql: "DELETE FROM \(table)")
        }
        try run("UPDATE state SET epoch = ?, user_cursor = 0", [epoch])
    }

    private func forget(_ channel: ChannelID) throws {
        try run("DELETE FROM messages WHERE channel_id = ?", [channel.rawValue])
        try run("DELETE FROM members WHERE channel_id = ?", [channel.rawValue])
        // The counters that come next count, even lower ones: a restored backup goes back.
        try run("UPDATE channels SET seq = 0 WHERE channel_id = ?", [channel.rawValue])
    }

    private func save(_ channel: Channel) throws {
        try run(
            """
            INSERT INTO channels (channel_id, seq, member_count, message_count, last_activity, json) VALUES (?, 0, 0, 0, 0, ?)
            ON CONFLICT (channel_id) DO UPDATE SET json = excluded.json
            """, [channel.channelId.rawValue, try StoredJSON.encode(channel)])
        try save(channel.counters, of: channel.channelId)
    }

    private func save(_ counters: ChannelCounters, of channel: ChannelID) throws {
        try run(
            """
            UPDATE channels SET seq = ?1, member_count = ?2, message_count = ?3, last_activity = ?4
            WHERE channel_id = ?5 AND seq <= ?1
            """,
            [counters.seq, counters.memberCount, counters.messageCount, counters.lastActivity.milliseconds, channel.rawValue])
    }

    private func save(_ membership: Membership, of user: UserID) throws {
        let membership = Unread.bringUp(
            membership,
            ownSeqs: try followedMessages(in: membership.channelId, after: membership.channelSeq).filter { $0.sender == user }.map(
                \.seq))
        if let stored = try self.membership(of: membership.channelId), stored.isAhead(of: membership) { return }
        try replace(membership)
    }

    private func replace(_ membership: Membership) throws {
        try run(
            "INSERT OR REPLACE INTO memberships (channel_id, json) VALUES (?, ?)",
            [membership.channelId.rawValue, try StoredJSON.encode(membership)])
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

    private func save(_ messages: [Message]) throws {
        for message in messages {
            try run(
                """
                INSERT INTO messages (channel_id, seq, change_seq, json) VALUES (?, ?, ?, ?)
                ON CONFLICT (channel_id, seq) DO UPDATE SET change_seq = excluded.change_seq, json = excluded.json
                WHERE excluded.change_seq >= change_seq
                """, [message.channelId.rawValue, message.seq, message.changeSeq, try StoredJSON.encode(message)])
        }
    }
}

extension Membership {
    /// Whether another one is older than this. The read position and the count only grow, over all stays in a channel: joining again
    /// begins where the channel is.
    func isAhead(of other: Membership) -> Bool {
        (readSeq, readCount) > (other.readSeq, other.readCount)
    }
}
