public import RoostAPI

/// A channel as one user sees it, usually the caller: the facts for the permission table, and the counters that a change advances.
///
/// It takes one indexed read, which leaves out the attributes: a message shouldn't fetch 100 kB of metadata. Three things take
/// another look-up, and only if they exist: a non-member's invitation, and a type or role that the operator defined.
struct ChannelAccess {
    let channelId: ChannelID
    /// The type's policy, with the channel's own differences. It names the type.
    var policy: ChannelPolicy
    var isDistinct: Bool
    let isEphemeral: Bool
    var isFrozen: Bool
    var silencedUntil: Timestamp?
    let deletedAt: Timestamp?
    /// The seq at which one of the channel's attributes last changed.
    let changeSeq: Seq
    /// The current counters.
    var counters: ChannelCounters
    /// The last seq at which a message was deleted for good; 0 for none.
    let purgedSeq: Seq
    /// The kinds of rows in the channel's stream.
    let rowKinds: ChannelRowKinds
    /// The row of the user for whom the access was read, the caller or another, if there is or was one.
    var member: MemberRow?
    /// The user's pending invitation.
    var invitation: Invitation?
    /// Whether an invitation of the user was declined or withdrawn. Looked up when an invitation that is over is answered.
    var hadInvitation = false

    /// A member's row as read. The role's definition can take another look-up: ``Transaction/member(_:)``.
    struct StoredMember {
        let row: Membership
        let lastSentSeq: Seq
        let receiptSeq: Seq
        let changeSeq: Seq
    }

    /// A user's row among the members, and the values derived from it.
    struct MemberRow {
        /// The stored row, even in a deleted channel, which no longer has members.
        var row: Membership
        /// The seq of the user's newest own message in the channel; 0 for none.
        var lastSentSeq: Seq
        /// The read position that others saw before the user marked something as unread; 0 if they never did.
        var receiptSeq: Seq
        /// The role's definition.
        var definition: RoleDefinition
        /// The channel's seq at which the visible part of the row last changed.
        var changeSeq: Seq
        /// Whether others may know the member's read position; nil if that wasn't read with the row.
        var sharesReading: Bool?

        /// Counts a message that the member has sent.
        ///
        /// - Parameter count: 1, or 0 for one that doesn't count as unread.
        mutating func addMessage(at seq: Seq, count: Int) {
            row.readCount += count
            lastSentSeq = seq
        }
    }

    var type: ChannelType { policy.type }
    var isMember: Bool { deletedAt == nil && wasMember }
    /// Whether the user was a member when the channel was deleted.
    var wasMember: Bool { member?.row.state == .member }
    var role: ChannelRole? { wasMember ? member?.row.role : nil }
    /// The seq up to which messages are hidden from the user.
    var historyFloor: Seq { wasMember ? member?.row.historyFloor ?? 0 : 0 }

    /// The user's membership as that user sees it. A deleted channel has no members.
    var membership: Membership? {
        guard var row = member?.row else { return nil }
        if deletedAt != nil { row.state = .none }
        row.channelSeq = counters.seq
        return row
    }

    /// Returns the user's row, for rules that have checked a permission that only members hold.
    func requireMember() throws -> MemberRow {
        guard let member else { throw ImpossibleState("A member of \(channelId) has no row there.") }
        return member
    }

    /// The facts for the permission table.
    var facts: Permissions.Facts {
        Permissions.Facts(
            policy: policy, isDeleted: deletedAt != nil, isFrozen: isFrozen, silencedUntil: silencedUntil,
            own: member.map { member in
                Permissions.Facts.Own(
                    definition: member.definition, isMember: member.row.state == .member, mutedUntil: member.row.mutedUntil,
                    bannedUntil: member.row.bannedUntil)
            }, isInvited: invitation != nil, wasInvited: hadInvitation)
    }
}

extension Transaction {
    /// Returns a channel as a user sees it, by its id or as `type:id` (ST-03); nil if there is no such channel.
    ///
    /// - Parameter marking: Whether to also read the other values that most `reading.mark` operations need, if the member is read alone.
    func access(to channel: ChannelID, of user: UserID, marking: Bool = false) throws -> ChannelAccess? {
        if let access = try accessByID(channel, of: user, marking: marking) { return access }
        guard let alias = channel.alias, let access = try accessByID(alias.channel, of: user, marking: marking),
            access.type == alias.type
        else { return nil }
        return access
    }

