package import RoostAPI

extension Member {
    // derived: columns of m
    static let columns: SQL = "m.user_id, m.role, m.state, m.joined_at, m.joined_seq, m.change_seq"

    // derived: init(reading:)
    init(reading row: inout RowReader) throws {
        try self.init(
            userId: row.value(), role: row.value(), state: row.value(), joinedAt: row.value(), joinedSeq: row.value(),
            changeSeq: row.value())
    }

    /// A membership as all members see it, after a change of it.
    init(_ user: UserID, _ row: Membership, changeSeq: Seq) {
        self.init(
            userId: user, role: row.role, state: row.state, joinedAt: row.joinedAt, joinedSeq: row.joinedSeq, changeSeq: changeSeq)
    }
}

extension Membership {
    // derived: columns of table, given readCount, without channelId and channelSeq, hiddenState as hidden, hiddenOrdinal as hidden_count
    /// The columns of the row itself.
    ///
    /// - Parameters:
    ///   - table: The table's name in the statement.
    ///   - readCount: The read count as the statement computes it, see ``Unread/readCount(of:purgedSeq:)``.
    static func columns(of table: SQL, readCount: SQL) -> SQL {
        """
        \(table).role, \(table).state, \(table).joined_at, \(table).joined_seq, \(table).read_seq, \(readCount),
        \(table).last_read_at, \(table).history_floor, \(table).hidden, \(table).hidden_count, \(table).mention_seq,
        \(table).mention_message, \(table).muted_until, \(table).banned_until, \(table).notifications_muted_until, \(table).user_seq
        """
    }

    // derived: init(reading:)
    init(reading row: inout RowReader, channelId: ChannelID, channelSeq: Seq) throws {
        try self.init(
            channelId: channelId, role: row.value(), state: row.value(), joinedAt: row.value(), joinedSeq: row.value(),
            readSeq: row.value(), readCount: row.value(), lastReadAt: row.value(), historyFloor: row.value(),
            hiddenState: row.value(), hiddenOrdinal: row.value(), mentionSeq: row.value(), mentionMessage: row.value(),
            mutedUntil: row.value(), bannedUntil: row.value(), notificationsMutedUntil: row.value(), channelSeq: channelSeq,
            userSeq: row.value())
    }

    /// - Parameter purgedSeq: The last seq of the channel at which a message was deleted for good.
    static func columns(of table: SQL, purgedSeq: SQL) -> SQL {
        columns(of: table, readCount: Unread.readCount(of: table, purgedSeq: purgedSeq))
    }

    /// The columns that ``init(reading:)`` reads, in its order. A former member learns nothing of the channel's progress, not even its length.
    static let columns: SQL = """
        m.channel_id, CASE WHEN m.state = \(MembershipState.member) THEN h.seq ELSE m.change_seq END, h.is_deleted,
        \(columns(of: "m", purgedSeq: "h.purged_seq"))
        """

    /// A deleted channel has no members, although none of their rows is written.
    init(reading row: inout RowReader) throws {
        let (channel, seq, isDeleted) = (row.identifier(ChannelID.self), row.int64(), row.bool())
        guard let membership = try Membership(of: channel, at: seq, readingIfPresent: &row) else {
            throw DamagedDatabase(what: "a membership without a role")
        }
        self = membership
        if isDeleted { state = .none }
    }

    /// The stored row; nil if a statement found none.
    ///
    /// - Parameter seq: The newest seq of the channel.
    init?(of channel: ChannelID, at seq: Seq, readingIfPresent row: inout RowReader) throws {
        if row.isNull { return nil }
        try self.init(reading: &row, channelId: channel, channelSeq: seq)
    }
}

extension Member: StoredRow {
    /// Who may read a channel may not always list its members. Members themselves always may.
    package static var permission: Permission? { .memberList }

    package static func changed(for request: ChannelChangesRequest) throws -> ChangedRows<Member> {
        let (transaction, channel, after) = (request.transaction, request.channel, request.after)
        let sql: SQL = """
            SELECT \(Member.columns) FROM members m WHERE m.channel_id = \(channel) AND m.change_seq > \(after)
            ORDER BY m.change_seq LIMIT \(request.limit + 1)
            """
        let members = try transaction.rows(sql) { try Member(reading: &$0) }
        guard members.count > request.limit, let last = members.prefix(request.limit).last?.changeSeq else {
            return ChangedRows(members.map { ($0.changeSeq, $0) })
        }
        // The first members of a channel share a seq: a page never ends between rows of the same seq.
        let whole: SQL = """
            SELECT \(Member.columns) FROM members m
            WHERE m.channel_id = \(channel) AND m.change_seq > \(after) AND m.change_seq <= \(last) ORDER BY m.change_seq
            """
        return ChangedRows(try transaction.rows(whole) { try Member(reading: &$0) }.map { ($0.changeSeq, $0) }, upTo: last)
    }

