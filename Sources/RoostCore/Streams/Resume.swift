public import RoostAPI

extension Resume: Handled {
    /// Returns the caller's stream first, then each channel with changes, the most recently active first, as far as one answer has room.
    public func handle(in context: inout Context) throws -> Resumption {
        try context.require(.streamRead)
        let user = try context.myChanges(after: after, limit: Limits.changesPage.standard)
        var channels: [Changes] = []
        var rowCount = 0
        var sizeBytes = 0
        var hasMore = user.hasMore
        let rowsMax = self.channels.isEmpty ? Limits.resumeRows.first : Limits.resumeRows.max
        var capabilityCache = Permissions.CapabilityCache(of: context.caller.role, now: context.now)
        for channel in try staleChannels(in: context.transaction, of: context.caller.user) {
            guard rowCount < rowsMax else {
                hasMore = true
                break
            }
            guard let changes = try changes(of: channel, in: context, &capabilityCache) else { continue }
            // The caller's own membership counts as one with its channel: it is sent with nearly every one of them.
            rowCount += 1 + changes.rows.count - (changes.rows.memberships?.count ?? 0)
            sizeBytes += Self.sizeBytes(of: changes, in: channel)
            guard channels.isEmpty || sizeBytes <= Limits.pageContentBytes else {
                hasMore = true
                break
            }
            hasMore = hasMore || changes.hasMore
            channels.append(changes)
        }
        return Resumption(
            user: user, channels: channels, hasMore: hasMore,
            users: try context.summaries(for: channels.map(\.rows) + [user.rows]))
    }

    /// The approximate size of a channel's part of the answer in bytes. Its id is in the stream's name, and next to the caller's capabilities.
    private static func sizeBytes(of changes: Changes, in channel: ChannelID) -> Int {
        let rows = changes.rows
        var bytes = rows.contentSizeBytes + (rows.channel?.contentSizeBytes ?? 0) + 100
        bytes += rows.counters == nil ? 0 : 200
        bytes += rows.ownCapabilities?.values.reduce(0) { $0 + $1.sizeBytes } ?? 0
        bytes += channel.rawValue.utf8.count * 2
        return bytes
    }

    /// Returns whether so many messages were missed that starting from the newest is better.
    private func hasMissedTooMuch(after held: Seq, in access: ChannelAccess, _ transaction: any Transaction) throws -> Bool {
        let (limit, counters) = (Limits.resumeMessagesPerChannel, access.counters)
        // Every message has its own seq.
        guard counters.seq - held > limit else { return false }
        // One look-up gives the number of missed counting messages, including those deleted for good, and is usually enough. Messages are
        // only counted if that can differ.
        let missed = counters.ordinal - (try transaction.ordinal(upTo: held, in: access))
        if missed > limit, access.purgedSeq <= held { return true }
        // Old messages that were changed or deleted are sent one by one as well.
        if try transaction.hasMoreChanges(than: limit, after: held, in: access.channelId) { return true }
        if access.purgedSeq == 0, counters.messageCount == counters.ordinal { return missed > limit }
        return try transaction.hasMoreMessages(than: limit, after: held, in: access.channelId)
    }

    /// Returns the requested ones of the caller's channels whose newest change the client doesn't have, the most recently active first.
    private func staleChannels(in transaction: any Transaction, of user: UserID) throws -> some Sequence<ChannelID> {
        func heads(_ sql: SQL) throws -> [(id: ChannelID, seq: Seq, lastActivity: Int64)] {
            try transaction.rows(sql) { (id: $0.identifier(), seq: $0.int64(), lastActivity: $0.int64()) }
        }
        let living: SQL = """
            SELECT m.channel_id, h.seq, h.last_activity FROM members m JOIN channel_heads h ON h.channel_id = m.channel_id
            WHERE m.user_id = \(user) AND m.state = \(MembershipState.member) AND m.is_channel_deleted = 0 AND h.is_deleted = 0
            """
        var own = try heads(living)
        var heldCount = 0
        // Each page of a resume sorts all the remaining ones: numbers are moved in a fraction of the time that names take.
        var order: [(Int64, Int)] = []
        for (index, head) in own.enumerated() where covers(head.id.rawValue) {
            let held = position(in: head.id)
            if held != nil { heldCount += 1 }
            if held != head.seq { order.append((head.lastActivity, index)) }
        }
        // Deleted channels only matter if the client has them: there may be any number of others.
        if heldCount < channels.count {
            let known = Set(own.lazy.map(\.id))
            for part in channels.keys.filter({ !known.contains(ChannelID($0)) }).sorted().chunked(by: 512) {
                // `CROSS JOIN` makes SQLite start with the named channels: otherwise it would scan all of the user's.
                let deleted: SQL = """
                    SELECT h.channel_id, h.seq, h.last_activity FROM channel_heads h CROSS JOIN members m
                    WHERE h.channel_id IN (\(list: part)) AND h.is_deleted = 1
                        AND m.channel_id = h.channel_id AND m.user_id = \(user) AND m.state = \(MembershipState.member)
                    """
                for head in try heads(deleted) where position(in: head.id) != head.seq {
                    order.append((head.lastActivity, own.count))
                    own.append(head)
                }
            }
        }
        order.sort { $0.0 != $1.0 ? $0.0 > $1.0 : own[$0.1].id < own[$1.1].id }
        return order.lazy.map { own[$0.1].id }
    }

    /// The client's position in a channel; nil if it doesn't hold the channel. The keys are strings, of which two with different bytes may be equal.
    private func position(in channel: ChannelID) -> Seq? {
        guard let place = channels.index(forKey: channel.rawValue), ChannelID(channels[place].key) == channel else { return nil }
        return channels[place].value
    }

    private func changes(
        of channel: ChannelID, in context: Context, _ cache: inout Permissions.CapabilityCache
    ) throws -> Changes? {
        let (transaction, caller) = (context.transaction, context.caller.user)
        guard let held = position(in: channel) else {
            let found = try transaction.accessWithAttributes(to: channel, of: caller, now: context.now)
            // A deleted channel that the client never had is left out.
            guard let (access, whole) = found, access.deletedAt == nil else { return nil }
            return try context.freshChanges(in: access, whole, &cache)
        }
        guard let access = try transaction.access(to: channel, of: caller) else { return nil }
        // A position beyond the end dates from before a backup was restored.
        let isFresh =
            try held > access.counters.seq || (!access.isEphemeral && hasMissedTooMuch(after: held, in: access, transaction))
        guard !isFresh else { return try context.freshChanges(in: access, context.channel(channel), &cache) }
        // Missed messages of an ephemeral channel can't be counted or sent: the remaining rows are sent.
        return try context.changes(
            in: access, above: context.readingFloor(in: access), after: held, limit: Limits.changesPage.standard)
    }
}
