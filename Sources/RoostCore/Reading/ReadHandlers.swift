public import RoostAPI

extension MarkRead: Handled {
    public static var toleratesDelay: Bool { true }

    public func scope(for caller: Caller) -> Scope { .channel(channel, user: caller.user) }

    public func handle(in context: inout Context) throws -> UnreadCount {
        let access = try movePosition(in: &context)
        return try context.unreadCount(in: access)
    }

    /// Moves the position forward. Does nothing if it is already there or further.
    ///
    /// - Returns: The channel with it.
    func movePosition(in context: inout Context) throws -> ChannelAccess {
        let access = try context.require(.readingMark, in: channel)
        let member = try access.requireMember()
        // An ephemeral channel keeps nothing to count: reading it means reading all of it.
        let target = access.isEphemeral ? access.counters.seq : min(seq ?? access.counters.seq, access.counters.seq)
        guard target > member.row.readSeq else { return access }

        let (moved, receiptSeq) = try context.moveReading(to: target, at: context.now, .readingMarked, in: access)
        // Messages that were read, and have been marked as unread since, are nothing new to others.
        if target > receiptSeq { try context.reportReading(upTo: target, in: access) }
        return moved
    }
}

extension MarkUnread: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel, user: caller.user) }

    public func handle(in context: inout Context) throws -> UnreadCount {
        let access = try context.require(.readingMark, in: channel)
        let member = try access.requireMember()
        guard !access.isEphemeral else {
            throw RoostError(
                .featureDisabled, "Messages of this channel aren't stored, so none can be marked as unread.", field: "channel")
        }
        // Messages hidden from the caller stay read.
        let target = max(seq - 1, access.historyFloor, 0)
        let isMoved = target < member.row.readSeq
        let after =
            isMoved ? try context.moveReading(to: target, at: member.row.lastReadAt, .readingUnmarked, in: access).moved : access
        // Reading ends even if nothing moves: what a device has just received is still to be marked.
        let userSeq = try after.requireMember().row.userSeq
        context.notify(.markedUnread(context.caller.user, access.channelId, at: userSeq))
        return try context.unreadCount(in: after)
    }
}

extension MarkDelivered: Handled {
    public static var toleratesDelay: Bool { true }

    public func scope(for caller: Caller) -> Scope { .channel(channel) }

    public func handle(in context: inout Context) throws -> Done {
        let access = try context.require(.readingMark, in: channel)
        let member = try access.requireMember()
        // Nothing is delivered to members who may not read.
        try context.require(.historyRead, in: access)
        for (rule, isOn) in [
            (PolicyName.readEvents, access.policy.readEvents), (.deliveryEvents, access.policy.deliveryEvents),
        ] where !isOn {
            throw RoostError(
                .featureDisabled, "This channel doesn't share what has been delivered.", rule: rule.rawValue)
        }
        try context.requireReceipts(in: access, "what has been delivered")
        guard seq <= access.counters.seq else {
            throw RoostError.invalidArgument("seq", "must not be beyond the channel's newest, \(access.counters.seq)")
        }
        let user = context.caller.user
        // Read messages have been delivered.
        guard seq > member.row.readSeq,
            let receiptSeq = try context.transaction.noteDelivery(upTo: seq, at: context.now, of: user, in: access.channelId)
        else { return Done() }
        if try context.transaction.sharesDelivery(user) {
            let position = ReadPosition(
                userId: user, readSeq: max(member.row.readSeq, receiptSeq), lastReadAt: member.row.lastReadAt, deliveredSeq: seq,
                lastDeliveredAt: context.now)
            context.notify(.read(position, access.channelId))
        }
        return Done()
    }
}

extension Context {
    /// Notifies others that the caller has just read up to a seq, if the channel and the caller share that. A caller who may
    /// not read clears what is unread this way, but has read nothing. In a channel where others can't query read positions
    /// either, nobody is notified.
    mutating func reportReading(upTo seq: Seq, in access: ChannelAccess) throws {
        guard access.policy.readEvents, access.counters.memberCount <= Limits.largeChannelMembers,
            refusal(of: .historyRead, in: access) == nil,
            try access.member?.sharesReading ?? transaction.sharesReading(caller.user)
        else { return }
        notify(.read(ReadPosition(userId: caller.user, readSeq: seq, lastReadAt: now), access.channelId))
    }

