import RoostAPI

extension ChannelAttributes: BoundRow {
    // derived: columns of c
    static let columns: SQL = "c.display_name, c.avatar_file_id, c.cover_url, c.custom_type, c.data"

    // derived: bound columns
    static let boundColumns: SQL = "display_name, avatar_file_id, cover_url, custom_type, data"

    // derived: init(reading:)
    init(reading row: inout RowReader) throws {
        try self.init(
            displayName: row.value(), avatarFileId: row.value(), coverUrl: row.value(), customType: row.value(), data: row.value())
    }

    // derived: bind(to:)
    func bind(to values: inout RowValues) throws {
        try values.bind(displayName)
        try values.bind(avatarFileId)
        try values.bind(coverUrl)
        try values.bind(customType)
        try values.bind(data)
    }

    // derived: applying(_:)
    /// Returns the attributes with the given ones of another value. An empty text removes one.
    func applying(_ changes: ChannelAttributes) -> ChannelAttributes {
        ChannelAttributes(
            displayName: displayName.replaced(by: changes.displayName),
            avatarFileId: avatarFileId.replaced(by: changes.avatarFileId), coverUrl: coverUrl.replaced(by: changes.coverUrl),
            customType: customType.replaced(by: changes.customType), data: data.replaced(by: changes.data)
        )
    }
}

extension Channel: BoundRow {
    // derived: columns of c, without isPublic and isMuted and isRateLimited, rateLimitWindowSeconds as rate_limit_window
    static let columns: SQL = """
        c.channel_id, c.type, c.is_distinct, c.is_ephemeral, \(ChannelAttributes.columns), c.metadata, c.metadata_version,
        c.metadata_updated_by, c.tags, c.policy, c.is_frozen, c.muted_until, c.rate_limit, c.rate_limit_window,
        c.rate_limited_until, \(ChannelCounters.columns), c.created_by, c.created_at, c.updated_at, c.deleted_at
        """

    // derived: bound columns, without counters
    /// The columns of the channel's own row. Its counters are in that of its stream.
    static let boundColumns: SQL = """
        channel_id, type, is_distinct, is_ephemeral, \(ChannelAttributes.boundColumns), metadata, metadata_version,
        metadata_updated_by, tags, policy, is_frozen, muted_until, rate_limit, rate_limit_window, rate_limited_until, created_by,
        created_at, updated_at, deleted_at
        """

    // derived: init(reading:)
    init(reading row: inout RowReader) throws {
        try self.init(
            channelId: row.value(), type: row.value(), isDistinct: row.value(), isEphemeral: row.value(),
            attributes: ChannelAttributes(reading: &row), metadata: row.value(), metadataVersion: row.value(),
            metadataUpdatedBy: row.value(), tags: row.value(), policy: row.value(), isFrozen: row.value(), mutedUntil: row.value(),
            rateLimit: row.value(), rateLimitWindowSeconds: row.value(), rateLimitedUntil: row.value(),
            counters: ChannelCounters(reading: &row), createdBy: row.value(), createdAt: row.value(), updatedAt: row.value(),
            deletedAt: row.value())
    }

    // derived: bind(to:)
    func bind(to values: inout RowValues) throws {
        try values.bind(channelId)
        try values.bind(type)
        try values.bind(isDistinct)
        try values.bind(isEphemeral)
        try values.bind(attributes)
        try values.bind(metadata)
        try values.bind(metadataVersion)
        try values.bind(metadataUpdatedBy)
        try values.bind(tags)
        try values.bind(policy)
        try values.bind(isFrozen)
        try values.bind(mutedUntil)
        try values.bind(rateLimit)
        try values.bind(rateLimitWindowSeconds)
        try values.bind(rateLimitedUntil)
        try values.bind(createdBy)
        try values.bind(createdAt)
        try values.bind(updatedAt)
        try values.bind(deletedAt)
    }

    /// The columns that ``init(reading:now:)`` reads, in its order.
    static let columnsWithEntry: SQL = "\(columns), c.discovery, c.joining"

