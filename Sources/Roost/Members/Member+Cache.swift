import Foundation
import GRDB
import RoostAPI

extension Member: CachedRow {
    static let schema = """
        CREATE TABLE members (
            channel_id TEXT NOT NULL, user_id TEXT NOT NULL, change_seq INTEGER NOT NULL, json BLOB NOT NULL,
            PRIMARY KEY (channel_id, user_id)
        ) WITHOUT ROWID;
        CREATE INDEX members_changed ON members (channel_id, change_seq);
        """

    static func save(_ rows: [Member], of stream: StreamID, as user: UserID, in database: Database) throws {
        guard case .channel(let channel) = stream else { return }
        for member in rows {
            try database.run(
                """
                INSERT INTO members (channel_id, user_id, change_seq, json) VALUES (?, ?, ?, ?)
                ON CONFLICT (channel_id, user_id) DO UPDATE SET change_seq = excluded.change_seq, json = excluded.json
                WHERE excluded.change_seq >= change_seq
                """, [channel.rawValue, member.userId.rawValue, member.changeSeq, try StoredJSON.encode(member)])
        }
    }

    static func forget(messages: ClosedRange<Seq>, in channel: ChannelID, _ database: Database) throws {}

    static func note(_ rows: [Member], of stream: StreamID, in change: inout StoreChange) {
        if case .channel(let channel) = stream { change.members.insert(channel) }
    }
}

/// The user's own memberships. A list of channels reads the index of `memberships`: it is narrow, and the JSON is stored elsewhere.
extension Membership: CachedRow {
    static let schema = """
        CREATE TABLE memberships (
            channel_id TEXT PRIMARY KEY NOT NULL, is_member INTEGER NOT NULL, read_count INTEGER NOT NULL, hidden TEXT NOT NULL,
            hidden_ordinal INTEGER NOT NULL, history_floor INTEGER NOT NULL, revision INTEGER NOT NULL, json BLOB NOT NULL
        ) WITHOUT ROWID;
        CREATE INDEX memberships_listed ON memberships (is_member, channel_id, read_count, hidden, hidden_ordinal);
        """

    static func save(_ rows: [Membership], of stream: StreamID, as user: UserID, in database: Database) throws {
        for membership in rows { try save(membership, as: user, in: database) }
    }

    private static func save(_ membership: Membership, as user: UserID, in database: Database) throws {
        let channel = membership.channelId
        let followed = try database.followedMessages(in: channel, after: membership.channelSeq)
        let purged = try database.purges(in: channel, after: membership.channelSeq)
        let membership = Unread.bringUp(membership, as: user, with: followed, purged)
        if let stored = try database.membership(of: channel), stored.isNewer(than: membership) { return }
        try database.replace(membership)
        if membership.state != .member {
            try database.forgetCapabilities(in: channel)
        }
    }

    /// A membership outlives its channel's rows: it says that it ended.
    static func forget(_ channel: ChannelID, as user: UserID, in database: Database) throws {}
    static func forget(messages: ClosedRange<Seq>, in channel: ChannelID, _ database: Database) throws {}

    static func note(_ rows: [Membership], of stream: StreamID, in change: inout StoreChange) {
        for membership in rows {
            change.channels.insert(membership.channelId)
            change.memberships.insert(membership.channelId)
        }
    }

    /// Returns whether another one is older than this. Of two with one stamp, the one with the higher count is from a later position of the
    /// channel.
    func isNewer(than other: Membership) -> Bool {
        (userSeq, readCount) > (other.userSeq, other.readCount)
    }
}

extension Database {
    /// The members of a channel whose rows changed after a seq, in the order of their changes.
    func members(of channel: ChannelID, changedAfter seq: Seq) throws -> [Member] {
        let statement = try cachedStatement(
            sql: "SELECT json FROM members WHERE channel_id = ? AND change_seq > ? ORDER BY change_seq, user_id")
        return try Data.fetchAll(statement, arguments: [channel.rawValue, seq]).map { try StoredJSON.decode(from: $0) }
    }

    /// The user's membership as it is shown, with the user's operations on their way.
    func shownMembership(of channel: ChannelID) throws -> Membership? {
        let statement = try cachedStatement(sql: "SELECT json FROM memberships WHERE channel_id = ?")
        return try Data.fetchOne(statement, arguments: [channel.rawValue]).map { try StoredJSON.decode(from: $0) }
    }

    /// The user's own membership, current or former, as the server has it.
    func membership(of channel: ChannelID) throws -> Membership? {
        let statement = try cachedStatement(
            sql: """
                SELECT COALESCE((SELECT server_row FROM overlays WHERE channel_id = ?1), json) FROM memberships
                WHERE channel_id = ?1
                """)
        return try Data.fetchOne(statement, arguments: [channel.rawValue]).map { try StoredJSON.decode(from: $0) }
    }

    /// Puts the user's own membership in the place of the one that is there. Readers see it under the user's operations on their way.
    func replace(_ membership: Membership) throws {
        let membership = try shown(membership)
        try run(
            """
            INSERT OR REPLACE INTO memberships
                (channel_id, is_member, read_count, hidden, hidden_ordinal, history_floor, revision, json)
            VALUES (?, ?, ?, ?, ?, ?, random(), ?)
            """,
            [
                membership.channelId.rawValue, membership.state == .member, membership.readCount, membership.hiddenState.rawValue,
                membership.hiddenOrdinal, membership.historyFloor, try StoredJSON.encode(membership),
            ])
    }

    /// The messages after a seq, up to where the channel is followed.
    fileprivate func followedMessages(in channel: ChannelID, after seq: Seq) throws -> [Message] {
        let statement = try cachedStatement(
            sql: """
                SELECT json FROM messages
                WHERE channel_id = ?1 AND seq > ?2 AND seq <= (SELECT cursor FROM positions WHERE channel_id = ?1)
                """)
        return try Data.fetchAll(statement, arguments: [channel.rawValue, seq]).map {
            try StoredJSON.decode(Message.self, from: $0)
        }
    }
}

extension StoreWrite {
    /// Replaces an older own membership: an answer may be older than an event that overtook it (I8). Messages that it conceals are deleted;
    /// when it ends, the user's permissions in the channel are too.
    static func membership(_ membership: Membership) -> StoreWrite { .rows(Rows([membership]), of: .channel(membership.channelId)) }
}