    /// Returns a channel as a user sees it, with the facts that only some permissions need.
    func access(to channel: ChannelID, of user: UserID, for permission: Permission) throws -> ChannelAccess? {
        guard var access = try access(to: channel, of: user, marking: permission == .readingMark) else { return nil }
        if permission.row.traits.contains(.afterwards), !access.isMember, access.invitation == nil {
            access.hadInvitation = try hadInvitation(user, to: access.channelId)
        }
        return access
    }

    private func accessByID(_ channel: ChannelID, of user: UserID, marking: Bool) throws -> ChannelAccess? {
        try remembered(channel, of: user) {
            try readAccess(to: channel, of: user)
        } member: { hasPurges in
            try readMember(user, of: channel, hasPurges: hasPurges, marking: marking)
        }
    }

    /// Returns a member's row of a channel; nil for non-members.
    ///
    /// - Parameters:
    ///   - hasPurges: Whether messages of the channel were deleted for good. Only then does a read count depend on more than the member's row.
    ///   - marking: Whether to also read the other values that a mark needs: separate statements would cost more than the row does.
    private func readMember(
        _ user: UserID, of channel: ChannelID, hasPurges: Bool, marking: Bool
    ) throws -> ChannelAccess.MemberRow? {
        let columns = hasPurges ? ChannelAccess.StoredMember.columns : ChannelAccess.StoredMember.unpurgedColumns
        let head: SQL = hasPurges ? "JOIN channel_heads h ON h.channel_id = m.channel_id" : ""
        // With other writers a head is only valid once it is locked.
        let isOnlyWriter = dialect.rowLock == nil
        let besides: SQL = marking ? ", \(isOnlyWriter ? ReadBeforeMark.columns : ReadBeforeMark.columnsWithoutHead)" : ""
        let sql: SQL =
            "SELECT \(columns)\(besides) FROM members m \(head) WHERE m.channel_id = \(channel) AND m.user_id = \(user)"
        let found = try first(sql) { row -> (ChannelAccess.StoredMember, ReadBeforeMark?)? in
            // The memory has the channel's position.
            guard let stored = try ChannelAccess.StoredMember(of: channel, at: 0, readingIfPresent: &row) else { return nil }
            return (stored, marking ? ReadBeforeMark(reading: &row) : nil)
        }
        guard let (stored, besides) = found ?? nil, stored.row.state == .member else { return nil }
        var member = try self.member(stored)
        if let besides {
            member.sharesReading = besides.sharesReading
            if isOnlyWriter { batchMemory?.learn(read: besides.head, of: user) }
        }
        return member
    }

    private func readAccess(to channel: ChannelID, of user: UserID) throws -> ChannelAccess? {
        let found = try first(ChannelAccess.selection(of: channel, for: user)) { row in
            let found = try ChannelAccess.Row(reading: &row)
            return (found, try ChannelAccess.StoredMember(of: channel, at: found.counters.seq, readingIfPresent: &row))
        }
        guard let (row, stored) = found else { return nil }
        return try access(to: channel, row, of: user, stored)
    }

    /// Reads channels as their members see them, for operations that are about to need them. Does nothing if that saves nothing.
    ///
    /// - Parameter messages: The client ids of the messages that they send.
    public func readAhead(_ callers: Set<ChannelCaller>, sending messages: [ChannelCaller: Set<ClientID>]) throws {
        guard callers.count > 1 || messages.values.contains(where: { $0.count > 1 }), let batchMemory, batchMemory.readsAhead else {
            return
        }
        let callers = Array(callers)
        try bypassingBatchMemory {
            var found: [(channel: ChannelID, user: UserID, row: ChannelAccess.Row, stored: ChannelAccess.StoredMember)] = []
            try each(callers.map { ChannelAccess.selection(of: $0.channel, for: $0.user) }) { index, row in
                let (channel, user) = (callers[index].channel, callers[index].user)
                try leavingDamage {
                    let read = try ChannelAccess.Row(reading: &row)
                    if let stored = try ChannelAccess.StoredMember(of: channel, at: read.counters.seq, readingIfPresent: &row) {
                        found.append((channel, user, read, stored))
                    }
                }
            }
            for (channel, user, row, stored) in found where stored.row.state == .member {
                try leavingDamage { batchMemory.learn(try access(to: channel, row, of: user, stored), of: user) }
            }
            // Only in channels where messages were deleted for good.
            try readPurged(messages.filter { batchMemory.hasPurges($0.key.channel) ?? false }, into: batchMemory)
        }
    }

    /// Leaves a damaged row to the operation that needs it; the rest of the batch doesn't.
    private func leavingDamage(_ body: () throws -> Void) throws {
        do { try body() } catch is DamagedDatabase {}
    }