    /// The members' roles in the channel decide what they may read.
    package static func accompany(
        _ rows: inout Rows, of stream: StreamID, after seq: Seq, in context: Context
    ) throws -> [Notice] {
        guard case .channel(let channel) = stream else { return [] }
        return (rows.members ?? []).filter { $0.state == .member }.map { .role($0.userId, channel, $0.role, at: $0.changeSeq) }
    }

    // No row is about a message.
    package static func purge(about message: Seq, in channel: ChannelID, _ transaction: any Transaction) throws {}
}

extension Membership: StoredRow {
    package static func changed(
        for user: UserID, after seq: Seq, limit: Int, in transaction: any Transaction
    ) throws -> ChangedRows<Membership> {
        let sql: SQL = """
            SELECT m.user_seq, \(Membership.columns) FROM members m
            JOIN channel_heads h ON h.channel_id = m.channel_id
            WHERE m.user_id = \(user) AND m.user_seq > \(seq) ORDER BY m.user_seq LIMIT \(limit + 1)
            """
        let stamped = try transaction.rows(sql) { (stamp: $0.int64(), row: try Membership(reading: &$0)) }
        return ChangedRows(stamped, upTo: stamped.count > limit ? stamped[limit - 1].stamp : nil)
    }

    /// Adds, to a membership that began after this position, its channel with its first rows. Every membership gets the user's
    /// capabilities in its channel.
    package static func accompany(
        _ rows: inout Rows, of stream: StreamID, after seq: Seq, in context: Context
    ) throws -> [Notice] {
        guard case .user = stream, let membership = rows[Membership.self]?.first else { return [] }
        let (user, channel) = (context.caller.user, membership.channelId)
        var notices: [Notice] = []
        // Sent for ended memberships too, since a node may lag behind in the channel.
        if membership.historyFloor > 0 { notices.append(.floor(user, channel, membership.historyFloor)) }
        guard membership.state == .member else { return notices }
        // Followers of the user's stream already know older memberships.
        let isNew = try context.transaction.joinedUserSeq(of: user, in: channel) > seq
        if isNew {
            rows.channel = try context.channel(channel)
            notices.append(.joined(user, channel, at: membership.joinedSeq, as: membership.role))
        }
        if let access = try context.transaction.access(to: channel, of: user) {
            rows.ownCapabilities = [channel.rawValue: context.capabilities(in: access)]
            if isNew { rows.append(try context.arrivingRows(in: access, for: user)) }
        }
        return notices
    }

    // No row is about a message.
    package static func purge(about message: Seq, in channel: ChannelID, _ transaction: any Transaction) throws {}
}

extension Transaction {
    /// Returns the position of a user's own stream at which the newest membership in a channel began.
    fileprivate func joinedUserSeq(of user: UserID, in channel: ChannelID) throws -> Seq {
        let sql: SQL = "SELECT joined_user_seq FROM members WHERE channel_id = \(channel) AND user_id = \(user)"
        guard let seq = try first(sql, { $0.int64() }) else { throw ImpossibleState("A member of \(channel) has no row there.") }
        return seq
    }
}

/// The columns of a member's row that a new membership sets, whether it is the user's first in the channel or a later one.
private struct MembershipStart {
    var role: ChannelRole
    var state: MembershipState
    var joinedAt: Timestamp
    var joinedSeq: Seq
    var joinedUserSeq: Seq
    var changeSeq: Seq
    var userSeq: Seq
    var readSeq: Seq
    var readCount: Int
}

extension MembershipStart: BoundRow {
    // derived: columns
    static let columns: SQL = "role, state, joined_at, joined_seq, joined_user_seq, change_seq, user_seq, read_seq, read_count"

