import Foundation
import GRDB
import RoostAPI

extension Member: CachedRow {
    static let schema = """
        CREATE TABLE members (channel_id, \(Member.cacheColumns), PRIMARY KEY (channel_id, user_id)) WITHOUT ROWID;
        CREATE INDEX members_changed ON members (channel_id, change_seq);
        """

    static func save(_ rows: [Member], of stream: StreamID, as user: UserID, in database: Database) throws {
        guard case .channel(let channel) = stream else { return }
        for member in rows {
            try database.run(upsert) { row in
                try row.put(channel)
                try row.put(member)
            }
        }
    }

    private static let upsert = """
        INSERT INTO members (channel_id, \(Member.cacheColumns)) VALUES (?, \(Member.cacheColumns.placeholders))
        ON CONFLICT (channel_id, user_id) DO UPDATE SET \(Member.cacheColumns.replaced) WHERE excluded.change_seq >= change_seq
        """

    static func forget(messages: ClosedRange<Seq>, in channel: ChannelID, _ database: Database) throws {}

    static func note(_ rows: [Member], of stream: StreamID, in change: inout StoreChange) {
        if case .channel(let channel) = stream { change.members.insert(channel) }
    }
}

extension Member: CachedModel {
    // derived: cache columns
    static let cacheColumns: CacheColumns = "user_id, role, state, joined_at, joined_seq, change_seq"

    // derived: init(cached:)
    init(cached row: inout CacheReader) throws {
        try self.init(
            userId: row.value(), role: row.value(), state: row.value(), joinedAt: row.value(), joinedSeq: row.value(),
            changeSeq: row.value())
    }

    // derived: cache(in:)
    func cache(in row: inout CacheWriter) throws {
        try row.put(userId)
        try row.put(role)
        try row.put(state)
        try row.put(joinedAt)
        try row.put(joinedSeq)
        try row.put(changeSeq)
    }
}

extension Rows {
    /// The users whose member rows are included.
    var changedMembers: [UserID] { members?.map(\.userId) ?? [] }
}

/// The user's own memberships. A list of channels reads the index of `memberships`, which is narrow.
extension Membership: CachedRow {
    static let schema = """
        CREATE TABLE memberships (\(Membership.cacheColumns), is_member, PRIMARY KEY (channel_id));
        CREATE INDEX memberships_listed ON memberships (
            is_member, channel_id, read_count, hidden_state, hidden_ordinal, notifications_muted_until
        );
        """

    static func save(_ rows: [Membership], of stream: StreamID, as user: UserID, in database: Database) throws {
        for membership in rows { try save(membership, as: user, in: database) }
    }

    private static func save(_ membership: Membership, as user: UserID, in database: Database) throws {
        let channel = membership.channelId
        let membership = try database.broughtUp(membership, as: user)
        if let stored = try database.membership(of: channel) {
            if try stored == membership && database.overlay(of: channel) == nil { return }
            if stored.isNewer(than: membership) { return }
        }
        try database.replace(membership)
        if membership.state == .none {
            try database.forgetCapabilities(in: channel)
        }
    }

    /// A membership outlives its channel's rows: it records that it ended.
    static func forget(_ channel: ChannelID, as user: UserID, in database: Database) throws {}
    static func forget(messages: ClosedRange<Seq>, in channel: ChannelID, _ database: Database) throws {}

    static func note(_ rows: [Membership], of stream: StreamID, in change: inout StoreChange) {
        for membership in rows {
            change.channels.insert(membership.channelId)
            change.memberships.insert(membership.channelId)
        }
    }

    /// Whether this membership is newer than another. Of two with the same stamp, the one with the higher count is from a later position of the
    /// channel.
    func isNewer(than other: Membership) -> Bool {
        (userSeq, readCount) > (other.userSeq, other.readCount)
    }
}

extension Membership: CachedModel {
    // derived: cache columns
    static let cacheColumns: CacheColumns = """
        channel_id, role, state, joined_at, joined_seq, read_seq, read_count, last_read_at, history_floor, hidden_state,
        hidden_ordinal, mention_seq, mention_message, muted_until, banned_until, notifications_muted_until, channel_seq, user_seq
        """

