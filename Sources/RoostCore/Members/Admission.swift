import RoostAPI

/// Makes users members of a channel: by joining, by being added or by accepting an invitation.
///
/// Several at once are one change of the channel, with one seq. The newcomers' devices learn of it on the newcomers' own
/// streams, and senders of invitations are notified of the acceptance. A distinct channel whose members are no longer the set
/// that it was made for stops being distinct (SB-05).

/// A user about to become a member.
struct Newcomer {
    var user: UserID
    var role = ChannelRole.member
    /// The invitation that joining accepts.
    var invitation: AcceptedInvitation?
    /// Hides the history whatever the app's option says (D-11).
    var hidesHistory = false
}

/// The source of an accepted invitation.
enum AcceptedInvitation {
    /// A pending invitation.
    case pending(Invitation)
    /// One that is sent and accepted at once, since its user accepts automatically (SB-18).
    case immediate(from: UserID, welcome: String? = nil)

    var isPending: Bool { if case .pending = self { true } else { false } }
}

/// A user whom others may add to a channel, and their relation to it.
struct Candidate {
    let user: UserID
    /// Whether invitations make them a member at once (SB-18).
    let acceptsAutomatically: Bool
    /// The row of a current or former membership.
    var member: ChannelAccess.MemberRow?
    /// The pending invitation, and the role that it gives.
    var invitation: (row: Invitation, role: ChannelRole)?

    var isMember: Bool { member?.row.state == .member }
    func isBanned(at now: Timestamp) -> Bool { member?.row.bannedUntil.map { $0 > now } ?? false }

    /// The user as a newcomer who is added without their consent, which accepts a pending invitation.
    var newcomer: Newcomer {
        Newcomer(user: user, role: invitation?.role ?? .member, invitation: (invitation?.row).map(AcceptedInvitation.pending))
    }
}

extension Transaction {
    /// Returns a user's relation to a channel; nil for an unknown user. Takes one look-up per user.
    func candidate(_ user: UserID, for access: ChannelAccess) throws -> Candidate? {
        let sql: SQL = """
            SELECT u.auto_accept, \(ChannelAccess.StoredMember.columns) FROM users u
            JOIN channel_heads h ON h.channel_id = \(access.channelId)
            LEFT JOIN members m ON m.channel_id = h.channel_id AND m.user_id = u.user_id
            WHERE u.user_id = \(user)
            """
        let found = try first(sql) { row in
            let acceptsAutomatically = row.bool()
            let stored = try ChannelAccess.StoredMember(of: access.channelId, at: access.counters.seq, readingIfPresent: &row)
            return (acceptsAutomatically, stored)
        }
        guard let (acceptsAutomatically, stored) = found else { return nil }
        var candidate = Candidate(
            user: user, acceptsAutomatically: acceptsAutomatically, member: try stored.map { try member($0) })
        guard !candidate.isMember else { return candidate }
        if let invitation = try invitation(of: user, to: access.channelId, .pending) {
            candidate.invitation = (invitation, try role(of: invitation))
        }
        return candidate
    }

    /// Returns the row of a member of a channel; nil for non-members.
    func member(_ user: UserID, of access: ChannelAccess) throws -> ChannelAccess.MemberRow? {
        let sql: SQL = """
            SELECT \(ChannelAccess.StoredMember.columns) FROM members m
            JOIN channel_heads h ON h.channel_id = m.channel_id
            WHERE m.channel_id = \(access.channelId) AND m.user_id = \(user) AND m.state = \(MembershipState.member)
            """
        let found = try first(sql) { row in
            try ChannelAccess.StoredMember(of: access.channelId, at: access.counters.seq, readingIfPresent: &row)
        }
        guard let stored = found ?? nil else { return nil }
        return try member(stored)
    }
}

