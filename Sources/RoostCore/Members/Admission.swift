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
    /// The row of an earlier stay.
    var own: ChannelAccess.OwnMember?
    /// Whether invitations make them a member at once (SB-18).
    var acceptsAutomatically = true
    /// The invitation that waits for an answer, which coming in accepts.
    var invitation: Invitation?
    /// Hides the history whatever the app's option says (D-11).
    var hidesHistory = false

    var isMember: Bool { own?.state == .member }
    func isBanned(at now: Timestamp) -> Bool { own?.bannedUntil.map { $0 > now } ?? false }
}

extension Transaction {
    /// A user as they stand to a channel they may come into; nil for a user who doesn't exist. One look-up for each.
    func newcomer(_ user: UserID, to channel: ChannelID) throws -> Newcomer? {
        let sql: SQL = """
            SELECT u.auto_accept, \(ChannelAccess.OwnMember.columns) FROM users u
            LEFT JOIN members m ON m.channel_id = \(channel) AND m.user_id = u.user_id
            WHERE u.user_id = \(user)
            """
        let found = try first(sql) { row in
            var newcomer = Newcomer(user: user, acceptsAutomatically: row.bool())
            if let role = row.optionalString() { newcomer.own = try ChannelAccess.OwnMember(role: role, reading: &row) }
            return newcomer
        }
        guard var newcomer = found else { return nil }
        newcomer.invitation = newcomer.isMember ? nil : try invitation(of: user, to: channel, .pending)
        if let invitation = newcomer.invitation { newcomer.role = try role(of: invitation) }
        return newcomer
    }
}

extension Context {
    /// Makes the caller a member, and answers with the channel. Nothing changes for who is one.
    mutating func admit(to access: ChannelAccess) throws -> ChannelView {
        guard !access.isMember else { return try view(of: access) }
        guard access.counters.memberCount < access.policy.maxMembers else { throw RoostError.memberLimit(access.policy.maxMembers) }
        guard try transaction.hasRoomForChannel(caller.user, most: options.channelsPerUser) else {
            throw RoostError.channelLimit(of: caller.user, options.channelsPerUser)
        }
        var access = access
        let role = try access.invitation.map { try transaction.role(of: $0) } ?? .member
        try admit([Newcomer(user: caller.user, role: role, own: access.own, invitation: access.invitation)], to: &access)
        return try view(of: try require(.channelRead, in: access.channelId))
    }

    /// Makes users members in one change of the channel. They are not members yet, and there is room for them.
    mutating func admit(_ newcomers: [Newcomer], to access: inout ChannelAccess) throws {
        guard !newcomers.isEmpty else { return }
        let channel = access.channelId
        let floor = access.counters.seq
        let seq = access.counters.advance(at: now)
        access.counters.memberCount += newcomers.count
        // Who was invited when the channel was made belongs to its set of members; any later invitation has ended that it is distinct.
        let isNew = newcomers.contains { $0.invitation?.revision ?? 0 == 0 }
        let endsDistinctness = isNew ? try endDistinctness(of: &access, seq: seq) : false

        var members: [Member] = []
        var entered: [(newcomer: Newcomer, own: ChannelAccess.OwnMember, ended: Invitation?)] = []
        for newcomer in newcomers {
            let hidesHistory = newcomer.hidesHistory || !options.showsHistoryToNewMembers
            let userSeq = try transaction.writeMember(
                newcomer.user, role: newcomer.role, of: channel, counters: access.counters, joinedAt: now,
                historyFloor: hidesHistory ? floor : 0)
            let own = try stay(of: newcomer, in: access, floor: hidesHistory ? floor : 0, userSeq: userSeq)
            members.append(
                Member(
                    userId: newcomer.user, role: newcomer.role, state: .member, joinedAt: now, joinedSeq: seq, changeSeq: seq))
            entered.append((newcomer, own, try accept(newcomer.invitation, in: access, seq: seq, userSeq: userSeq)))
        }
        try transaction.update(access.counters, of: channel)

        let whole = try self.channel(channel)
        let told = access.policy.invitationAudience == .members ? entered.compactMap(\.ended) : []
        try tell(
            .memberJoined, in: access, seq: seq,
            Rows(
                channel: endsDistinctness ? whole : nil, counters: endsDistinctness ? nil : access.counters, members, told))
        // Ordinary newcomers with one role may all do the same.
        var byRole: [ChannelRole: [Permission]] = [:]
        for (newcomer, own, ended) in entered {
            tell(.joined(newcomer.user, channel, at: seq, as: own.role))
            if own.historyFloor > 0 { tell(.floor(newcomer.user, channel, own.historyFloor)) }
            var standing = access
            standing.own = own
            standing.invitation = nil
            let isOrdinary = newcomer.user != caller.user && own.mutedUntil == nil && own.bannedUntil == nil
            let known = isOrdinary ? byRole[own.role] : nil
            let capabilities = known ?? capabilities(of: newcomer.user, in: standing)
            if isOrdinary { byRole[own.role] = capabilities }
            tell(
                .memberJoined, user: newcomer.user, seq: own.userSeq,
                Rows(
                    channel: whole, ownCapabilities: [channel.rawValue: capabilities], standing.membership.map { [$0] },
                    ended.map { [$0] }))
            if let ended { try tellInviter(of: ended, .invitationAccepted) }
        }
    }

    /// What a member may do, told to them: the caller by the caller's own role in the app, others as ordinary users.
    func capabilities(of user: UserID, in access: ChannelAccess) -> [Permission] {
        Permissions.capabilities(of: user == caller.user ? caller : Caller(user: user), in: access, now: now)
    }

    /// The row that ``Transaction/writeMember(_:role:of:counters:joinedAt:historyFloor:)`` leaves, without reading it back.
    private func stay(
        of newcomer: Newcomer, in access: ChannelAccess, floor: Seq, userSeq: Seq
    ) throws -> ChannelAccess.OwnMember {
        var own = ChannelAccess.OwnMember(role: newcomer.role, definition: try transaction.role(newcomer.role))
        own.joinedAt = now
        own.joinedSeq = access.counters.seq
        own.readSeq = access.counters.seq
        own.readCount = access.counters.messageCount
        own.lastReadAt = newcomer.own?.lastReadAt
        own.lastSentSeq = newcomer.own?.lastSentSeq ?? 0
        own.historyFloor = max(floor, newcomer.own?.historyFloor ?? 0)
        own.mutedUntil = newcomer.own?.mutedUntil
        own.bannedUntil = newcomer.own?.bannedUntil
        own.userSeq = userSeq
        return own
    }

    /// Ends that a channel is the one of its set of members, as part of the change that takes a seq.
    ///
    /// - Returns: whether it was, so that the whole channel has to be told.
    mutating func endDistinctness(of access: inout ChannelAccess, seq: Seq) throws -> Bool {
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
