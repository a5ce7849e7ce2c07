import RoostAPI

extension Channel {
    /// The columns in which ``init(reading:now:)`` expects them.
    static let columns: SQL = """
        c.channel_id, c.type, c.is_distinct, c.discovery, c.joining, c.is_ephemeral, c.display_name, c.avatar_file_id, c.cover_url,
        c.custom_type, c.data, c.metadata, c.metadata_version, c.metadata_updated_by, c.tags, c.policy, c.is_frozen, c.muted_until,
        c.rate_limit, c.rate_limit_window, c.rate_limited_until, c.created_by, c.created_at, c.updated_at, c.deleted_at,
        \(ChannelCounters.columns)
        """

    /// `isMuted` and `isRateLimited` are computed from the times at which they end (AM-07, AM-08).
    init(reading row: inout RowReader, now: Timestamp) throws {
        self.init(
            channelId: row.identifier(), type: ChannelType(rawValue: row.string()),
            counters: ChannelCounters(seq: 0, memberCount: 0, messageCount: 0, lastActivity: now), createdAt: now, updatedAt: now)
        isDistinct = row.bool()
        let (discovery, join): (ChannelPolicy.Audience, ChannelPolicy.Audience) = (try row.enumeration(), try row.enumeration())
        isPublic = discovery == .everyone && join == .everyone
        isEphemeral = row.bool()
        displayName = row.optionalString()
        avatarFileId = row.optionalString()
        coverUrl = row.optionalString()
        customType = row.optionalString()
        data = row.optionalString()
        metadata = try row.optionalJSON()
        metadataVersion = row.int()
        metadataUpdatedBy = row.optionalString().map(UserID.init)
        tags = try row.optionalJSON() ?? []
        policy = try row.optionalJSON()
        isFrozen = row.bool()
        mutedUntil = row.optionalTimestamp()
        rateLimit = row.optionalInt64().map { Int(truncatingIfNeeded: $0) }
        rateLimitWindowSeconds = row.optionalInt64().map { Int(truncatingIfNeeded: $0) }
        rateLimitedUntil = row.optionalTimestamp()
        createdBy = row.optionalString().map(UserID.init)
        createdAt = row.timestamp()
        updatedAt = row.timestamp()
        deletedAt = row.optionalTimestamp()
        counters = ChannelCounters(reading: &row)
        updateTimedStates(now: now)
    }

    /// Sets what follows from the clock.
    mutating func updateTimedStates(now: Timestamp) {
        isMuted = mutedUntil.map { $0 > now } ?? false
        isRateLimited = rateLimitedUntil.map { $0 > now } ?? false
    }
}

extension Context {
    /// A whole channel, of which the rules know that it is there.
    func channel(_ id: ChannelID) throws -> Channel {
        let now = now
        let sql: SQL = """
            SELECT \(Channel.columns) FROM channels c JOIN channel_heads h ON h.channel_id = c.channel_id WHERE c.channel_id = \(id)
            """
        guard let channel = try transaction.first(sql, { try Channel(reading: &$0, now: now) }) else {
            throw ImpossibleState("The channel \(id) isn't there.")
        }
        return channel
    }

    /// A channel with what it is to the caller; the newest message only where the caller may read it.
    func view(of access: ChannelAccess) throws -> ChannelView {
        let mayRead = refusal(of: .historyRead, in: access) == nil
        return ChannelView(
            channel: try channel(access.channelId), membership: access.membership, invitation: access.invitation,
            lastMessage: mayRead ? try transaction.newestMessage(in: access.channelId, above: access.historyFloor) : nil,
            ownCapabilities: capabilities(in: access))
    }
}
