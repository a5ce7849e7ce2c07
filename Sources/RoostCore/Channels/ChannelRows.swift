import RoostAPI

extension Channel {
    /// The columns in which ``init(reading:now:)`` expects them.
    static let columns: SQL = """
        c.channel_id, c.type, c.is_distinct, c.display_name, c.avatar_file_id, c.metadata, c.tags, c.muted_until, c.rate_limit,
        c.rate_limited_until, c.created_by, c.created_at, c.updated_at, c.deleted_at, \(ChannelCounters.columns)
        """

    /// `isMuted` and `isRateLimited` are computed from the times at which they end (AM-07, AM-08).
    init(reading row: inout RowReader, now: Timestamp) throws {
        let channelId = row.identifier(ChannelID.self)
        let type = ChannelType(rawValue: row.string())
        let isDistinct = row.bool()
        let displayName = row.optionalString()
        let avatarFileId = row.optionalString()
        let metadata: JSONValue? = try row.optionalJSON()
        let tags: [String] = try row.optionalJSON() ?? []
        let mutedUntil = row.optionalTimestamp()
        let rateLimit = row.optionalInt64().map { Int(truncatingIfNeeded: $0) }
        let rateLimitedUntil = row.optionalTimestamp()
        self.init(
            channelId: channelId, type: type, isDistinct: isDistinct, displayName: displayName, avatarFileId: avatarFileId,
            metadata: metadata, tags: tags, isMuted: mutedUntil.map { $0 > now } ?? false,
            isRateLimited: rateLimitedUntil.map { $0 > now } ?? false, rateLimit: rateLimit,
            createdBy: row.optionalString().map(UserID.init), createdAt: row.timestamp(), updatedAt: row.timestamp(),
            deletedAt: row.optionalTimestamp(), counters: ChannelCounters(reading: &row))
    }
}

extension Context {
    /// A whole channel. Throws `not_found` when there is none.
    func channel(_ id: ChannelID) throws -> Channel {
        let now = now
        let sql: SQL = """
            SELECT \(Channel.columns) FROM channels c JOIN channel_heads h ON h.channel_id = c.channel_id WHERE c.channel_id = \(id)
            """
        guard let channel = try transaction.first(sql, { try Channel(reading: &$0, now: now) }) else {
            throw RoostError.notFound("channel")
        }
        return channel
    }

    /// A channel with what it is to the caller; the newest message only where the caller may read it.
    func view(of access: ChannelAccess) throws -> ChannelView {
        let mayRead = Permissions.refusal(of: .historyRead, for: caller, in: access) == nil
        return ChannelView(
            channel: try channel(access.channelId), membership: access.membership,
            lastMessage: mayRead ? try transaction.newestMessage(in: access.channelId) : nil)
    }
}
