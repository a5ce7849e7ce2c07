public import RoostAPI

extension GetChannelChanges: Handled {
    public func handle(in context: inout Context) throws -> Changes {
        guard let access = try context.transaction.access(to: channel, of: context.caller.user) else {
            throw RoostError.notFound("channel")
        }
        // A member who may not read follows the stream without messages, as its events are told to them.
        if let refusal = context.refusal(of: .historyRead, in: access), !access.isMember || refusal.code == .banned {
            throw refusal
        }
        return try context.changes(
            in: access, above: context.readingFloor(in: access), after: after, limit: try Limits.page(limit, Limits.changesPage))
    }
}

extension Context {
    /// The rows of a channel that changed after a position: at most `limit` of each kind, up to a position that all of them reach.
    ///
    /// A page ends where the shortest of its lists was cut, so that nothing between is left out; rows that changed again later come with
    /// their newest content, which an upsert by `changeSeq` takes in its stride.
    ///
    /// - Parameter floor: messages up to it are left out.
    func changes(in access: ChannelAccess, above floor: Seq, after: Seq, limit: Int) throws -> Changes {
        let channel = access.channelId
        let stream = StreamID.channel(channel)
        guard after <= access.counters.seq else {
            throw RoostError(
                .resyncRequired, "The channel's stream ends at \(access.counters.seq): forget the channel and start afresh.",
                field: "after", limit: access.counters.seq)
        }
        guard after < access.counters.seq else { return Changes(stream: stream, rows: Rows(), seq: after, hasMore: false) }

        // The two together are one page.
        let sizeBytesMax = Limits.pageContentBytes / 2
        let born = try transaction.messages(after: max(after, floor), in: channel, limit: limit, sizeBytesMax: sizeBytesMax)
        let changed = try transaction.messages(
            changedAfter: after, above: floor, in: channel, limit: limit, sizeBytesMax: sizeBytesMax)
        let members = try transaction.members(changedAfter: after, in: channel, limit: limit)
        let invitations = try transaction.invitations(changedAfter: after, in: channel, limit: limit)
        var upTo = access.counters.seq
        if born.hasMore, let last = born.messages.last { upTo = min(upTo, last.seq) }
        if changed.hasMore, let last = changed.messages.last { upTo = min(upTo, last.changeSeq) }
        if members.hasMore, let last = members.members.last { upTo = min(upTo, last.changeSeq) }
        if invitations.hasMore, let last = invitations.stamped.last { upTo = min(upTo, last.stamp) }

        let messages = born.messages.filter { $0.seq <= upTo } + changed.messages.filter { $0.changeSeq <= upTo }
        let attributesChanged = try transaction.channelChangeSeq(channel) > after
        let newMembers = members.members.filter { $0.changeSeq <= upTo }
        let newInvitations = invitations.stamped.filter { $0.stamp <= upTo }.map(\.invitation)
        // What the caller may do can have changed with the channel and with the caller's own row.
        let mayDiffer = access.own != nil && (attributesChanged || newMembers.contains { $0.userId == caller.user })
        return Changes(
            stream: stream,
            rows: Rows(
                channel: attributesChanged ? try self.channel(channel) : nil, counters: access.counters,
                members: newMembers, messages: messages, memberships: access.membership.map { [$0] },
                invitations: newInvitations.isEmpty ? nil : newInvitations,
                ownCapabilities: mayDiffer ? [channel.rawValue: capabilities(in: access)] : nil),
            seq: upTo, hasMore: upTo < access.counters.seq, isIncomplete: access.isEphemeral ? true : nil)
    }

    /// A channel as a fresh client gets it: all of the channel's own row, the caller's membership, the newest messages.
    func freshChanges(in access: ChannelAccess) throws -> Changes {
        let newest = try transaction.messages(
            before: .max, above: readingFloor(in: access), in: access.channelId, limit: Limits.freshMessages)
        return Changes(
            stream: .channel(access.channelId),
            rows: Rows(
                channel: try channel(access.channelId), messages: newest.messages, memberships: access.membership.map { [$0] },
                ownCapabilities: [access.channelId.rawValue: capabilities(in: access)]),
            seq: access.counters.seq, hasMore: false, isFresh: true)
    }
}

extension Context {
    /// The messages up to this seq aren't for the caller: none are for who may not read.
    func readingFloor(in access: ChannelAccess) -> Seq {
        refusal(of: .historyRead, in: access) == nil ? access.historyFloor : .max
    }
}

extension Transaction {
    fileprivate func channelChangeSeq(_ channel: ChannelID) throws -> Seq {
        try first("SELECT change_seq FROM channels WHERE channel_id = \(channel)") { $0.int64() } ?? 0
    }

    fileprivate func members(changedAfter seq: Seq, in channel: ChannelID, limit: Int) throws -> (members: [Member], hasMore: Bool)
    {
        let sql: SQL = """
            SELECT \(Member.columns) FROM members m WHERE m.channel_id = \(channel) AND m.change_seq > \(seq)
            ORDER BY m.change_seq LIMIT \(limit + 1)
            """
        let members = try rows(sql) { try Member(reading: &$0) }
        guard members.count > limit, let last = members.prefix(limit).last?.changeSeq else { return (members, false) }
        // The first members of a channel have one seq: a page never ends between rows of the same.
        let whole: SQL = """
            SELECT \(Member.columns) FROM members m
            WHERE m.channel_id = \(channel) AND m.change_seq > \(seq) AND m.change_seq <= \(last) ORDER BY m.change_seq
            """
        return (try rows(whole) { try Member(reading: &$0) }, true)
    }
}
