public import RoostAPI

extension JoinChannel: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel, user: caller.user) }

    public func handle(in context: inout Context) throws -> ChannelView {
        var access = try context.require(.memberJoin, in: channel)
        guard !access.isMember else { return try context.view(of: access) }
        guard access.counters.memberCount < access.policy.maxMembers else {
            let limit = access.policy.maxMembers
            throw RoostError(.memberLimit, "The channel has its limit of \(limit) members.", limit: Int64(limit))
        }
        try context.transaction.requireRoomForChannel(of: context.caller.user)

        let seq = access.counters.advance(at: context.now)
        access.counters.memberCount += 1
        // Who leaves gives up a role with the membership: coming back is coming back as an ordinary member.
        let userSeq = try context.transaction.writeMember(
            context.caller.user, role: .member, of: channel, counters: access.counters, joinedAt: context.now)
        try context.transaction.update(access.counters, of: channel)

        let member = Member(
            userId: context.caller.user, role: .member, state: .member, joinedAt: context.now, changeSeq: seq)
        context.tell(.memberJoined, in: channel, seq: seq, Rows(counters: access.counters, members: [member]))
        context.tell(.joined(context.caller.user, channel, at: seq))
        let view = try context.view(of: try context.require(.channelRead, in: channel))
        context.tell(
            .memberJoined, user: context.caller.user, seq: userSeq,
            Rows(channel: view.channel, memberships: view.membership.map { [$0] }))
        return view
    }
}

extension LeaveChannel: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel, user: caller.user) }

    public func handle(in context: inout Context) throws -> Done {
        var access = try context.require(.memberLeave, in: channel)
        guard access.isMember, let own = access.own else { return Done() }

        let user = context.caller.user
        let seq = access.counters.advance(at: context.now)
        access.counters.memberCount -= 1
        let userSeq = try context.transaction.advanceStream(of: user)
        try context.transaction.perform(
            """
            UPDATE members SET state = \(MembershipState.none), role = \(ChannelRole.member), change_seq = \(seq), user_seq = \(userSeq)
            WHERE channel_id = \(channel) AND user_id = \(user)
            """)
        try context.transaction.update(access.counters, of: channel)

        // The one who leaves is told on the own stream, and hears nothing more of the channel's.
        context.tell(.left(user, channel))
        let member = Member(userId: user, role: .member, state: .none, joinedAt: own.joinedAt, changeSeq: seq)
        context.tell(.memberLeft, in: channel, seq: seq, Rows(counters: access.counters, members: [member]))
        let membership = Membership(
            channelId: channel, role: .member, state: .none, joinedAt: own.joinedAt, joinedSeq: own.joinedSeq, readSeq: own.readSeq,
            readCount: own.readCount,
            lastReadAt: own.lastReadAt, channelSeq: seq)
        context.tell(.memberLeft, user: user, seq: userSeq, Rows(memberships: [membership]))
        return Done()
    }
}

extension ListMembers: Handled {
    public func handle(in context: inout Context) throws -> Page<Member> {
        _ = try context.require(.memberList, in: channel)
        let limit = try Limits.page(limit, Limits.memberPage)
        let members = try context.transaction.rows(
            """
            SELECT \(Member.columns) FROM members m
            WHERE m.channel_id = \(channel) AND m.user_id > \(cursor ?? "") AND m.state = \(MembershipState.member)
            ORDER BY m.user_id LIMIT \(limit + 1)
            """
        ) { try Member(reading: &$0) }
        let page = Array(members.prefix(limit))
        return Page(items: page, nextCursor: members.count > limit ? page.last?.userId.rawValue : nil)
    }
}
