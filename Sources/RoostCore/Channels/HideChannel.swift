public import RoostAPI

/// Hiding a channel from the caller's own lists, and its messages: changes of the caller's row, sent only to the caller's
/// devices (SB-26 to SB-29, SB-60). Messages concealed this way count as read, and others are notified as of any reading.

extension HideChannel: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel, user: caller.user) }

    public func handle(in context: inout Context) throws -> Membership {
        var access = try context.require(.channelHide, in: channel)
        var member = try access.requireMember()
        member.row.hiddenState = allowAutoUnhide ?? true ? .hiddenAllowAutoUnhide : .hiddenPreventAutoUnhide
        // Messages that the caller hadn't seen yet bring it back, like later ones.
        let seenSeq = access.concealable(upTo: upTo)
        member.row.hiddenOrdinal =
            seenSeq < access.counters.seq
            ? try context.transaction.ordinal(upTo: seenSeq, in: access) : access.counters.ordinal
        guard hidePreviousMessages ?? false else {
            return try context.write(member, of: context.caller.user, in: &access, .channelHidden)
        }
        return try context.conceal(member, upTo: upTo, in: &access, .channelHidden)
    }
}

extension ResetHistory: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel, user: caller.user) }

    public func handle(in context: inout Context) throws -> Membership {
        var access = try context.require(.channelHide, in: channel)
        guard context.options.showsHistoryToNewMembers else {
            throw RoostError(
                .featureDisabled, "This app hides history from new members; nobody can reset theirs.", field: "channel")
        }
        return try context.conceal(try access.requireMember(), upTo: upTo, in: &access, .channelHistoryReset)
    }
}

extension Context {
    /// Writes a membership of the caller with the messages up to a seq concealed, or all of them if it is nil. They count as
    /// read, or they would stay unread for good, and no longer mention the user. Others are notified if this moves the
    /// caller's receipt (SB-60): they could also ask who has read.
    fileprivate mutating func conceal(
        _ before: ChannelAccess.MemberRow, upTo seq: Seq?, in access: inout ChannelAccess, _ kind: Event.Kind
    ) throws -> Membership {
        var member = before
        let target = access.concealable(upTo: seq)
        member.row.historyFloor = max(member.row.historyFloor, target)
        var storedCount: Int?
        var isNews = false
        if target > member.row.readSeq {
            let counts = try transaction.readCounts(upTo: target, of: caller.user, in: access)
            (member.row.readSeq, member.row.readCount) = (target, counts.now)
            storedCount = counts.stored
            // Messages that were read, and have been marked as unread since, are nothing new to others.
            isNews = target > member.receiptSeq
            if isNews { member.row.lastReadAt = now }
        }
        try renewMention(of: &member.row)
        let membership = try write(member, readCount: storedCount, of: caller.user, in: &access, kind)
        if isNews { try reportReading(upTo: target, in: access) }
        return membership
    }
}

extension ChannelAccess {
    /// The seq up to which a hiding conceals what the caller had seen. An ephemeral channel keeps nothing to count: there it conceals everything.
    fileprivate func concealable(upTo seq: Seq?) -> Seq { isEphemeral ? counters.seq : min(seq ?? counters.seq, counters.seq) }
}

extension UnhideChannel: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel, user: caller.user) }

    public func handle(in context: inout Context) throws -> Membership {
        var access = try context.require(.channelHide, in: channel)
        var member = try access.requireMember()
        // A channel that a message has brought back isn't hidden, whatever the row says. Like the message, this changes nothing in it.
        if member.row.visibility(in: access.counters) != .unhidden {
            (member.row.hiddenState, member.row.hiddenOrdinal) = (.unhidden, 0)
        }
        return try context.write(member, of: context.caller.user, in: &access, .channelUnhidden)
    }
}

extension Context {
    /// Writes a change of a user's own settings for a channel. Repeating it changes nothing.
    ///
    /// - Parameter readCount: The stored count for a read position that has moved; nil to keep the row's.
    mutating func write(
        _ member: ChannelAccess.MemberRow, readCount: Int? = nil, of user: UserID, in access: inout ChannelAccess,
        _ kind: Event.Kind
    ) throws -> Membership {
        let channel = access.channelId
        let before = access.membership
        let floor = access.historyFloor
        access.member = member
        guard var membership = access.membership else { throw ImpossibleState("A member of \(channel) has no membership there.") }
        guard membership != before else { return membership }

        membership.userSeq = try advanceStream(of: user)
        try transaction.writeHiding(
            member.row, readCount: readCount ?? member.row.readCount, of: user, in: channel, userSeq: membership.userSeq)
        if member.row.historyFloor > floor { notify(.floor(user, channel, member.row.historyFloor)) }
        notify(kind, user: user, seq: membership.userSeq, Rows([membership]))
        return membership
    }
}
