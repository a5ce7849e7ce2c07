import RoostAPI

/// A channel as one caller stands to it: what the permission table asks about, and the numbers that a change moves on.
///
/// It is one indexed read, and leaves out the attributes, so that a message doesn't fetch 100 kB of metadata. Three things take another
/// look-up, and only where they are there: an invitation of who isn't a member, a type and a role that the operator defined.
struct ChannelAccess {
    let channelId: ChannelID
    let type: ChannelType
    /// The type's policy, with what the channel has otherwise.
    var policy: ChannelPolicy
    var isDistinct: Bool
    let isEphemeral: Bool
    var isFrozen: Bool
    var mutedUntil: Timestamp?
    let deletedAt: Timestamp?
    /// The counters as they are now.
    var counters: ChannelCounters
    /// The caller's row, when there is or was one.
    var own: OwnMember?
    /// The caller's invitation while it waits for an answer.
    var invitation: Invitation?
    /// Whether an invitation of the caller was declined or withdrawn. Looked up for who answers one that isn't there any more.
    var hadInvitation = false

    /// The caller's row among the members.
    struct OwnMember {
        var role: ChannelRole
        /// What the role may do.
        var definition: RoleDefinition
        var state = MembershipState.member
        var joinedAt = Timestamp(milliseconds: 0)
        /// The channel's seq at which the stay began.
        var joinedSeq: Seq = 0
        var readSeq: Seq = 0
        var readCount = 0
        var lastReadAt: Timestamp?
        /// The seq of the caller's newest own message in the channel; 0 for none.
        var lastSentSeq: Seq = 0
        var historyFloor: Seq = 0
        var hiddenState = HiddenState.unhidden
        var hiddenMessageCount = 0
        var mutedUntil: Timestamp?
        var bannedUntil: Timestamp?
        /// The channel's seq at which what others see of the row changed last.
        var changeSeq: Seq = 0
        /// The seq of the row's newest change in the caller's own stream.
        var userSeq: Seq = 0
    }

    var isMember: Bool { deletedAt == nil && own?.state == .member }
    /// Whether the caller was a member when the channel was deleted.
    var wasMember: Bool { own?.state == .member }
    var role: ChannelRole? { own?.state == .member ? own?.role : nil }
    /// Messages up to this seq are not for the caller.
    var historyFloor: Seq { wasMember ? own?.historyFloor ?? 0 : 0 }

    /// The caller's membership as the caller sees it. A deleted channel has no members.
    var membership: Membership? {
        own.map { own in
            Membership(
                channelId: channelId, role: own.role, state: deletedAt == nil ? own.state : .none, joinedAt: own.joinedAt,
                joinedSeq: own.joinedSeq, readSeq: own.readSeq, readCount: own.readCount, lastReadAt: own.lastReadAt,
                historyFloor: own.historyFloor, hiddenState: own.hiddenState, hiddenMessageCount: own.hiddenMessageCount,
                mutedUntil: own.mutedUntil, bannedUntil: own.bannedUntil, channelSeq: counters.seq, userSeq: own.userSeq)
        }
    }
}

extension ChannelAccess {
    /// A channel that isn't there yet, as a member of it will stand to it.
    init(creating policy: ChannelPolicy, as role: ChannelRole) {
        let own = RoleDefinition.builtIn(role).map { OwnMember(role: role, definition: $0) }
        let never = Timestamp(milliseconds: 0)
        self.init(
            channelId: "", type: policy.type, policy: policy, isDistinct: false, isEphemeral: false, isFrozen: false,
            mutedUntil: nil,
            deletedAt: nil, counters: ChannelCounters(seq: 0, memberCount: 0, messageCount: 0, lastActivity: never), own: own)
    }
}

extension Transaction {
    /// A channel as a user stands to it, by its id or as `type:id` (ST-03); nil when there is no such channel.
    func access(to channel: ChannelID, of user: UserID) throws -> ChannelAccess? {
        if let access = try accessByID(channel, of: user) { return access }
        guard let alias = channel.alias, let access = try accessByID(alias.channel, of: user), access.type == alias.type else {
            return nil
        }
        return access
    }

    /// A channel as a user stands to it, with what only some permissions ask about.
    func access(to channel: ChannelID, of user: UserID, for permission: Permission) throws -> ChannelAccess? {
        guard var access = try access(to: channel, of: user) else { return nil }
        if permission == .invitationAnswer, !access.isMember, access.invitation == nil {
            let sql: SQL = """
                SELECT 1 FROM invitations
                WHERE channel_id = \(access.channelId) AND user_id = \(user)
                AND state IN (\(InvitationState.declined), \(InvitationState.withdrawn)) LIMIT 1
                """
            access.hadInvitation = try first(sql) { _ in true } ?? false
        }
        return access
    }

