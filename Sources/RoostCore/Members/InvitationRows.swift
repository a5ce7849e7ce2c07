package import RoostAPI

extension Invitation: BoundRow {
    // derived: columns of i, inviter as inviter_id
    static let columns: SQL = "i.channel_id, i.user_id, i.inviter_id, i.welcome, i.state, i.invited_at, i.ended_at, i.revision"

    // derived: bound columns
    static let boundColumns: SQL = "channel_id, user_id, inviter_id, welcome, state, invited_at, ended_at, revision"

    // derived: init(reading:)
    init(reading row: inout RowReader) throws {
        try self.init(
            channelId: row.value(), userId: row.value(), inviter: row.value(), welcome: row.value(), state: row.value(),
            invitedAt: row.value(), endedAt: row.value(), revision: row.value())
    }

    // derived: bind(to:)
    func bind(to values: inout RowValues) throws {
        try values.bind(channelId)
        try values.bind(userId)
        try values.bind(inviter)
        try values.bind(welcome)
        try values.bind(state)
        try values.bind(invitedAt)
        try values.bind(endedAt)
        try values.bind(revision)
    }
}

extension Transaction {
    /// Returns a user's invitation to a channel, if it is in this state.
    func invitation(of user: UserID, to channel: ChannelID, _ state: InvitationState) throws -> Invitation? {
        let sql: SQL = """
            SELECT \(Invitation.columns) FROM invitations i
            WHERE i.channel_id = \(channel) AND i.user_id = \(user) AND i.state = \(state)
            """
        return try first(sql) { try Invitation(reading: &$0) }
    }

    /// The pending invitations to a channel, ordered by user.
    func pendingInvitations(to channel: ChannelID) throws -> [Invitation] {
        let sql: SQL = """
            SELECT \(Invitation.columns) FROM invitations i WHERE i.channel_id = \(channel) AND i.state = \(InvitationState.pending)
            ORDER BY i.user_id
            """
        return try rows(sql) { try Invitation(reading: &$0) }
    }

    /// Whether an invitation of the user was declined or withdrawn.
    func hadInvitation(_ user: UserID, to channel: ChannelID) throws -> Bool {
        let sql: SQL = """
            SELECT 1 FROM invitations
            WHERE channel_id = \(channel) AND user_id = \(user)
            AND state IN (\(InvitationState.declined), \(InvitationState.withdrawn)) LIMIT 1
            """
        return try first(sql) { _ in true } ?? false
    }

    /// The members of a channel and the users with a pending invitation. A user may be listed twice.
    func membersAndInvited(of channel: ChannelID) throws -> [UserID] {
        let sql: SQL = """
            SELECT user_id FROM members WHERE channel_id = \(channel) AND state = \(MembershipState.member)
            UNION ALL
            SELECT user_id FROM invitations WHERE channel_id = \(channel) AND state = \(InvitationState.pending)
            """
        return try rows(sql) { $0.identifier() }
    }
}

/// The seqs of an invitation's newest change in the streams that carry it; 0 in the channel's if its members don't get invitations.
struct InvitationStamps {
    var channel: Seq
    var user: Seq
    var inviter: Seq
}

extension InvitationStamps: BoundRow {
    // derived: columns, channel as channel_seq, user as user_seq, inviter as inviter_seq
    static let columns: SQL = "channel_seq, user_seq, inviter_seq"

    // derived: bind(to:)
    func bind(to values: inout RowValues) throws {
        try values.bind(channel)
        try values.bind(user)
        try values.bind(inviter)
    }
}

extension Context {
    /// Writes an invitation. The first one that a channel's members get is recorded in the channel's head.
    ///
    /// - Parameters:
    ///   - role: The role that accepting gives. It is the one from when the invitation was sent.
    ///   - place: The place in the channel's list (`invited_seq`), above all earlier ones. Only a new invitation takes one.
    func write(
        _ invitation: Invitation, in access: ChannelAccess, role: ChannelRole = .member, place: Int64 = 0, stamps: InvitationStamps
    ) throws {
        if stamps.channel > 0, !access.rowKinds.mayContain(Invitation.self) {
            try noteRows(of: Invitation.self, in: access.channelId)
        }
        try transaction.perform(
            """
            INSERT INTO invitations (\(Invitation.boundColumns), \(InvitationStamps.columns), role, invited_seq)
            VALUES (\(row: invitation), \(row: stamps), \(role), \(place))
            ON CONFLICT (channel_id, user_id, inviter_id) DO UPDATE
            SET (\(Invitation.boundColumns)) = (\(row: invitation)), (\(InvitationStamps.columns)) = (\(row: stamps)),
                role = CASE WHEN excluded.state = 'pending' THEN excluded.role ELSE invitations.role END,
                invited_seq = CASE WHEN excluded.state = 'pending' THEN excluded.invited_seq ELSE invitations.invited_seq END
            """)
    }
}