    /// Returns a channel as a user sees it, together with its attributes, in one statement for lists; nil if there is no such channel.
    func accessWithAttributes(
        to channel: ChannelID, of user: UserID, now: Timestamp
    ) throws -> (access: ChannelAccess, channel: Channel)? {
        let found = try first("\(ChannelAccess.selectionWithAttributes) \(user) WHERE c.channel_id = \(channel)") { row in
            let (whole, policy) = try Channel.withPolicy(reading: &row, now: now)
            let found = ChannelAccess.Row(
                of: whole, policy: policy, changeSeq: row.int64(), purgedSeq: row.int64(), rowKindBits: row.int64())
            return (whole, found, try ChannelAccess.StoredMember(of: channel, at: found.counters.seq, readingIfPresent: &row))
        }
        guard let (whole, row, stored) = found else { return nil }
        return (try access(to: channel, row, of: user, stored), whole)
    }

    /// Adds the parts that take another look-up, which can't run while the row is read.
    private func access(
        to channel: ChannelID, _ row: ChannelAccess.Row, of user: UserID, _ stored: ChannelAccess.StoredMember?
    ) throws -> ChannelAccess {
        var access = ChannelAccess(
            of: channel, row, policy: try effectivePolicy(of: row.type, row.policy), try stored.map { try member($0) })
        if !access.isMember { access.invitation = try invitation(of: user, to: channel, .pending) }
        return access
    }

    /// Returns a member with the role's definition. An app's own role is looked up by another statement, which can't run while the row is read.
    func member(_ stored: ChannelAccess.StoredMember) throws -> ChannelAccess.MemberRow {
        ChannelAccess.MemberRow(stored, as: try role(stored.row.role))
    }

    /// Returns a channel's effective policy: its type's, with the channel's own differences.
    func effectivePolicy(of type: ChannelType, _ own: OwnPolicy) throws -> ChannelPolicy {
        guard var policy = try policy(of: type) else { throw DamagedDatabase(what: "the channel type \(type)") }
        policy.discovery = own.discovery
        policy.join = own.join
        if let changes = own.changes { policy = policy.applying(changes) }
        return policy
    }
}

/// A channel's own differences from its type's policy. Discovery and joining have their own columns, since queries use them.
struct OwnPolicy {
    var discovery: ChannelPolicy.Audience
    var join: ChannelPolicy.Audience
    var changes: PolicyChanges?
}

extension OwnPolicy {
    // derived: columns of c, join as joining, changes as policy
    static let columns: SQL = "c.discovery, c.joining, c.policy"

    // derived: init(reading:)
    init(reading row: inout RowReader) throws {
        try self.init(discovery: row.value(), join: row.value(), changes: row.value())
    }
}

extension ChannelAccess {
    /// The statement that every operation in a channel starts with.
    fileprivate static func selection(of channel: ChannelID, for user: UserID) -> SQL {
        "\(selection) \(user) WHERE c.channel_id = \(channel)"
    }

    /// That statement up to the user. Its text is built once.
    private static let selection: SQL = "SELECT \(Row.columns), \(StoredMember.columns) \(source)"

    /// The same with the channel's attributes.
    fileprivate static let selectionWithAttributes: SQL = """
        SELECT \(Channel.columnsWithEntry), c.change_seq, h.purged_seq, h.row_kinds, \(StoredMember.columns) \(source)
        """

    private static let source: SQL = """
        FROM channels c
        JOIN channel_heads h ON h.channel_id = c.channel_id
        LEFT JOIN members m ON m.channel_id = c.channel_id AND m.user_id =
        """

    /// The channel's columns of that statement. The policy is built from them and from the type's.
    fileprivate struct Row {
        let type: ChannelType
        let policy: OwnPolicy  // inline
        let isDistinct, isEphemeral, isFrozen: Bool
        let silencedUntil, deletedAt: Timestamp?
        let changeSeq: Seq
        let counters: ChannelCounters  // inline
        let purgedSeq: Seq
        let rowKindBits: Int64
    }

    fileprivate init(of channel: ChannelID, _ row: Row, policy: ChannelPolicy, _ member: MemberRow?) {
        self.init(
            channelId: channel, policy: policy, isDistinct: row.isDistinct, isEphemeral: row.isEphemeral, isFrozen: row.isFrozen,
            silencedUntil: row.silencedUntil, deletedAt: row.deletedAt, changeSeq: row.changeSeq, counters: row.counters,
            purgedSeq: row.purgedSeq, rowKinds: ChannelRowKinds(bits: row.rowKindBits), member: member)
    }
}