    /// Discovery and joining decide whether it is public; `isMuted` and `isRateLimited` are computed from the times at which they end (AM-07, AM-08).
    init(reading row: inout RowReader, now: Timestamp) throws {
        (self, _) = try Channel.withPolicy(reading: &row, now: now)
    }

    /// Reads the same columns, and returns the channel's own policy as well.
    static func withPolicy(reading row: inout RowReader, now: Timestamp) throws -> (Channel, OwnPolicy) {
        var channel = try Channel(reading: &row)
        let policy = OwnPolicy(discovery: try row.value(), join: try row.value(), changes: channel.policy)
        channel.isPublic = policy.discovery == .everyone && policy.join == .everyone
        channel.updateTimedStates(at: now)
        return (channel, policy)
    }
}

extension Context {
    /// Returns a whole channel, which must exist.
    func channel(_ id: ChannelID) throws -> Channel {
        let now = now
        let sql: SQL = """
            SELECT \(Channel.columnsWithEntry) FROM channels c JOIN channel_heads h ON h.channel_id = c.channel_id WHERE c.channel_id = \(id)
            """
        guard let channel = try transaction.first(sql, { try Channel(reading: &$0, now: now) }) else {
            throw ImpossibleState("The channel \(id) doesn't exist.")
        }
        return channel
    }

    /// Returns a channel as the caller sees it; the newest message only if the caller may read it.
    func view(of access: ChannelAccess) throws -> ChannelView { try view(of: access, channel(access.channelId)) }

    /// - Parameter channel: The whole channel.
    func view(of access: ChannelAccess, _ channel: Channel) throws -> ChannelView {
        var view = try view(of: access, channel, capabilities: capabilities(in: access))
        view.users = try summaries(for: CollectionOfOne(view))
        return view
    }

    /// - Parameters:
    ///   - channel: The whole channel.
    ///   - capabilities: The caller's permissions in it.
    func view(of access: ChannelAccess, _ channel: Channel, capabilities: [Permission]) throws -> ChannelView {
        ChannelView(
            channel: channel, membership: access.membership, invitation: access.invitation,
            lastMessage: capabilities.contains(.historyRead)
                ? try transaction.newestMessage(in: access.channelId, above: access.historyFloor).map { try shown($0, in: access) }
                : nil,
            ownCapabilities: capabilities, hasMention: try access.isMember && hasMention(in: access))
    }
}

extension Channel: ContentSized {
    /// Its approximate serialized size in bytes.
    package var contentSizeBytes: Int {
        let texts = [attributes.displayName, attributes.avatarFileId, attributes.coverUrl, attributes.customType, attributes.data]
        var bytes = texts.reduce(800) { $0 + ($1.map(JSONBytes.sizeBytes) ?? 0) }
        bytes += metadata?.sizeBytes ?? 0
        bytes += tags.reduce(0) { $0 + JSONBytes.sizeBytes(of: $1) + 1 }
        bytes += channelId.rawValue.utf8.count
        bytes += (metadataUpdatedBy?.rawValue.utf8.count ?? 0) + (createdBy?.rawValue.utf8.count ?? 0)
        if let policy {
            var json = JSONBytes()
            policy.write(to: &json)
            bytes += json.bytes.count
        }
        return bytes
    }
}

extension [Permission] {
    /// The serialized size of the list in bytes.
    var sizeBytes: Int { reduce(2) { $0 + $1.rawValue.utf8.count + 3 } }
}

extension ChannelView: ContentSized, NamesUsers {
    var namedUsers: [UserID] { (lastMessage?.namedUsers ?? []) + (invitation?.namedUsers ?? []) }
    var contentSizeBytes: Int {
        var bytes = channel.contentSizeBytes + ownCapabilities.sizeBytes + 100
        bytes += membership?.contentSizeBytes ?? 0
        bytes += (lastMessage?.contentSizeBytes ?? 0) + (invitation?.contentSizeBytes ?? 0)
        return bytes
    }
}