extension Transaction {
    /// Returns the revision of the invitation of one user by another; 0 for none.
    func lastRevision(of user: UserID, from inviter: UserID, to channel: ChannelID) throws -> Int {
        let sql: SQL = """
            SELECT revision FROM invitations WHERE channel_id = \(channel) AND user_id = \(user) AND inviter_id = \(inviter)
            """
        return try first(sql) { $0.int() } ?? 0
    }

    /// Returns the role that accepting gives.
    func role(of invitation: Invitation) throws -> ChannelRole {
        let sql: SQL = """
            SELECT role FROM invitations
            WHERE channel_id = \(invitation.channelId) AND user_id = \(invitation.userId) AND inviter_id = \(invitation.inviter)
            """
        guard let role = try first(sql, { ChannelRole(rawValue: $0.string()) }) else { throw ImpossibleState.missing(invitation) }
        return role
    }

    /// Returns the position of the inviter's own stream at which the invitation last changed.
    func inviterSeq(of invitation: Invitation) throws -> Seq {
        let sql: SQL = """
            SELECT inviter_seq FROM invitations
            WHERE channel_id = \(invitation.channelId) AND user_id = \(invitation.userId) AND inviter_id = \(invitation.inviter)
            """
        guard let seq = try first(sql, { $0.int64() }) else { throw ImpossibleState.missing(invitation) }
        return seq
    }

    /// Returns the number of pending invitations to a channel, counted up to the limit.
    func pendingInvitationCount(into channel: ChannelID) throws -> Int {
        let sql: SQL = """
            SELECT COUNT(*) FROM (SELECT 1 FROM invitations WHERE channel_id = \(channel) AND state = \(InvitationState.pending)
                                  LIMIT \(Limits.pendingInvitationsPerChannel)) AS counted
            """
        return try first(sql) { $0.int() } ?? 0
    }

    /// Returns the number of a user's pending invitations, counted up to the limit.
    func pendingInvitationCount(of user: UserID) throws -> Int {
        let sql: SQL = """
            SELECT COUNT(*) FROM (SELECT 1 FROM invitations WHERE user_id = \(user) AND state = \(InvitationState.pending)
                                  LIMIT \(Limits.pendingInvitationsPerUser)) AS counted
            """
        return try first(sql) { $0.int() } ?? 0
    }
}

extension ImpossibleState {
    fileprivate static func missing(_ invitation: Invitation) -> ImpossibleState {
        ImpossibleState("The invitation of \(invitation.userId) to \(invitation.channelId) by \(invitation.inviter) has no row.")
    }
}

extension Invitation: StoredRow {
    package static var permission: Permission? { .invitationList }
    /// As in the step `0013 kinds of rows`.
    package static let headBit: Int64? = 1

    /// Returns the changed invitations that the channel's members get. A page has a limit in bytes, too, as in a user's own stream.
    package static func changed(for request: ChannelChangesRequest) throws -> ChangedRows<Invitation> {
        let (transaction, channel, after) = (request.transaction, request.channel, request.after)
        let sql: SQL = """
            SELECT i.channel_seq, \(Invitation.columns) FROM invitations i
            WHERE i.channel_id = \(channel) AND i.channel_seq > \(after) ORDER BY i.channel_seq LIMIT \(request.limit + 1)
            """
        let stamped = try transaction.rows(sql) { (stamp: $0.int64(), row: try Invitation(reading: &$0)) }
        guard stamped.count > request.limit, let last = stamped.prefix(request.limit).last?.stamp else {
            return ChangedRows(stamped, upTo: pageEnd(of: stamped, sizeBytesMax: request.sizeBytesMax))
        }
        // The invitations of one call share a seq: a page never ends between rows of the same seq.
        let whole: SQL = """
            SELECT i.channel_seq, \(Invitation.columns) FROM invitations i
            WHERE i.channel_id = \(channel) AND i.channel_seq > \(after) AND i.channel_seq <= \(last) ORDER BY i.channel_seq
            """
        let complete = try transaction.rows(whole) { (stamp: $0.int64(), row: try Invitation(reading: &$0)) }
        return ChangedRows(complete, upTo: pageEnd(of: complete, sizeBytesMax: request.sizeBytesMax) ?? last)
    }

