/// A chat channel, in the one shape that every observer sees (AM-04). Fields without a value are `null`, never absent.
public struct Channel: Hashable, Sendable {
    public var channelId: ChannelID
    public var type: ChannelType
    public var isDistinct: Bool
    public var displayName: String?
    /// An uploaded file used as the channel's picture (AM-11).
    public var avatarFileId: String?
    /// The app's own data, at most 100 kB, the last writer wins (AM-35, AM-36).
    public var metadata: JSONValue?
    /// For search and filters (AM-06).
    public var tags: [String]
    /// Whether the whole channel is silenced for ordinary members (AM-07).
    public var isMuted: Bool
    public var isRateLimited: Bool
    /// Messages per window while the channel is rate limited (AM-08).
    public var rateLimit: Int?
    public var createdBy: UserID?
    public var createdAt: Timestamp
    /// When an attribute of the channel last changed.
    public var updatedAt: Timestamp
    /// Set when the channel was deleted. A deleted channel stays readable for admins and for those who were members (AM-34).
    public var deletedAt: Timestamp?
    public var counters: ChannelCounters

    public init(
        channelId: ChannelID, type: ChannelType, isDistinct: Bool = false, displayName: String? = nil,
        avatarFileId: String? = nil, metadata: JSONValue? = nil, tags: [String] = [], isMuted: Bool = false,
        isRateLimited: Bool = false, rateLimit: Int? = nil, createdBy: UserID?, createdAt: Timestamp, updatedAt: Timestamp,
        deletedAt: Timestamp? = nil, counters: ChannelCounters
    ) {
        self.channelId = channelId
        self.type = type
        self.isDistinct = isDistinct
        self.displayName = displayName
        self.avatarFileId = avatarFileId
        self.metadata = metadata
        self.tags = tags
        self.isMuted = isMuted
        self.isRateLimited = isRateLimited
        self.rateLimit = rateLimit
        self.createdBy = createdBy
        self.createdAt = createdAt
        self.updatedAt = updatedAt
        self.deletedAt = deletedAt
        self.counters = counters
    }
}

/// What changes with every durable change of a channel, apart from its attributes: so that a message doesn't carry 100 kB of metadata.
public struct ChannelCounters: Codable, Hashable, Sendable {
    /// The seq of the newest durable change.
    public var seq: Seq
    public var memberCount: Int
    /// Messages sent in the channel, deleted ones included.
    public var messageCount: Int
    /// When the newest durable change was made (AM-10).
    public var lastActivity: Timestamp

    public init(seq: Seq, memberCount: Int, messageCount: Int, lastActivity: Timestamp) {
        self.seq = seq
        self.memberCount = memberCount
        self.messageCount = messageCount
        self.lastActivity = lastActivity
    }
}

extension Channel: Codable {
    private enum CodingKeys: String, CodingKey {
        case channelId, type, isDistinct, displayName, avatarFileId, metadata, tags, isMuted, isRateLimited, rateLimit
        case memberCount, messageCount, lastActivity, createdBy, createdAt, updatedAt, deletedAt, seq
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(channelId, forKey: .channelId)
        try container.encode(type, forKey: .type)
        try container.encode(isDistinct, forKey: .isDistinct)
        try container.encode(displayName, forKey: .displayName)
        try container.encode(avatarFileId, forKey: .avatarFileId)
        try container.encode(metadata, forKey: .metadata)
        try container.encode(tags, forKey: .tags)
        try container.encode(isMuted, forKey: .isMuted)
        try container.encode(isRateLimited, forKey: .isRateLimited)
        try container.encode(rateLimit, forKey: .rateLimit)
        try container.encode(counters.memberCount, forKey: .memberCount)
        try container.encode(counters.messageCount, forKey: .messageCount)
        try container.encode(counters.lastActivity, forKey: .lastActivity)
        try container.encode(createdBy, forKey: .createdBy)
        try container.encode(createdAt, forKey: .createdAt)
        try container.encode(updatedAt, forKey: .updatedAt)
        try container.encode(deletedAt, forKey: .deletedAt)
        try container.encode(counters.seq, forKey: .seq)
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        channelId = try container.decode(ChannelID.self, forKey: .channelId)
        type = try container.decode(ChannelType.self, forKey: .type)
        isDistinct = try container.decode(Bool.self, forKey: .isDistinct)
        displayName = try container.decodeIfPresent(String.self, forKey: .displayName)
        avatarFileId = try container.decodeIfPresent(String.self, forKey: .avatarFileId)
        metadata = try container.decodeIfPresent(JSONValue.self, forKey: .metadata)
        tags = try container.decode([String].self, forKey: .tags)
        isMuted = try container.decode(Bool.self, forKey: .isMuted)
        isRateLimited = try container.decode(Bool.self, forKey: .isRateLimited)
        rateLimit = try container.decodeIfPresent(Int.self, forKey: .rateLimit)
        let memberCount = try container.decode(Int.self, forKey: .memberCount)
        let messageCount = try container.decode(Int.self, forKey: .messageCount)
        let lastActivity = try container.decode(Timestamp.self, forKey: .lastActivity)
        createdBy = try container.decodeIfPresent(UserID.self, forKey: .createdBy)
        createdAt = try container.decode(Timestamp.self, forKey: .createdAt)
        updatedAt = try container.decode(Timestamp.self, forKey: .updatedAt)
        deletedAt = try container.decodeIfPresent(Timestamp.self, forKey: .deletedAt)
        let seq = try container.decode(Seq.self, forKey: .seq)
        counters = ChannelCounters(seq: seq, memberCount: memberCount, messageCount: messageCount, lastActivity: lastActivity)
    }
}

/// A channel together with what it is to the caller: one row of a channel list.
public struct ChannelView: Codable, Hashable, Sendable {
    public var channel: Channel
    /// Absent when the caller isn't and never was a member.
    public var membership: Membership?
    public var lastMessage: Message?

    public init(channel: Channel, membership: Membership?, lastMessage: Message? = nil) {
        self.channel = channel
        self.membership = membership
        self.lastMessage = lastMessage
    }

    /// Messages that the caller hasn't read: 0 for who isn't a member (AM-43).
    public var unreadCount: Int { membership.map { Unread.count(in: channel.counters, for: $0) } ?? 0 }
}
