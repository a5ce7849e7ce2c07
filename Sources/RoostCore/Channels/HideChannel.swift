public import RoostAPI

/// Hiding a channel from one's own lists: a row of one's own, told to one's own devices (SB-26 to SB-29). Nobody else learns of it.

extension HideChannel: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel, user: caller.user) }

    public func handle(in context: inout Context) throws -> Membership {
        var access = try context.require(.channelHide, in: channel)
        guard var own = access.own else { throw RoostError.notFound("channel") }
        own.hiddenState = allowAutoUnhide ?? true ? .hiddenAllowAutoUnhide : .hiddenPreventAutoUnhide
        own.hiddenMessageCount = access.counters.messageCount
        if hidePreviousMessages ?? false {
            // What is concealed is read, so that it isn't counted when the channel comes back.
            own.historyFloor = max(own.historyFloor, access.counters.seq)
            own.readSeq = access.counters.seq
            own.readCount = access.counters.messageCount
        }
        return try context.write(own, in: &access, .channelHidden)
    }
}

extension UnhideChannel: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel, user: caller.user) }

    public func handle(in context: inout Context) throws -> Membership {
        var access = try context.require(.channelHide, in: channel)
        guard var own = access.own else { throw RoostError.notFound("channel") }
        own.hiddenState = .unhidden
        own.hiddenMessageCount = 0
        return try context.write(own, in: &access, .channelUnhidden)
    }
}

extension Context {
    /// Writes what the caller did with the own membership. The same again changes nothing.
    fileprivate mutating func write(
        _ own: ChannelAccess.OwnMember, in access: inout ChannelAccess, _ kind: Event.Kind
    ) throws -> Membership {
        let channel = access.channelId
        let before = access.membership
        let floor = access.historyFloor
        access.own = own
        guard var membership = access.membership else { throw RoostError.notFound("channel") }
        guard membership != before else { return membership }

        membership.userSeq = try transaction.advanceStream(of: caller.user)
        try transaction.perform(
            """
            UPDATE members
            SET hidden = \(own.hiddenState), hidden_count = \(own.hiddenMessageCount), history_floor = \(own.historyFloor),
                read_seq = \(own.readSeq), read_count = \(own.readCount), user_seq = \(membership.userSeq)
            WHERE channel_id = \(channel) AND user_id = \(caller.user)
            """)
        if own.historyFloor > floor { tell(.floor(caller.user, channel, own.historyFloor)) }
        tell(kind, user: caller.user, seq: membership.userSeq, Rows([membership]))
        return membership
    }
}
