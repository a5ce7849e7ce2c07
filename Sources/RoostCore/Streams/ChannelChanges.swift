public import RoostAPI

extension GetChannelChanges: Handled {
    public func handle(in context: inout Context) throws -> Changes {
        guard let access = try context.transaction.access(to: channel, of: context.caller.user) else {
            throw RoostError.notFound("channel")
        }
        // A member who may not read follows the stream without messages, as in its events.
        if let refusal = context.refusal(of: .historyRead, in: access), !access.isMember || refusal.code == .banned {
            throw refusal
        }
        var changes = try context.changes(
            in: access, above: context.readingFloor(in: access), after: after, limit: try Limits.page(limit, Limits.changesPage))
        changes.users = try context.summaries(for: [changes.rows])
        return changes
    }
}

extension Context {
    /// Returns the rows of a channel that changed after a position: at most about `limit` of each kind, up to a position that all kinds reach.
    ///
    /// A page ends where the shortest of its lists was cut, so nothing in between is left out. Rows that changed again later
    /// have their newest content, which an upsert by `changeSeq` handles.
    ///
    /// - Parameter floor: The seq up to which rows about messages are left out.
    func changes(in access: ChannelAccess, above floor: Seq, after: Seq, limit: Int) throws -> Changes {
        let channel = access.channelId
        let stream = StreamID.channel(channel)
        guard after <= access.counters.seq else {
            throw RoostError(
                .resyncRequired, "The channel's stream ends at \(access.counters.seq): discard the channel and start over.",
                field: "after", limit: access.counters.seq)
        }
        guard after < access.counters.seq else { return Changes(stream: stream, rows: Rows(), seq: after, hasMore: false) }

        let request = ChannelChangesRequest(
            transaction: transaction, channel: channel, after: after, head: access.counters.seq, floor: floor, limit: limit,
            sizeBytesMax: Limits.pageContentBytes, hasPurges: access.purgedSeq > 0, kinds: access.rowKinds)
        // The server's own view has all kinds: the delivery of an event decides which receivers get which of them.
        let changed = try changedRows(for: request, visibleTo: caller.isServer ? nil : access)
        let upTo = min(changed.upTo ?? .max, access.counters.seq)
        let attributesChanged = access.changeSeq > after
        var rows = try shown(changed.rows(upTo: upTo), in: access)
        rows.counters = access.counters
        if attributesChanged { rows.channel = try self.channel(channel) }
        rows[Membership.self] = access.membership.map { [$0] }
        // The capabilities of the caller, or of a watching non-member, can change with the channel and with the caller's own row.
        let ownChanged = access.member.map { $0.changeSeq > after && $0.changeSeq <= upTo } ?? false
        if !caller.isServer, attributesChanged || ownChanged {
            rows.ownCapabilities = [channel.rawValue: capabilities(in: access)]
        }
        return Changes(
            stream: stream, rows: rows, seq: upTo, hasMore: upTo < access.counters.seq,
            isIncomplete: access.isEphemeral ? true : nil)
    }

    /// Returns a channel for a fresh client: the channel's whole row, the caller's membership, and each kind's first rows, such
    /// as the newest messages.
    ///
    /// - Parameter cache: The capabilities of channels in the same answer.
    func freshChanges(
        in access: ChannelAccess, _ channel: Channel, _ cache: inout Permissions.CapabilityCache
    ) throws -> Changes {
        var rows = try freshRows(
            in: access, for: caller.user, above: readingFloor(in: access), messages: Limits.freshMessages)
        rows.channel = channel
        rows[Membership.self] = access.membership.map { [$0] }
        rows.ownCapabilities = [access.channelId.rawValue: cache.capabilities(in: access.facts)]
        return Changes(
            stream: .channel(access.channelId), rows: rows, seq: access.counters.seq, hasMore: false, isFresh: true)
    }
}

extension Context {
    /// Returns a member's view of a channel that they get while connected: the newest message, which their list of channels
    /// shows, and the rows that belong to no message on the client. Older messages are fetched as pages of history.
    ///
    /// - Parameter access: The member's.
    func arrivingRows(in access: ChannelAccess, for user: UserID) throws -> Rows {
        // Earlier content of an ephemeral channel isn't available to anyone.
        guard !access.isEphemeral, access.counters.messageCount > 0, mayReadAsUser(access) else { return Rows() }
        return try freshRows(in: access, for: user, above: access.historyFloor, messages: 1)
    }

    /// Returns the seq up to which messages are hidden from the caller: all of them for callers without the right to read.
    func readingFloor(in access: ChannelAccess) -> Seq {
        refusal(of: .historyRead, in: access) == nil ? access.historyFloor : .max
    }
}
