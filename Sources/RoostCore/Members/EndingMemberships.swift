import RoostAPI

/// A member that an operation changes or removes, with the earlier row.
struct AffectedMember {
    var user: UserID
    var before: ChannelAccess.MemberRow
}

extension Context {
    /// Ends the caller's membership.
    mutating func leave(_ access: ChannelAccess) throws {
        guard access.isMember, let member = access.member else { return }
        var access = access
        try endMemberships(of: [AffectedMember(user: caller.user, before: member)], in: &access, .memberLeft)
    }

    /// Ends memberships in one change of the channel.
    ///
    /// - Parameter kind: The event for the leavers: left or removed. For the others it is always that they left
    ///   (EM-28, EM-29).
    mutating func endMemberships(of leavers: [AffectedMember], in access: inout ChannelAccess, _ kind: Event.Kind) throws {
        guard !leavers.isEmpty else { return }
        let channel = access.channelId
        let seq = access.counters.advance(at: now)
        access.counters.memberCount -= leavers.count
        let endsDistinctness = try endDistinctness(of: &access, seq: seq)

        var members: [Member] = []
        var memberships: [(user: UserID, membership: Membership?)] = []
        for leaver in leavers {
            // Leaving resets the role: rejoining makes an ordinary member.
            var after = leaver.before
            after.row.role = .member
            after.row.state = .none
            after.row.userSeq = try advanceStream(of: leaver.user)
            try transaction.perform(
                """
                UPDATE members
                SET state = \(after.row.state), role = \(after.row.role), read_count = \(after.row.readCount), change_seq = \(seq),
                    user_seq = \(after.row.userSeq)
                WHERE channel_id = \(channel) AND user_id = \(leaver.user)
                """)
            members.append(Member(leaver.user, after.row, changeSeq: seq))
            var updated = access
            updated.member = after
            memberships.append((leaver.user, updated.membership))
            if leaver.user == caller.user { access.member = after }
        }
        try moveStream(of: channel, to: access.counters)
        let drafts = try removeDrafts(
            in: channel, memberships.compactMap { user, membership in membership.map { (user, $0.userSeq) } })

        // Leavers are notified on their own streams, and receive nothing more of the channel's.
        for leaver in leavers { notify(.left(leaver.user, channel, at: seq)) }
        try notify(
            .memberLeft, in: access, seq: seq,
            Rows(
                channel: endsDistinctness ? try self.channel(channel) : nil, counters: endsDistinctness ? nil : access.counters,
                members))
        for (user, membership) in memberships {
            guard let membership else { continue }
            notify(kind, user: user, seq: membership.userSeq, Rows([membership], drafts[user].map { [$0] }))
        }
        try announce(SystemEvent(.memberLeft, leavers.map(\.user)), in: &access)
    }
}
