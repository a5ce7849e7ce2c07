import RoostAPI

/// A channel as one caller stands to it: what the permission table asks about, and the numbers that a change moves on.
///
/// It is one indexed read, and leaves out the attributes, so that a message doesn't fetch 100 kB of metadata.
struct ChannelAccess {
    let channelId: ChannelID
    let policy: ChannelPolicy
    let deletedAt: Timestamp?
    /// The counters as they are now.
    var counters: ChannelCounters
    /// The caller's row, when there is or was one.
    var own: OwnMember?

    /// The caller's row among the members.
    struct OwnMember {
        let role: ChannelRole
        let state: MembershipState
        let joinedAt: Timestamp
        /// The channel's seq at which the stay began.
        let joinedSeq: Seq
        var readSeq: Seq
        var readCount: Int
        var lastReadAt: Timestamp?
        /// The seq of the caller's newest own message in the channel; 0 for none.
        let lastSentSeq: Seq
    }

    var isMember: Bool { deletedAt == nil && own?.state == .member }
    /// Whether the caller was a member when the channel was deleted.
    var wasMember: Bool { own?.state == .member }
    var role: ChannelRole? { own?.state == .member ? own?.role : nil }

    /// The caller's membership as the caller sees it. A deleted channel has no members.
    var membership: Membership? {
        own.map { own in
            Membership(
                channelId: channelId, role: own.role, state: deletedAt == nil ? own.state : .none, joinedAt: own.joinedAt,
                joinedSeq: own.joinedSeq, readSeq: own.readSeq, readCount: own.readCount, lastReadAt: own.lastReadAt,
                channelSeq: counters.seq)
        }
    }
}

extension Transaction {
    /// A channel as a user stands to it; nil when there is no such channel.
    func access(to channel: ChannelID, of user: UserID) throws -> ChannelAccess? {
        let sql: SQL = """
            SELECT c.type, c.deleted_at, h.seq, h.member_count, h.message_count, h.last_activity, m.role, m.state, m.joined_at,
                   m.joined_seq, m.read_seq, m.read_count, m.last_read_at, m.last_sent_seq
            FROM channels c
            JOIN channel_heads h ON h.channel_id = c.channel_id
            LEFT JOIN members m ON m.channel_id = c.channel_id AND m.user_id = \(user)
            WHERE c.channel_id = \(channel)
            """
        return try first(sql) { row in
            let type = ChannelType(rawValue: row.string())
            guard let policy = ChannelPolicy.named(type) else { throw DamagedDatabase(what: "the channel type \(type)") }
            let deletedAt = row.optionalTimestamp()
            let counters = ChannelCounters(reading: &row)
            var own: ChannelAccess.OwnMember?
            if let role = row.optionalString() {
                guard let role = ChannelRole(rawValue: role) else { throw DamagedDatabase(what: "the role \(role)") }
                own = ChannelAccess.OwnMember(
                    role: role, state: try row.enumeration(), joinedAt: row.timestamp(), joinedSeq: row.int64(),
                    readSeq: row.int64(), readCount: row.int(),
                    lastReadAt: row.optionalTimestamp(), lastSentSeq: row.int64())
            }
            return ChannelAccess(channelId: channel, policy: policy, deletedAt: deletedAt, counters: counters, own: own)
        }
    }

    /// Writes the counters of a channel as they are after a change.
    func update(_ counters: ChannelCounters, of channel: ChannelID) throws {
        try perform(
            """
            UPDATE channel_heads
            SET seq = \(counters.seq), member_count = \(counters.memberCount), message_count = \(counters.messageCount),
                last_activity = \(counters.lastActivity)
            WHERE channel_id = \(channel)
            """)
    }
}

extension ChannelCounters {
    /// The columns in which ``init(reading:)`` expects them.
    static let columns: SQL = "h.seq, h.member_count, h.message_count, h.last_activity"

    init(reading row: inout RowReader) {
        self.init(seq: row.int64(), memberCount: row.int(), messageCount: row.int(), lastActivity: row.timestamp())
    }

    /// Takes the next seq for a durable change made now.
    mutating func advance(at now: Timestamp) -> Seq {
        seq += 1
        lastActivity = max(lastActivity, now)
        return seq
    }
}
