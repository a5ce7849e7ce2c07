import RoostAPI

extension Member {
    static let columns: SQL = "m.user_id, m.role, m.state, m.joined_at, m.change_seq"

    init(reading row: inout RowReader) throws {
        self.init(
            userId: row.identifier(), role: try row.enumeration(), state: try row.enumeration(), joinedAt: row.timestamp(),
            changeSeq: row.int64())
    }
}

extension Membership {
    /// The columns in which ``init(reading:)`` expects them. A deleted channel has no members, without a write to any of their rows.
    static let columns: SQL = """
        m.channel_id, m.role, CASE WHEN c.deleted_at IS NULL THEN m.state ELSE 'none' END, m.joined_at, m.joined_seq, m.read_seq,
        m.read_count, m.last_read_at, h.seq
        """

    init(reading row: inout RowReader) throws {
        self.init(
            channelId: row.identifier(), role: try row.enumeration(), state: try row.enumeration(), joinedAt: row.timestamp(),
            joinedSeq: row.int64(), readSeq: row.int64(), readCount: row.int(), lastReadAt: row.optionalTimestamp(),
            channelSeq: row.int64())
    }
}

extension Transaction {
    /// Makes a user a member as of a channel's newest change: what was there before isn't unread to them.
    ///
    /// - Returns: the seq that this takes in the user's own stream.
    func writeMember(
        _ user: UserID, role: ChannelRole, of channel: ChannelID, counters: ChannelCounters, joinedAt: Timestamp
    ) throws
        -> Seq
    {
        let userSeq = try advanceStream(of: user)
        try perform(
            """
            INSERT INTO members (channel_id, user_id, role, state, joined_at, joined_seq, joined_user_seq, change_seq, user_seq,
                                 read_seq, read_count, last_sent_seq)
            VALUES (\(channel), \(user), \(role), \(MembershipState.member), \(joinedAt), \(counters.seq), \(userSeq), \(counters.seq),
                    \(userSeq), \(counters.seq), \(counters.messageCount), \(0))
            ON CONFLICT (channel_id, user_id) DO UPDATE
            SET role = excluded.role, state = excluded.state, joined_at = excluded.joined_at, joined_seq = excluded.joined_seq,
                joined_user_seq = excluded.joined_user_seq, change_seq = excluded.change_seq,
                user_seq = excluded.user_seq, read_seq = excluded.read_seq, read_count = excluded.read_count
            """)
        return userSeq
    }

    /// Throws `channel_limit` when the user is a member of as many channels as one may be.
    func requireRoomForChannel(of user: UserID) throws {
        let sql: SQL = """
            SELECT COUNT(*) FROM members m JOIN channels c ON c.channel_id = m.channel_id
            WHERE m.user_id = \(user) AND m.state = \(MembershipState.member) AND c.deleted_at IS NULL
            """
        let count = try first(sql) { $0.int() } ?? 0
        guard count < Limits.channelsPerUser else {
            throw RoostError(
                .channelLimit, "The user \(user) is a member of \(Limits.channelsPerUser) channels, which is the limit.",
                limit: Int64(Limits.channelsPerUser))
        }
    }
}
