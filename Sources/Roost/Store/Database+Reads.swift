import Foundation
import GRDB
import RoostAPI

extension Database {
    func savedState() throws -> SavedState {
        var saved = SavedState()
        if let row = try Row.fetchOne(self, sql: "SELECT epoch, user_cursor FROM state") {
            saved.epoch = row[0]
            saved.userCursor = row[1]
        }
        let positions = "SELECT channel_id, cursor, window_start, message_count, has_hole FROM positions"
        for row in try Row.fetchAll(self, sql: positions) {
            saved.channels[ChannelID(row[0] as String)] = Position(
                cursor: row[1], windowStart: row[2], messageCount: row[3], hasHole: row[4])
        }
        return saved
    }

    func membership(of channel: ChannelID) throws -> Membership? {
        let statement = try cachedStatement(sql: "SELECT json FROM memberships WHERE channel_id = ?")
        return try Data.fetchOne(statement, arguments: [channel.rawValue]).map { try StoredJSON.decode(from: $0) }
    }

    /// A channel with all that the user has in it and its newest message; nil when it isn't cached.
    func channelView(_ channel: ChannelID) throws -> ChannelView? {
        let sql = """
            SELECT a.json, c.seq, c.member_count, c.message_count, c.ordinal, c.last_activity, c.last_message_at, m.json, k.json,
                   (SELECT json FROM messages WHERE channel_id = ?1 ORDER BY seq DESC LIMIT 1),
                   (SELECT json FROM invitations WHERE channel_id = ?1 AND is_waiting)
            FROM channels c JOIN channel_attributes a ON a.channel_id = c.channel_id
            LEFT JOIN memberships m ON m.channel_id = c.channel_id
            LEFT JOIN capabilities k ON k.channel_id = c.channel_id
            WHERE c.channel_id = ?1
            """
        guard let row = try Row.fetchOne(try cachedStatement(sql: sql), arguments: [channel.rawValue]) else { return nil }
        var channel = try StoredJSON.decode(Channel.self, from: row[0])
        channel.counters = ChannelCounters(
            seq: row[1], memberCount: row[2], messageCount: row[3], ordinal: row[4], lastActivity: Timestamp(milliseconds: row[5]),
            lastMessageAt: (row[6] as Int64?).map(Timestamp.init(milliseconds:)))
        func model<Model: Decodable>(_ column: Int) throws -> Model? {
            try (row[column] as Data?).map { try StoredJSON.decode(Model.self, from: $0) }
        }
        var membership: Membership? = try model(7)
        let capabilities: Capabilities? = try model(8)
        let isMember = membership?.state == .member
        var permissions = capabilities?.now(as: isMember ? membership?.role : nil) ?? []
        if channel.deletedAt != nil {
            // A deleted channel has no members, without a word to any of them.
            membership?.state = .none
            permissions = []
        }
        return ChannelView(
            channel: channel, membership: membership, invitation: try model(10), lastMessage: try model(9),
            ownCapabilities: permissions)
    }

    func user(_ id: UserID) throws -> User? {
        let statement = try cachedStatement(sql: "SELECT json FROM users WHERE user_id = ?")
        return try Data.fetchOne(statement, arguments: [id.rawValue]).map { try StoredJSON.decode(from: $0) }
    }

    /// The members of a channel whose rows changed after a seq, in the order of their changes.
    func members(of channel: ChannelID, changedAfter seq: Seq) throws -> [Member] {
        let statement = try cachedStatement(
            sql: "SELECT json FROM members WHERE channel_id = ? AND change_seq > ? ORDER BY change_seq, user_id")
        return try Data.fetchAll(statement, arguments: [channel.rawValue, seq]).map { try StoredJSON.decode(from: $0) }
    }

    /// The seq up to which a channel's stream is applied; nil for a channel that isn't followed.
    func cursor(of channel: ChannelID) throws -> Seq? {
        try Seq.fetchOne(
            try cachedStatement(sql: "SELECT cursor FROM positions WHERE channel_id = ?"), arguments: [channel.rawValue])
    }

    /// Returns the user's pending invitations, the newest first, each with its channel if that is known here.
    func waitingInvitations() throws -> [(invitation: Invitation, channel: Channel?)] {
        let statement = try cachedStatement(
            sql: """
                SELECT i.json, a.json FROM invitations i LEFT JOIN channel_attributes a ON a.channel_id = i.channel_id
                WHERE i.is_waiting = 1 ORDER BY i.invited_at DESC, i.channel_id DESC
                """)
        return try Row.fetchAll(statement).map { row in
            (try StoredJSON.decode(from: row[0]), try (row[1] as Data?).map { try StoredJSON.decode(from: $0) })
        }
    }

    /// Returns the user's preferences; the defaults if none are known.
    func preferences() throws -> Preferences {
        let statement = try cachedStatement(sql: "SELECT json FROM preferences")
        return try Data.fetchOne(statement).map { try StoredJSON.decode(from: $0) } ?? Preferences()
    }
}