extension ChannelAccess.Row {
    /// Creates the row of a whole channel.
    fileprivate init(of channel: Channel, policy: OwnPolicy, changeSeq: Seq, purgedSeq: Seq, rowKindBits: Int64) {
        self.init(
            type: channel.type, policy: policy, isDistinct: channel.isDistinct, isEphemeral: channel.isEphemeral,
            isFrozen: channel.isFrozen, silencedUntil: channel.mutedUntil, deletedAt: channel.deletedAt, changeSeq: changeSeq,
            counters: channel.counters, purgedSeq: purgedSeq, rowKindBits: rowKindBits)
    }

    // derived: columns of c, silencedUntil as muted_until, purgedSeq as h.purged_seq, rowKindBits as h.row_kinds
    static let columns: SQL = """
        c.type, \(OwnPolicy.columns), c.is_distinct, c.is_ephemeral, c.is_frozen, c.muted_until, c.deleted_at, c.change_seq,
        \(ChannelCounters.columns), h.purged_seq, h.row_kinds
        """

    // derived: init(reading:)
    init(reading row: inout RowReader) throws {
        try self.init(
            type: row.value(), policy: OwnPolicy(reading: &row), isDistinct: row.value(), isEphemeral: row.value(),
            isFrozen: row.value(), silencedUntil: row.value(), deletedAt: row.value(), changeSeq: row.value(),
            counters: ChannelCounters(reading: &row), purgedSeq: row.value(), rowKindBits: row.value())
    }
}

extension ChannelAccess.StoredMember {
    /// The columns of ``init(of:at:readingIfPresent:)``, last in a statement: of `members` as `m`, next to the channel's row of `channel_heads` as `h`.
    static let columns: SQL =
        "\(Membership.columns(of: "m", purgedSeq: "h.purged_seq")), m.last_sent_seq, m.receipt_seq, m.change_seq"

    /// The same columns for a channel in which no message was deleted for good.
    static let unpurgedColumns: SQL = """
        \(Membership.columns(of: "m", readCount: "m.read_count")), m.last_sent_seq, m.receipt_seq, m.change_seq
        """

    /// The same columns for a statement that writes the row at the channel's newest seq, after which no message was deleted.
    static let writtenColumns: SQL = """
        \(Membership.columns(of: "members", readCount: "members.read_count")), members.last_sent_seq, members.receipt_seq,
        members.change_seq
        """

    /// Nil if there is no row.
    ///
    /// - Parameter seq: The newest seq of the channel.
    init?(of channel: ChannelID, at seq: Seq, readingIfPresent row: inout RowReader) throws {
        guard let membership = try Membership(of: channel, at: seq, readingIfPresent: &row) else { return nil }
        self.init(row: membership, lastSentSeq: row.int64(), receiptSeq: row.int64(), changeSeq: row.int64())
    }
}

/// The values of a member `m` that a mark needs in addition to their row.
private struct ReadBeforeMark {
    let sharesReading: Bool
    /// The position of their own stream; 0 before its first change.
    let head: Seq

    static let columns: SQL = "\(SQL.memberSharesReading), \(SQL.memberStreamHead)"
    static let columnsWithoutHead: SQL = "\(SQL.memberSharesReading), 0"

    init(reading row: inout RowReader) {
        sharesReading = row.optionalInt64() != 0
        head = row.optionalInt64() ?? 0
    }
}

extension ChannelAccess.MemberRow {
    /// A member's row with the definition of its role.
    init(_ stored: ChannelAccess.StoredMember, as definition: RoleDefinition) {
        self.init(
            row: stored.row, lastSentSeq: stored.lastSentSeq, receiptSeq: stored.receiptSeq, definition: definition,
            changeSeq: stored.changeSeq)
    }
}

extension ChannelCounters: BoundRow {
    // derived: columns of h
    static let columns: SQL = "h.seq, h.member_count, h.message_count, h.ordinal, h.last_activity, h.last_message_at"

    // derived: bound columns
    static let boundColumns: SQL = "seq, member_count, message_count, ordinal, last_activity, last_message_at"

    // derived: init(reading:)
    init(reading row: inout RowReader) throws {
        try self.init(
            seq: row.value(), memberCount: row.value(), messageCount: row.value(), ordinal: row.value(), lastActivity: row.value(),
            lastMessageAt: row.value())
    }

    // derived: bind(to:)
    func bind(to values: inout RowValues) throws {
        try values.bind(seq)
        try values.bind(memberCount)
        try values.bind(messageCount)
        try values.bind(ordinal)
        try values.bind(lastActivity)
        try values.bind(lastMessageAt)
    }

    /// Takes the next seq for a durable change made now.
    mutating func advance(at now: Timestamp) -> Seq {
        seq += 1
        lastActivity = max(lastActivity, now)
        return seq
    }
}