    /// Returns the changed invitations to and by the user. With its text an invitation can take several thousand bytes, so a
    /// page also has a limit in bytes. A node that fetches them for missed events asks without a limit, and gets all of them.
    package static func changed(
        for user: UserID, after seq: Seq, limit: Int, in transaction: any Transaction
    ) throws -> ChangedRows<Invitation> {
        let received: SQL = """
            SELECT i.user_seq, \(Invitation.columns) FROM invitations i WHERE i.user_id = \(user) AND i.user_seq > \(seq)
            ORDER BY i.user_seq LIMIT \(limit + 1)
            """
        let sent: SQL = """
            SELECT i.inviter_seq, \(Invitation.columns) FROM invitations i WHERE i.inviter_id = \(user) AND i.inviter_seq > \(seq)
            ORDER BY i.inviter_seq LIMIT \(limit + invitationsPerStamp)
            """
        var (stamped, upTo): ([(stamp: Seq, row: Invitation)], Seq?) = ([], nil)
        for (sql, rowsMax) in [(received, limit + 1), (sent, limit + invitationsPerStamp)] {
            let part = try transaction.rows(sql) { (stamp: $0.int64(), row: try Invitation(reading: &$0)) }
            // The stamp of a full part's last row may be incomplete. All earlier stamps are complete, since one call writes no more than that.
            if part.count == rowsMax, let last = part.last?.stamp { upTo = min(upTo ?? .max, last - 1) }
            stamped += part
        }
        stamped.sort { $0.stamp < $1.stamp }
        let sizeBytesMax = limit > Limits.changesPage.max ? Int.max : Limits.pageContentBytes
        if let end = pageEnd(of: stamped, sizeBytesMax: sizeBytesMax) { upTo = min(upTo ?? .max, end) }
        return ChangedRows(stamped, upTo: upTo)
    }

    /// Returns the position at which a page ends before its invitations take more bytes than this; nil if all of them fit. All
    /// rows of a stamp are sent together, and a page has those of at least one stamp.
    ///
    /// - Parameter stamped: The invitations in the order of their stamps.
    private static func pageEnd(of stamped: [(stamp: Seq, row: Invitation)], sizeBytesMax: Int) -> Seq? {
        var sizeBytes = 0
        for (stamp, row) in stamped {
            sizeBytes += row.contentSizeBytes
            if sizeBytes > sizeBytesMax, let first = stamped.first?.stamp, stamp > first { return stamp - 1 }
        }
        return nil
    }

    /// The maximum number of invitations that one call sends, all with one seq of the inviter: a channel is created with users and operators.
    private static var invitationsPerStamp: Int { 2 * Limits.membersPerCall }

    /// Adds the summary of the channel to an invitation for the user.
    package static func accompany(
        _ rows: inout Rows, of stream: StreamID, after seq: Seq, in context: Context
    ) throws -> [Notice] {
        guard case .user = stream, let invitation = rows[Invitation.self]?.first, invitation.userId == context.caller.user,
            invitation.state == .pending,
            rows.channel == nil
        else { return [] }
        rows.channel = try context.channel(invitation.channelId)
        return []
    }

    // No row is about a message.
    package static func purge(about message: Seq, in channel: ChannelID, _ transaction: any Transaction) throws {}
}

extension Invitation: ContentSized, NamesUsers {}

extension InvitationEntry: ContentSized, NamesUsers {
    var namedUsers: [UserID] { invitation.namedUsers }
    var contentSizeBytes: Int { invitation.contentSizeBytes + channel.contentSizeBytes }
}