    // derived: bind(to:)
    func bind(to values: inout RowValues) throws {
        try values.bind(role)
        try values.bind(state)
        try values.bind(joinedAt)
        try values.bind(joinedSeq)
        try values.bind(joinedUserSeq)
        try values.bind(changeSeq)
        try values.bind(userSeq)
        try values.bind(readSeq)
        try values.bind(readCount)
    }
}

extension Context {
    /// Makes a user a member at a channel's newest change: earlier messages aren't unread for them.
    ///
    /// - Parameter historyFloor: The seq up to which messages stay hidden from them. The floor of an earlier membership is never lowered.
    /// - Returns: The new row. It takes a seq in the user's own stream.
    func writeMember(
        _ user: UserID, as definition: RoleDefinition, of access: ChannelAccess, historyFloor: Seq = 0
    ) throws -> ChannelAccess.MemberRow {
        let (channel, counters) = (access.channelId, access.counters)
        let userSeq = try advanceStream(of: user)
        let start = MembershipStart(
            role: definition.role, state: .member, joinedAt: now, joinedSeq: counters.seq, joinedUserSeq: userSeq,
            changeSeq: counters.seq, userSeq: userSeq, readSeq: counters.seq, readCount: counters.ordinal)
        let floor: SQL =
            "CASE WHEN excluded.history_floor > members.history_floor THEN excluded.history_floor ELSE members.history_floor END"
        // The message that mentioned them may have been changed, deleted or hidden from them while they were away.
        let newestMention: SQL = """
            FROM mentions
            WHERE user_id = \(user) AND channel_id = \(channel) AND mention_seq > (\(floor)) AND seq > (\(floor))
            ORDER BY mention_seq DESC LIMIT 1
            """
        let written = try transaction.first(
            """
            INSERT INTO members (channel_id, user_id, \(MembershipStart.columns), last_sent_seq, history_floor, joined_floor)
            VALUES (\(channel), \(user), \(row: start), \(0), \(historyFloor), \(historyFloor))
            ON CONFLICT (channel_id, user_id) DO UPDATE
            SET (\(MembershipStart.columns)) = (\(row: start)), hidden = 'unhidden', hidden_count = 0, notifications_muted_until = NULL,
                history_floor = \(floor),
                joined_floor = CASE WHEN members.joined_floor > excluded.joined_floor THEN members.joined_floor ELSE excluded.joined_floor END,
                mention_seq = COALESCE((SELECT mention_seq \(newestMention)), 0),
                mention_message = (SELECT message_id \(newestMention))
            RETURNING \(ChannelAccess.StoredMember.writtenColumns)
            """
        ) { row in
            try ChannelAccess.StoredMember(of: channel, at: counters.seq, readingIfPresent: &row)
        }
        guard let stored = written ?? nil else { throw ImpossibleState("A new member of \(channel) has no row there.") }
        return ChannelAccess.MemberRow(stored, as: definition)
    }
}

extension Transaction {
    /// Returns whether a user may join one more channel.
    ///
    /// Deleted channels don't count. They are only checked if there are enough rows for it to matter.
    func hasRoomForChannel(_ user: UserID, max: Int) throws -> Bool {
        let any: SQL = """
            SELECT COUNT(*) FROM (
                SELECT 1 FROM members WHERE user_id = \(user) AND state = \(MembershipState.member) AND is_channel_deleted = 0 LIMIT \(max)) AS counted
            """
        guard try first(any, { $0.int() }) ?? 0 >= max else { return true }
        let living: SQL = """
            SELECT COUNT(*) FROM members m JOIN channel_heads h ON h.channel_id = m.channel_id
            WHERE m.user_id = \(user) AND m.state = \(MembershipState.member) AND m.is_channel_deleted = 0 AND h.is_deleted = 0
            """
        return try first(living, { $0.int() }) ?? 0 < max
    }
}

extension RoostError {
    /// The user is a member of the maximum number of channels.
    ///
    /// - Parameter field: The request field that names the user; nil if there is none.
    static func channelLimit(of user: UserID, _ max: Int, field: String? = nil) -> RoostError {
        RoostError(
            .channelLimit, "The user \(user) is a member of \(max) channels, which is the limit.", field: field, limit: Int64(max))
    }

    /// The channel has the maximum number of members.
    ///
    /// - Parameter field: The request field that names the excess users; nil if there is none.
    static func memberLimit(_ max: Int, field: String? = nil) -> RoostError {
        RoostError(.memberLimit, "The channel has room for \(max) members.", field: field, limit: Int64(max))
    }
}