    /// Throws in a channel with too many members to report each of them.
    func requireReceipts(in access: ChannelAccess, _ what: String) throws {
        guard access.counters.memberCount <= Limits.largeChannelMembers else {
            throw RoostError(
                .featureDisabled, "A channel of more than \(Limits.largeChannelMembers) members doesn't share \(what).",
                limit: Int64(Limits.largeChannelMembers))
        }
    }
}

extension GetUnread: Handled {
    public var isBrief: Bool { true }

    public func handle(in context: inout Context) throws -> UnreadCount {
        try context.unreadCount(in: try context.require(.readingMark, in: channel))
    }
}

extension GetTotalUnread: Handled {
    public func handle(in context: inout Context) throws -> TotalUnread {
        try context.require(.streamRead)
        if let channels = try context.transaction.cachedOwnChannels(of: context.caller.user) { return TotalUnread(channels) }
        let ofUser: SQL = """
            FROM members m JOIN channel_heads h ON h.channel_id = m.channel_id
            WHERE m.user_id = \(context.caller.user) AND m.state = 'member' AND m.is_channel_deleted = 0 AND h.is_deleted = 0
                  AND m.notifications_muted_until IS NULL
            """
        // If no message of these channels was deleted for good, `Unread.count` is the difference of two columns.
        let difference: SQL = """
            SELECT COALESCE(SUM(h.ordinal - m.read_count), 0), COUNT(CASE WHEN h.ordinal > m.read_count THEN 1 END),
                   COUNT(CASE WHEN h.purged_seq > 0 THEN 1 END) \(ofUser)
            """
        let none = TotalUnread(unreadCount: 0, unreadChannelCount: 0)
        let (total, purgedChannels) =
            try context.transaction.first(difference) {
                (TotalUnread(unreadCount: $0.int(), unreadChannelCount: $0.int()), $0.int())
            } ?? (none, 0)
        guard purgedChannels > 0 else { return total }
        let exact: SQL = """
            SELECT COALESCE(SUM(unread), 0), COUNT(CASE WHEN unread > 0 THEN 1 END) FROM (SELECT \(Unread.count) AS unread \(ofUser)) AS counted
            """
        return try context.transaction.first(exact) { TotalUnread(unreadCount: $0.int(), unreadChannelCount: $0.int()) } ?? none
    }
}

extension TotalUnread {
    fileprivate init(_ channels: [OwnChannel]) {
        var (messages, unread) = (0, 0)
        for channel in channels where !channel.states.contains(.muted) {
            messages += Int(channel.unreadCount)
            if channel.unreadCount > 0 { unread += 1 }
        }
        self.init(unreadCount: messages, unreadChannelCount: unread)
    }
}

extension Context {
    /// Moves the caller's read position, and notifies the caller's connections.
    ///
    /// - Returns: The channel with it, and the read position that others saw before the caller marked something as unread.
    fileprivate mutating func moveReading(
        to target: Seq, at time: Timestamp?, _ kind: Event.Kind, in before: ChannelAccess
    ) throws -> (moved: ChannelAccess, receiptSeq: Seq) {
        var access = before
        var member = try access.requireMember()
        let userSeq = try advanceStream(of: caller.user)
        let counts = try transaction.readCounts(upTo: target, of: caller.user, in: access)
        let readBefore = member.row.readSeq
        member.row.readCount = counts.now
        member.row.readSeq = target
        member.row.userSeq = userSeq
        if kind == .readingUnmarked {
            try transaction.keepReceipt(of: caller.user, in: access.channelId)
            member.receiptSeq = max(member.receiptSeq, readBefore)
            try renewMention(of: &member.row)
            try transaction.writeMention(member, of: caller.user, in: access.channelId)
        }
        // Messages that they had read before don't change the time that others see.
        if target > member.receiptSeq { member.row.lastReadAt = time }
        try transaction.writeReading(member.row, count: counts.stored, of: caller.user, in: access.channelId)
        access.member = member
        notify(kind, user: caller.user, seq: userSeq, Rows(access.membership.map { [$0] }))
        return (access, member.receiptSeq)
    }

    /// Returns the unread count of the caller, a member.
    func unreadCount(in access: ChannelAccess) throws -> UnreadCount {
        let member = try access.requireMember()
        return UnreadCount(
            channelId: access.channelId, unreadCount: Unread.count(in: access.counters, for: member.row),
            readSeq: member.row.readSeq, hasMention: try hasMention(in: access))
    }
}