    // derived: init(cached:)
    init(cached row: inout CacheReader) throws {
        try self.init(
            channelId: row.value(), role: row.value(), state: row.value(), joinedAt: row.value(), joinedSeq: row.value(),
            readSeq: row.value(), readCount: row.value(), lastReadAt: row.value(), historyFloor: row.value(),
            hiddenState: row.value(), hiddenOrdinal: row.value(), mentionSeq: row.value(), mentionMessage: row.value(),
            mutedUntil: row.value(), bannedUntil: row.value(), notificationsMutedUntil: row.value(), channelSeq: row.value(),
            userSeq: row.value())
    }

    // derived: cache(in:)
    func cache(in row: inout CacheWriter) throws {
        try row.put(channelId)
        try row.put(role)
        try row.put(state)
        try row.put(joinedAt)
        try row.put(joinedSeq)
        try row.put(readSeq)
        try row.put(readCount)
        try row.put(lastReadAt)
        try row.put(historyFloor)
        try row.put(hiddenState)
        try row.put(hiddenOrdinal)
        try row.put(mentionSeq)
        try row.put(mentionMessage)
        try row.put(mutedUntil)
        try row.put(bannedUntil)
        try row.put(notificationsMutedUntil)
        try row.put(channelSeq)
        try row.put(userSeq)
    }
}

extension Database {
    /// The members of a channel whose rows changed after a seq, in the order of the changes.
    func members(of channel: ChannelID, changedAfter seq: Seq) throws -> [Member] {
        let sql = """
            SELECT \(Member.cacheColumns) FROM members WHERE channel_id = ? AND change_seq > ? ORDER BY change_seq, user_id
            """
        return try models(sql, [channel.rawValue, seq])
    }

    /// The user's own membership, current or former, as last received from the server.
    func membership(of channel: ChannelID) throws -> Membership? {
        // While an operation is pending, the overlay has the server's version.
        try first(Self.queryOfServersMembership, [channel]) { row in
            let said: Data? = try row.value()
            return try said.map { try StoredJSON.decode(from: $0) } ?? Membership(cached: &row)
        }
    }

    private static let queryOfServersMembership = """
        SELECT o.server_row, \(Membership.cacheColumns.of("m"))
        FROM memberships m LEFT JOIN overlays o ON o.channel_id = m.channel_id WHERE m.channel_id = ?
        """

    /// The same including the user's pending operations, as lists show it.
    func shownMembership(of channel: ChannelID) throws -> Membership? { try model(Self.queryOfMembership, [channel.rawValue]) }

    /// Replaces the user's own membership. Readers see it with the user's pending operations applied.
    func replace(_ membership: Membership) throws {
        let membership = try shown(membership)
        try run(Self.replacementOfMembership) { row in
            try row.put(membership)
            try row.put(membership.state == .member)
        }
    }

    private static let queryOfMembership = "SELECT \(Membership.cacheColumns) FROM memberships WHERE channel_id = ?"
    private static let replacementOfMembership = """
        INSERT OR REPLACE INTO memberships (\(Membership.cacheColumns), is_member)
        VALUES (\(Membership.cacheColumns.placeholders), ?)
        """

    /// A membership brought up to the position of its channel, which may have been followed further.
    fileprivate func broughtUp(_ membership: Membership, as user: UserID) throws -> Membership {
        let channel = membership.channelId
        guard let cursor = try cursor(of: channel), cursor > membership.channelSeq else { return membership }
        let own: [Message] = try models(Self.queryOfOwn, [channel.rawValue, membership.channelSeq, cursor])
        return Unread.advancing(
            membership, as: user, with: own, try purges(in: channel, after: membership.channelSeq, upTo: cursor))
    }

    /// Only the user's own messages count. The plus makes SQLite find them by the range of seqs, instead of going through all of the user's messages
    /// in the channel.
    private static let queryOfOwn = """
        SELECT \(Message.cacheColumns) FROM messages WHERE channel_id = ? AND seq > ? AND seq <= ? AND +is_own = 1
        """
}

extension StoreWrite {
    /// Replaces an older own membership: an answer may be older than an event that overtook it (I8). Messages that it conceals are deleted; when it
    /// ends, so are the user's permissions in the channel.
    static func membership(_ membership: Membership) -> StoreWrite { .rows(Rows([membership]), of: .channel(membership.channelId)) }
}

extension Rows {
    /// The users whose rows say that they are no longer members.
    var leavers: [UserID] { (members ?? []).filter { $0.state == .none }.map(\.userId) }
}
