import Foundation
import GRDB
import RoostAPI

/// Cached messages of a channel, the newest ones up to a number.
struct CachedMessages: Hashable, Sendable {
    /// In the order of their seq.
    var messages: [Message] = []
    /// Whether there are older ones, in the cache or on the server.
    var hasOlder = false
    /// Whether more than these are cached.
    var hasOlderCached = false
}

extension Database {
    func savedState() throws -> SavedState {
        var saved = SavedState()
        if let row = try Row.fetchOne(self, sql: "SELECT epoch, user_cursor FROM state") {
            saved.epoch = row[0]
            saved.userCursor = row[1]
        }
        for row in try Row.fetchAll(self, sql: "SELECT channel_id, cursor, window_start FROM positions") {
            saved.channels[ChannelID(row[0] as String)] = Position(cursor: row[1], windowStart: row[2])
        }
        return saved
    }

    func membership(of channel: ChannelID) throws -> Membership? {
        let statement = try cachedStatement(sql: "SELECT json FROM memberships WHERE channel_id = ?")
        return try Data.fetchOne(statement, arguments: [channel.rawValue]).map { try StoredJSON.decode(from: $0) }
    }

    /// A channel with the own membership and its newest message; nil when it isn't cached.
    func channelView(_ channel: ChannelID) throws -> ChannelView? {
        try channelViews(where: "WHERE c.channel_id = ?", [channel.rawValue]).first
    }

    /// The channels that the user is a member of and that aren't deleted, the most lately active first.
    func joinedChannels() throws -> [ChannelView] {
        try channelViews(where: "ORDER BY c.last_activity DESC, c.channel_id", [])
            .filter { $0.membership?.state == .member && $0.channel.deletedAt == nil }
    }

    private func channelViews(where clause: String, _ arguments: StatementArguments) throws -> [ChannelView] {
        let sql = """
            SELECT c.json, c.seq, c.member_count, c.message_count, c.last_activity, m.json,
                   (SELECT json FROM messages WHERE channel_id = c.channel_id ORDER BY seq DESC LIMIT 1)
            FROM channels c LEFT JOIN memberships m ON m.channel_id = c.channel_id \(clause)
            """
        return try Row.fetchAll(try cachedStatement(sql: sql), arguments: arguments).map { row in
            var channel = try StoredJSON.decode(Channel.self, from: row[0])
            channel.counters = ChannelCounters(
                seq: row[1], memberCount: row[2], messageCount: row[3], lastActivity: Timestamp(milliseconds: row[4]))
            let membership = try (row[5] as Data?).map { try StoredJSON.decode(Membership.self, from: $0) }
            let lastMessage = try (row[6] as Data?).map { try StoredJSON.decode(Message.self, from: $0) }
            return ChannelView(channel: channel, membership: membership, lastMessage: lastMessage)
        }
    }

    /// The newest messages of a channel: as many as the limit says, and more where it takes more to reach back to `lowest`.
    func messages(of channel: ChannelID, from lowest: Seq? = nil, limit: Int) throws -> CachedMessages {
        let count = try cachedStatement(sql: "SELECT COUNT(*) FROM messages WHERE channel_id = ? AND seq >= ?")
        let reaching = try lowest.flatMap { try Int.fetchOne(count, arguments: [channel.rawValue, $0]) } ?? 0
        let limit = max(limit, reaching)
        let statement = try cachedStatement(sql: "SELECT json FROM messages WHERE channel_id = ? ORDER BY seq DESC LIMIT ?")
        let rows = try Data.fetchAll(statement, arguments: [channel.rawValue, limit + 1])
        let messages = try rows.prefix(limit).reversed().map { try StoredJSON.decode(Message.self, from: $0) }
        let position = try cachedStatement(sql: "SELECT window_start FROM positions WHERE channel_id = ?")
        let windowStart = try Seq.fetchOne(position, arguments: [channel.rawValue]) ?? 0
        return CachedMessages(
            messages: messages, hasOlder: rows.count > limit || windowStart > 0, hasOlderCached: rows.count > limit)
    }

    func user(_ id: UserID) throws -> User? {
        let statement = try cachedStatement(sql: "SELECT json FROM users WHERE user_id = ?")
        return try Data.fetchOne(statement, arguments: [id.rawValue]).map { try StoredJSON.decode(from: $0) }
    }
}