    private func accessByID(_ channel: ChannelID, of user: UserID) throws -> ChannelAccess? {
        let sql: SQL = """
            SELECT c.type, c.discovery, c.joining, c.policy, c.is_distinct, c.is_ephemeral, c.is_frozen, c.muted_until, c.deleted_at, \(ChannelCounters.columns),
                   \(ChannelAccess.OwnMember.columns)
            FROM channels c
            JOIN channel_heads h ON h.channel_id = c.channel_id
            LEFT JOIN members m ON m.channel_id = c.channel_id AND m.user_id = \(user)
            WHERE c.channel_id = \(channel)
            """
        let found = try first(sql) { row in
            let type = ChannelType(rawValue: row.string())
            let own = OwnPolicy(discovery: try row.enumeration(), join: try row.enumeration(), changes: try row.optionalJSON())
            var access = ChannelAccess(
                channelId: channel, type: type, policy: ChannelPolicy.placeholder, isDistinct: row.bool(), isEphemeral: row.bool(),
                isFrozen: row.bool(),
                mutedUntil: row.optionalTimestamp(), deletedAt: row.optionalTimestamp(), counters: ChannelCounters(reading: &row))
            if let role = row.optionalString() { access.own = try ChannelAccess.OwnMember(role: role, reading: &row) }
            return (access: access, policy: own)
        }
        guard let found else { return nil }
        var access = found.access
        access.policy = try effectivePolicy(of: access.type, found.policy)
        if let own = access.own, RoleDefinition.builtIn(own.role) == nil { access.own?.definition = try role(own.role) }
        if !access.isMember { access.invitation = try invitation(of: user, to: channel, .pending) }
        return access
    }

    /// What holds in a channel: its type's policy, and over it what is the channel's own.
    func effectivePolicy(of type: ChannelType, _ own: OwnPolicy) throws -> ChannelPolicy {
        guard var policy = try policy(of: type) else { throw DamagedDatabase(what: "the channel type \(type)") }
        policy.discovery = own.discovery
        policy.join = own.join
        if let changes = own.changes { policy = policy.applying(changes) }
        return policy
    }

    /// Writes the counters of a channel as they are after a change.
    func update(_ counters: ChannelCounters, of channel: ChannelID) throws {
        try perform(
            """
            UPDATE channel_heads
            SET seq = \(counters.seq), member_count = \(counters.memberCount), message_count = \(counters.messageCount),
                last_activity = \(counters.lastActivity), last_message_at = \(counters.lastMessageAt),
                list_at = COALESCE(\(counters.lastMessageAt), list_at)
            WHERE channel_id = \(channel)
            """)
    }
}

/// What a channel has of its own policy. Who finds and who joins it stand in columns of their own, since queries look at them.
struct OwnPolicy {
    var discovery: ChannelPolicy.Audience
    var join: ChannelPolicy.Audience
    var changes: PolicyChanges?
}

extension ChannelAccess.OwnMember {
    /// The columns in which ``init(role:reading:)`` expects them, after the role.
    static let columns: SQL = """
        m.role, m.state, m.joined_at, m.joined_seq, m.read_seq, m.read_count, m.last_read_at, m.last_sent_seq, m.history_floor,
        m.hidden, m.hidden_count, m.muted_until, m.banned_until, m.change_seq, m.user_seq
        """

    init(role: String, reading row: inout RowReader) throws {
        let role = ChannelRole(rawValue: role)
        self.init(
            role: role, definition: RoleDefinition.builtIn(role) ?? RoleDefinition(role: role, rank: 0, permissions: []),
            state: try row.enumeration(), joinedAt: row.timestamp(), joinedSeq: row.int64(), readSeq: row.int64(),
            readCount: row.int(), lastReadAt: row.optionalTimestamp(), lastSentSeq: row.int64(), historyFloor: row.int64(),
            hiddenState: try row.enumeration(), hiddenMessageCount: row.int(), mutedUntil: row.optionalTimestamp(),
            bannedUntil: row.optionalTimestamp(), changeSeq: row.int64(), userSeq: row.int64())
    }
}

extension ChannelPolicy {
    /// Stands until the channel's own is looked up.
    fileprivate static let placeholder = presets[0]
}

extension ChannelCounters {
    /// The columns in which ``init(reading:)`` expects them.
    static let columns: SQL = "h.seq, h.member_count, h.message_count, h.last_activity, h.last_message_at"

    init(reading row: inout RowReader) {
        self.init(
            seq: row.int64(), memberCount: row.int(), messageCount: row.int(), lastActivity: row.timestamp(),
            lastMessageAt: row.optionalTimestamp())
    }

    /// Takes the next seq for a durable change made now.
    mutating func advance(at now: Timestamp) -> Seq {
        seq += 1
        lastActivity = max(lastActivity, now)
        return seq
    }
}
