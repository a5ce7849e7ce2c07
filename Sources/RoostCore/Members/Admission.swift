import RoostAPI

/// How users come into a channel: whoever joins, is added or accepts an invitation becomes a member here.
///
/// Several at once are one change of the channel, which takes one seq. Each newcomer's own stream tells the newcomer's devices, and who sent an
/// invitation that is accepted by it learns of that. A distinct channel with other members than it was made for isn't distinct any more
/// (SB-05).

/// A user on the way into a channel, with what there is of them.
struct Newcomer {
    var user: UserID
    var role = ChannelRole.member
    /// The invitation that coming in accepts.
    var invitation: AcceptedInvitation?
    /// Hides the history whatever the app's option says (D-11).
    var hidesHistory = false
}

/// What becomes an accepted invitation when its user comes in.
enum AcceptedInvitation {
    /// One that waited for an answer.
    case pending(Invitation)
    /// One that is sent and accepted at once, since its user accepts automatically (SB-18).
    case immediate(from: UserID, welcome: String? = nil)

    var isPending: Bool { if case .pending = self { true } else { false } }
}

/// A user as they stand to a channel that others may bring them into.
struct Candidate {
    let user: UserID
    /// Whether invitations make them a member at once (SB-18).
    let acceptsAutomatically: Bool
    /// The row of a present or an earlier stay.
    var own: ChannelAccess.OwnMember?
    /// The invitation that waits for an answer, and the role that it gives.
    var invitation: (row: Invitation, role: ChannelRole)?

    var isMember: Bool { own?.row.state == .member }
    func isBanned(at now: Timestamp) -> Bool { own?.row.bannedUntil.map { $0 > now } ?? false }

    /// As they come in without being asked: an invitation that waits is accepted by it.
    var newcomer: Newcomer {
        Newcomer(user: user, role: invitation?.role ?? .member, invitation: (invitation?.row).map(AcceptedInvitation.pending))
    }
}

extension Transaction {
    /// A user as they stand to a channel; nil for a user who doesn't exist. One look-up for each.
    func candidate(_ user: UserID, for access: ChannelAccess) throws -> Candidate? {
        let sql: SQL = """
            SELECT u.auto_accept, \(ChannelAccess.OwnMember.columns(of: "m", purgedSeq: "\(access.purgedSeq)")) FROM users u
            LEFT JOIN members m ON m.channel_id = \(access.channelId) AND m.user_id = u.user_id
            WHERE u.user_id = \(user)
            """
        let found = try first(sql) { row in
            Candidate(
                user: user, acceptsAutomatically: row.bool(),
                own: try ChannelAccess.OwnMember(of: access.channelId, at: access.counters.seq, readingIfThere: &row))
        }
        guard var candidate = found else { return nil }
        try candidate.own?.lookUpRole(in: self)
        guard !candidate.isMember else { return candidate }
        if let invitation = try invitation(of: user, to: access.channelId, .pending) {
            candidate.invitation = (invitation, try role(of: invitation))
        }
        return candidate
    }

    /// The row of a member of a channel; nil for anybody else.
    func member(_ user: UserID, of access: ChannelAccess) throws -> ChannelAccess.OwnMember? {
        let sql: SQL = """
            SELECT \(ChannelAccess.OwnMember.columns(of: "m", purgedSeq: "\(access.purgedSeq)")) FROM members m
            WHERE m.channel_id = \(access.channelId) AND m.user_id = \(user) AND m.state = \(MembershipState.member)
            """
        let found = try first(sql) { row in
            try ChannelAccess.OwnMember(of: access.channelId, at: access.counters.seq, readingIfThere: &row)
        }
        guard var own = found ?? nil else { return nil }
        try own.lookUpRole(in: self)
        return own
    }
}

extension Context {
    /// Makes the caller a member, and answers with the channel. Nothing changes for who is one.
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

    /// Makes users members in one change of the channel. They are not members yet, and there is room for them.
    mutating func admit(_ newcomers: [Newcomer], to access: inout ChannelAccess) throws {
        guard !newcomers.isEmpty else { return }
        let channel = access.channelId
        let floor = access.counters.seq
        let seq = access.counters.advance(at: now)
        access.counters.memberCount += newcomers.count
        // Who was invited when the channel was made belongs to its set of members; any later invitation has ended that it is distinct.
        let isNew = newcomers.contains { $0.invitation?.isPending != true }
        let endsDistinctness = isNew ? try endDistinctness(of: &access, seq: seq) : false

        var members: [Member] = []
        var entered: [(newcomer: Newcomer, own: ChannelAccess.OwnMember, ended: Invitation?)] = []
        for newcomer in newcomers {
            let hidesHistory = newcomer.hidesHistory || !options.showsHistoryToNewMembers
            let own = try writeMember(
                newcomer.user, as: try transaction.role(newcomer.role), of: access, historyFloor: hidesHistory ? floor : 0)
            members.append(Member(newcomer.user, own.row, changeSeq: seq))
            let ended = try newcomer.invitation.map {
                try accept($0, of: newcomer.user, in: access, seq: seq, userSeq: own.row.userSeq)
            }
            entered.append((newcomer, own, ended))
            if newcomer.user == caller.user { (access.own, access.invitation) = (own, nil) }
        }
        try moveStream(of: channel, to: access.counters)

        let whole = try self.channel(channel)
        let announced = access.policy.invitationAudience == .members ? entered.compactMap(\.ended) : []
        try tell(
            .memberJoined, in: access, seq: seq,
            Rows(
                channel: endsDistinctness ? whole : nil, counters: endsDistinctness ? nil : access.counters, members, announced))
        // Ordinary newcomers with one role may all do the same.
        var byRole: [ChannelRole: [Permission]] = [:]
        for (newcomer, own, ended) in entered {
            tell(.joined(newcomer.user, channel, at: seq, as: own.row.role))
            if own.row.historyFloor > 0 { tell(.floor(newcomer.user, channel, own.row.historyFloor)) }
            var updated = access
            updated.own = own
            updated.invitation = nil
            let isOrdinary = newcomer.user != caller.user && own.row.mutedUntil == nil && own.row.bannedUntil == nil
            let known = isOrdinary ? byRole[own.row.role] : nil
            let capabilities = known ?? capabilities(of: newcomer.user, in: updated)
            if isOrdinary { byRole[own.row.role] = capabilities }
            tell(
                .memberJoined, user: newcomer.user, seq: own.row.userSeq,
                Rows(
                    channel: whole, ownCapabilities: [channel.rawValue: capabilities], updated.membership.map { [$0] },
                    ended.map { [$0] }))
            if let ended { try tellInviter(of: ended, .invitationAccepted) }
        }
    }

    /// What a member may do, told to them: the caller by the caller's own role in the app, others as ordinary users.
    func capabilities(of user: UserID, in access: ChannelAccess) -> [Permission] {
        Permissions.capabilities(of: user == caller.user ? caller.role : .user, in: access.facts, now: now)
    }

    /// Ends that a channel is the one of its set of members, as part of the change that takes a seq.
    ///
    /// - Returns: whether it was, so that the whole channel has to be told.
    func endDistinctness(of access: inout ChannelAccess, seq: Seq) throws -> Bool {
        guard access.isDistinct else { return false }
        access.isDistinct = false
        try transaction.perform(
            """
            UPDATE channels SET is_distinct = \(false), distinct_key = NULL, updated_at = \(now), change_seq = \(seq)
            WHERE channel_id = \(access.channelId)
            """)
        return true
    }
}