extension Context {
    /// Makes the caller a member, and returns the channel. No change for members.
    mutating func admit(to access: ChannelAccess) throws -> ChannelView {
        guard !access.isMember else { return try view(of: access) }
        guard access.counters.memberCount < access.policy.maxMembers else { throw RoostError.memberLimit(access.policy.maxMembers) }
        guard try transaction.hasRoomForChannel(caller.user, max: options.channelsPerUser) else {
            throw RoostError.channelLimit(of: caller.user, options.channelsPerUser)
        }
        var access = access
        let invitation = access.invitation
        let role = try invitation.map { try transaction.role(of: $0) } ?? .member
        try admit(
            [Newcomer(user: caller.user, role: role, invitation: invitation.map(AcceptedInvitation.pending))], to: &access)
        recordCallerSeq(of: access)
        return try view(of: access)
    }

    /// Makes users members in one change of the channel. They must not be members yet, and there must be room for them.
    mutating func admit(_ newcomers: [Newcomer], to access: inout ChannelAccess) throws {
        guard !newcomers.isEmpty else { return }
        let channel = access.channelId
        let floor = access.counters.seq
        let seq = access.counters.advance(at: now)
        access.counters.memberCount += newcomers.count
        // Users invited when the channel was made belong to its set of members; any later invitation has ended distinctness.
        let isNew = newcomers.contains { $0.invitation?.isPending != true }
        let endsDistinctness = isNew ? try endDistinctness(of: &access, seq: seq) : false

        var members: [Member] = []
        var entered: [(newcomer: Newcomer, member: ChannelAccess.MemberRow, ended: Invitation?)] = []
        for newcomer in newcomers {
            let hidesHistory = newcomer.hidesHistory || !options.showsHistoryToNewMembers
            let member = try writeMember(
                newcomer.user, as: try transaction.role(newcomer.role), of: access, historyFloor: hidesHistory ? floor : 0)
            members.append(Member(newcomer.user, member.row, changeSeq: seq))
            let ended = try newcomer.invitation.map {
                try accept($0, of: newcomer.user, in: access, seq: seq, userSeq: member.row.userSeq)
            }
            entered.append((newcomer, member, ended))
            if newcomer.user == caller.user { (access.member, access.invitation) = (member, nil) }
        }
        try moveStream(of: channel, to: access.counters)

        let whole = try self.channel(channel)
        let announced = try notifiesMembersOfInvitations(in: access) ? entered.compactMap(\.ended) : []
        try notify(
            .memberJoined, in: access, seq: seq,
            Rows(
                channel: endsDistinctness ? whole : nil, counters: endsDistinctness ? nil : access.counters, members, announced))
        // Ordinary newcomers with the same role have the same capabilities.
        var byRole: [ChannelRole: [Permission]] = [:]
        var firstRows: [Seq: Rows] = [:]
        for (newcomer, member, ended) in entered {
            notify(.joined(newcomer.user, channel, at: seq, as: member.row.role))
            if member.row.historyFloor > 0 { notify(.floor(newcomer.user, channel, member.row.historyFloor)) }
            var updated = access
            updated.member = member
            updated.invitation = nil
            let isOrdinary = newcomer.user != caller.user && member.row.mutedUntil == nil && member.row.bannedUntil == nil
            let known = isOrdinary ? byRole[member.row.role] : nil
            let capabilities = known ?? capabilities(of: newcomer.user, in: updated)
            if isOrdinary { byRole[member.row.role] = capabilities }
            let mayRead = mayReadAsUser(updated)
            let shared = access.isSameForAllViewers && mayRead ? firstRows[member.row.historyFloor] : nil
            var rows = try shared ?? arrivingRows(in: updated, for: newcomer.user)
            if mayRead { firstRows[member.row.historyFloor] = rows }
            rows.channel = whole
            rows.ownCapabilities = [channel.rawValue: capabilities]
            rows.memberships = updated.membership.map { [$0] }
            rows.invitations = ended.map { [$0] }
            notify(.memberJoined, user: newcomer.user, seq: member.row.userSeq, rows)
            if let ended { try notifyInviter(of: ended, .invitationAccepted) }
        }
        try announce(SystemEvent(.memberJoined, newcomers.map(\.user)), in: &access)
    }

    /// Returns a member's capabilities: the caller's by the caller's own role in the app, others' as ordinary users.
    func capabilities(of user: UserID, in access: ChannelAccess) -> [Permission] {
        Permissions.capabilities(of: user == caller.user ? caller.role : .user, in: access.facts, now: now)
    }
}
