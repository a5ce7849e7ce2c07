public import RoostAPI

/// Hiding a channel from the caller's own lists, and its messages: changes of the caller's row, sent only to the caller's devices (SB-26 to SB-29,
/// SB-60). Messages that it conceals count as read, and others are told that as of any reading.

extension HideChannel: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel, user: caller.user) }

    public func handle(in context: inout Context) throws -> Membership {
        var access = try context.require(.channelHide, in: channel)
        var own = try access.requireOwn()
        own.row.hiddenState = allowAutoUnhide ?? true ? .hiddenAllowAutoUnhide : .hiddenPreventAutoUnhide
        // What the caller hadn't seen yet brings it back, as what comes from now on.
        let seenSeq = access.concealable(upTo: upTo)
        own.row.hiddenOrdinal =
            seenSeq < access.counters.seq
            ? try context.transaction.ordinal(upTo: seenSeq, in: access) : access.counters.ordinal
        guard hidePreviousMessages ?? false else {
            return try context.write(own, of: context.caller.user, in: &access, .channelHidden)
        }
        return try context.conceal(own, upTo: upTo, in: &access, .channelHidden)
    }
}

extension ResetHistory: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel, user: caller.user) }

    public func handle(in context: inout Context) throws -> Membership {
        var access = try context.require(.channelHide, in: channel)
        guard context.options.showsHistoryToNewMembers else {
            throw RoostError(
                .featureDisabled, "This app hides history from new members, and nobody resets theirs.", field: "channel")
        }
        return try context.conceal(try access.requireOwn(), upTo: upTo, in: &access, .channelHistoryReset)
    }
}

extension Context {
    /// Writes a membership of the caller with the messages up to a seq concealed, all of them if it is nil. They count as read, so that they aren't unread for
    /// ever, and mention the user no more. Others are told if the caller's receipt moves by that (SB-60): whoever asks who has read learns it as well.
    fileprivate mutating func conceal(
        _ before: ChannelAccess.OwnMember, upTo seq: Seq?, in access: inout ChannelAccess, _ kind: Event.Kind
    ) throws -> Membership {
        var own = before
        let target = access.concealable(upTo: seq)
        own.row.historyFloor = max(own.row.historyFloor, target)
        var storedCount: Int?
        var isNews = false
        if target > own.row.readSeq {
            let counts = try transaction.readCounts(upTo: target, of: caller.user, in: access)
            (own.row.readSeq, own.row.readCount) = (target, counts.now)
            storedCount = counts.stored
            // What was read, and marked as unread since, is nothing new to the others.
            isNews = target > own.receiptSeq
            if isNews { own.row.lastReadAt = now }
        }
        try renewMention(of: &own.row)
        let membership = try write(own, readCount: storedCount, of: caller.user, in: &access, kind)
        if isNews { try tellReading(upTo: target, in: access) }
        return membership
    }
}

extension ChannelAccess {
    /// How far a hiding goes that means what the caller had seen. An ephemeral channel keeps nothing that could be counted: there it means all of it.
    fileprivate func concealable(upTo seq: Seq?) -> Seq { isEphemeral ? counters.seq : min(seq ?? counters.seq, counters.seq) }
}

extension UnhideChannel: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel, user: caller.user) }

    public func handle(in context: inout Context) throws -> Membership {
        var access = try context.require(.channelHide, in: channel)
        var own = try access.requireOwn()
        // What a message has brought back isn't hidden, whatever the row says: it changes as little by this as it did by the message.
        if own.row.visibility(in: access.counters) != .unhidden { (own.row.hiddenState, own.row.hiddenOrdinal) = (.unhidden, 0) }
        return try context.write(own, of: context.caller.user, in: &access, .channelUnhidden)
    }
}

extension Context {
    /// Writes a change of what a user has decided for themselves of a channel. Repeating it changes nothing.
    ///
    /// - Parameter readCount: What is stored for a read position that has moved; what the row has if it is nil.
    mutating func write(
        _ own: ChannelAccess.OwnMember, readCount: Int? = nil, of user: UserID, in access: inout ChannelAccess, _ kind: Event.Kind
    ) throws -> Membership {
        let channel = access.channelId
        let before = access.membership
        let floor = access.historyFloor
        access.own = own
        guard var membership = access.membership else { throw ImpossibleState("A member of \(channel) has no membership there.") }
        guard membership != before else { return membership }

        membership.userSeq = try advanceStream(of: user)
        try transaction.writeHiding(
            own.row, readCount: readCount ?? own.row.readCount, of: user, in: channel, userSeq: membership.userSeq)
        if own.row.historyFloor > floor { tell(.floor(user, channel, own.row.historyFloor)) }
        tell(kind, user: user, seq: membership.userSeq, Rows([membership]))
        return membership
    }
}
