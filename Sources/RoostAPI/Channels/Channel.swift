/// A chat channel, in the one shape that every observer sees (AM-04, SB-09). Fields without a value are `null`, never absent.
public struct Channel: ChannelAttributesCarrying, Hashable, Sendable {  // wire: nil is null
    /// The id of the channel, for its whole life.
    public var channelId: ChannelID
    /// Its type, which decides its rules.
    public var type: ChannelType
    /// Whether it is the only channel with exactly its members (SB-05). Ends when a user is invited or leaves.
    public var isDistinct: Bool = false
    /// Whether everyone can find it and join without an invitation (SB-03).
    public var isPublic: Bool = false
    /// Whether its messages aren't stored (SB-04).
    public var isEphemeral: Bool = false
    /// The text attributes, which read as fields of the channel.
    public var attributes: ChannelAttributes  // inline
    /// The app's own data, at most 100 kB; the last writer wins (AM-35, AM-36).
    public var metadata: JSONValue?
    /// Increases with each write of the metadata; 0 before the first.
    public var metadataVersion: Int = 0
    /// The user who last wrote the metadata.
    public var metadataUpdatedBy: UserID?
    /// For search and filters (AM-06).
    public var tags: [String] = []
    /// How the channel's policy differs from its type's; `null` if it doesn't.
    public var policy: PolicyChanges?
    /// Whether ordinary members can't send until it is unfrozen (SB-21).
    public var isFrozen: Bool = false
    /// Whether the channel is currently silenced for ordinary members.
    public var isMuted: Bool = false
    /// When the silence for ordinary members ends (AM-07). ``Channel/isMuted`` says whether that is in the future.
    public var mutedUntil: Timestamp?
    /// Whether a rate limit is currently set. It is only shown; the server doesn't enforce it yet.
    public var isRateLimited: Bool = false
    /// Messages per window of the rate limit (AM-08).
    public var rateLimit: Int?
    /// The length of that window.
    public var rateLimitWindowSeconds: Int?
    /// When the rate limit ends.
    public var rateLimitedUntil: Timestamp?
    /// The values that change with every durable change of the channel.
    public var counters: ChannelCounters  // wire: inline, seq last
    /// Who created it; nil for the server.
    public var createdBy: UserID?
    /// When it was created.
    public var createdAt: Timestamp
    /// When an attribute of the channel last changed.
    public var updatedAt: Timestamp
    /// Set when the channel was deleted. A deleted channel stays readable for admins and for those who were members (AM-34).
    public var deletedAt: Timestamp?

    // derived: package init
    package init(
        channelId: ChannelID, type: ChannelType, isDistinct: Bool = false, isPublic: Bool = false, isEphemeral: Bool = false,
        attributes: ChannelAttributes, metadata: JSONValue? = nil, metadataVersion: Int = 0, metadataUpdatedBy: UserID? = nil,
        tags: [String] = [], policy: PolicyChanges? = nil, isFrozen: Bool = false, isMuted: Bool = false,
        mutedUntil: Timestamp? = nil, isRateLimited: Bool = false, rateLimit: Int? = nil, rateLimitWindowSeconds: Int? = nil,
        rateLimitedUntil: Timestamp? = nil, counters: ChannelCounters, createdBy: UserID? = nil, createdAt: Timestamp,
        updatedAt: Timestamp, deletedAt: Timestamp? = nil
    ) {
        self.channelId = channelId
        self.type = type
        self.isDistinct = isDistinct
        self.isPublic = isPublic
        self.isEphemeral = isEphemeral
        self.attributes = attributes
        self.metadata = metadata
        self.metadataVersion = metadataVersion
        self.metadataUpdatedBy = metadataUpdatedBy
        self.tags = tags
        self.policy = policy
        self.isFrozen = isFrozen
        self.isMuted = isMuted
        self.mutedUntil = mutedUntil
        self.isRateLimited = isRateLimited
        self.rateLimit = rateLimit
        self.rateLimitWindowSeconds = rateLimitWindowSeconds
        self.rateLimitedUntil = rateLimitedUntil
        self.counters = counters
        self.createdBy = createdBy
        self.createdAt = createdAt
        self.updatedAt = updatedAt
        self.deletedAt = deletedAt
    }

    // derived: flat init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        channelId: ChannelID, type: ChannelType, isDistinct: Bool = false, isPublic: Bool = false, isEphemeral: Bool = false,
        displayName: String? = nil, avatarFileId: String? = nil, coverUrl: String? = nil, customType: String? = nil,
        data: String? = nil, metadata: JSONValue? = nil, metadataVersion: Int = 0, metadataUpdatedBy: UserID? = nil,
        tags: [String] = [], policy: PolicyChanges? = nil, isFrozen: Bool = false, isMuted: Bool = false,
        mutedUntil: Timestamp? = nil, isRateLimited: Bool = false, rateLimit: Int? = nil, rateLimitWindowSeconds: Int? = nil,
        rateLimitedUntil: Timestamp? = nil, counters: ChannelCounters, createdBy: UserID? = nil, createdAt: Timestamp,
        updatedAt: Timestamp, deletedAt: Timestamp? = nil
    ) {
        let attributes = ChannelAttributes(
            displayName: displayName, avatarFileId: avatarFileId, coverUrl: coverUrl, customType: customType, data: data
        )
        self.init(
            channelId: channelId, type: type, isDistinct: isDistinct, isPublic: isPublic, isEphemeral: isEphemeral,
            attributes: attributes, metadata: metadata, metadataVersion: metadataVersion, metadataUpdatedBy: metadataUpdatedBy,
            tags: tags, policy: policy, isFrozen: isFrozen, isMuted: isMuted, mutedUntil: mutedUntil, isRateLimited: isRateLimited,
            rateLimit: rateLimit, rateLimitWindowSeconds: rateLimitWindowSeconds, rateLimitedUntil: rateLimitedUntil,
            counters: counters, createdBy: createdBy, createdAt: createdAt, updatedAt: updatedAt, deletedAt: deletedAt
        )
    }
}

extension Channel {
    /// Sets the states that depend on when a silence and a rate limit end (AM-07, AM-08).
    package mutating func updateTimedStates(at now: Timestamp) {
        isMuted = mutedUntil.map { $0 > now } ?? false
        isRateLimited = rateLimitedUntil.map { $0 > now } ?? false
    }
}

extension Channel: Identifiable {
    /// ``channelId``.
    public var id: ChannelID { channelId }
}

extension Channel: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("channelId", channelId)
        json.member("type", type)
        json.member("isDistinct", isDistinct)
        json.member("isPublic", isPublic)
        json.member("isEphemeral", isEphemeral)
        json.memberOrNull("displayName", attributes.displayName)
        json.memberOrNull("avatarFileId", attributes.avatarFileId)
        json.memberOrNull("coverUrl", attributes.coverUrl)
        json.memberOrNull("customType", attributes.customType)
        json.memberOrNull("data", attributes.data)
        json.memberOrNull("metadata", metadata)
        json.member("metadataVersion", metadataVersion)
        json.memberOrNull("metadataUpdatedBy", metadataUpdatedBy)
        json.member("tags", tags)
        json.memberOrNull("policy", policy)
        json.member("isFrozen", isFrozen)
        json.member("isMuted", isMuted)
        json.memberOrNull("mutedUntil", mutedUntil)
        json.member("isRateLimited", isRateLimited)
        json.memberOrNull("rateLimit", rateLimit)
        json.memberOrNull("rateLimitWindowSeconds", rateLimitWindowSeconds)
        json.memberOrNull("rateLimitedUntil", rateLimitedUntil)
        json.member("memberCount", counters.memberCount)
        json.member("messageCount", counters.messageCount)
        json.member("ordinal", counters.ordinal)
        json.member("lastActivity", counters.lastActivity)
        json.memberOrNull("lastMessageAt", counters.lastMessageAt)
        json.memberOrNull("createdBy", createdBy)
        json.member("createdAt", createdAt)
        json.member("updatedAt", updatedAt)
        json.memberOrNull("deletedAt", deletedAt)
        json.member("seq", counters.seq)
        json.endObject()
    }
}

/// The values that change with every durable change of a channel, kept apart from its attributes: a message needn't carry 100 kB of metadata.
public struct ChannelCounters: Codable, Hashable, Sendable {
    /// The seq of the newest durable change.
    public var seq: Seq
    /// The current number of members.
    public var memberCount: Int
    /// The number of messages in the channel, including deleted ones.
    public var messageCount: Int
    /// The ordinal of the newest counting message: the number of such messages ever sent (`Unread.counts`). It never falls.
    public var ordinal: Int
    /// When the newest durable change was made (AM-10).
    public var lastActivity: Timestamp
    /// When the newest message was sent; absent if there is none.
    public var lastMessageAt: Timestamp?

    /// - Parameter ordinal: Defaults to `messageCount`, which is right if every message counts.
    public init(
        seq: Seq, memberCount: Int, messageCount: Int, ordinal: Int? = nil, lastActivity: Timestamp, lastMessageAt: Timestamp? = nil
    ) {
        self.ordinal = ordinal ?? messageCount
        self.seq = seq
        self.memberCount = memberCount
        self.messageCount = messageCount
        self.lastActivity = lastActivity
        self.lastMessageAt = lastMessageAt
    }
}

extension ChannelCounters: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("seq", seq)
        json.member("memberCount", memberCount)
        json.member("messageCount", messageCount)
        json.member("ordinal", ordinal)
        json.member("lastActivity", lastActivity)
        json.member("lastMessageAt", lastMessageAt)
        json.endObject()
    }
}

extension ChannelCounters: PlainReadable {
    // derived: init(plainly:)
    package init?(plainly json: inout PlainJSON) {
        var (seq, memberCount, messageCount, ordinal, lastActivity, lastMessageAt): (Seq?, Int?, Int?, Int?, Timestamp?, Timestamp?)
        let isPlain = json.members { key, json in
            switch key {
            case "seq": json.read(into: &seq)
            case "memberCount": json.read(into: &memberCount)
            case "messageCount": json.read(into: &messageCount)
            case "ordinal": json.read(into: &ordinal)
            case "lastActivity": json.read(into: &lastActivity)
            case "lastMessageAt": json.read(into: &lastMessageAt)
            default: json.pass() != nil
            }
        }
        guard isPlain, let seq, let memberCount, let messageCount, let ordinal, let lastActivity else { return nil }
        self.init(
            seq: seq, memberCount: memberCount, messageCount: messageCount, ordinal: ordinal, lastActivity: lastActivity,
            lastMessageAt: lastMessageAt
        )
    }
}

extension Channel: PlainReadable {
    // derived: init(plainly:)
    package init?(plainly json: inout PlainJSON) {
        var (channelId, type, isDistinct, isPublic, isEphemeral): (ChannelID?, ChannelType?, Bool?, Bool?, Bool?)
        var (displayName, avatarFileId, coverUrl, customType, data): (String?, String?, String?, String?, String?)
        var (metadata, metadataVersion, metadataUpdatedBy, tags, policy): (JSONValue?, Int?, UserID?, [String]?, PolicyChanges?)
        var (isFrozen, isMuted, mutedUntil, isRateLimited, rateLimit): (Bool?, Bool?, Timestamp?, Bool?, Int?)
        var (rateLimitWindowSeconds, rateLimitedUntil, memberCount, messageCount, ordinal): (Int?, Timestamp?, Int?, Int?, Int?)
        var (lastActivity, lastMessageAt, createdBy, createdAt): (Timestamp?, Timestamp?, UserID?, Timestamp?)
        var (updatedAt, deletedAt, seq): (Timestamp?, Timestamp?, Seq?)
        let isPlain = json.members { key, json in
            switch key {
            case "channelId": json.read(into: &channelId)
            case "type": json.read(into: &type)
            case "isDistinct": json.read(into: &isDistinct)
            case "isPublic": json.read(into: &isPublic)
            case "isEphemeral": json.read(into: &isEphemeral)
            case "displayName": json.read(into: &displayName)
            case "avatarFileId": json.read(into: &avatarFileId)
            case "coverUrl": json.read(into: &coverUrl)
            case "customType": json.read(into: &customType)
            case "data": json.read(into: &data)
            case "metadata": json.read(into: &metadata)
            case "metadataVersion": json.read(into: &metadataVersion)
            case "metadataUpdatedBy": json.read(into: &metadataUpdatedBy)
            case "tags": json.read(into: &tags)
            case "policy": json.read(into: &policy)
            case "isFrozen": json.read(into: &isFrozen)
            case "isMuted": json.read(into: &isMuted)
            case "mutedUntil": json.read(into: &mutedUntil)
            case "isRateLimited": json.read(into: &isRateLimited)
            case "rateLimit": json.read(into: &rateLimit)
            case "rateLimitWindowSeconds": json.read(into: &rateLimitWindowSeconds)
            case "rateLimitedUntil": json.read(into: &rateLimitedUntil)
            case "memberCount": json.read(into: &memberCount)
            case "messageCount": json.read(into: &messageCount)
            case "ordinal": json.read(into: &ordinal)
            case "lastActivity": json.read(into: &lastActivity)
            case "lastMessageAt": json.read(into: &lastMessageAt)
            case "createdBy": json.read(into: &createdBy)
            case "createdAt": json.read(into: &createdAt)
            case "updatedAt": json.read(into: &updatedAt)
            case "deletedAt": json.read(into: &deletedAt)
            case "seq": json.read(into: &seq)
            default: json.pass() != nil
            }
        }
        guard isPlain, let channelId, let type, let isDistinct, let isPublic, let isEphemeral, let metadataVersion, let tags,
            let isFrozen, let isMuted, let isRateLimited, let memberCount, let messageCount, let ordinal, let lastActivity,
            let createdAt, let updatedAt, let seq
        else { return nil }
        let attributes = ChannelAttributes(
            displayName: displayName, avatarFileId: avatarFileId, coverUrl: coverUrl, customType: customType, data: data
        )
        let counters = ChannelCounters(
            seq: seq, memberCount: memberCount, messageCount: messageCount, ordinal: ordinal, lastActivity: lastActivity,
            lastMessageAt: lastMessageAt
        )
        self.init(
            channelId: channelId, type: type, isDistinct: isDistinct, isPublic: isPublic, isEphemeral: isEphemeral,
            attributes: attributes, metadata: metadata, metadataVersion: metadataVersion, metadataUpdatedBy: metadataUpdatedBy,
            tags: tags, policy: policy, isFrozen: isFrozen, isMuted: isMuted, mutedUntil: mutedUntil, isRateLimited: isRateLimited,
            rateLimit: rateLimit, rateLimitWindowSeconds: rateLimitWindowSeconds, rateLimitedUntil: rateLimitedUntil,
            counters: counters, createdBy: createdBy, createdAt: createdAt, updatedAt: updatedAt, deletedAt: deletedAt
        )
    }
}

extension Channel: Codable {
    // derived: CodingKeys
    private enum CodingKeys: String, CodingKey {
        case channelId, type, isDistinct, isPublic, isEphemeral, displayName, avatarFileId, coverUrl, customType, data, metadata
        case metadataVersion, metadataUpdatedBy, tags, policy, isFrozen, isMuted, mutedUntil, isRateLimited, rateLimit
        case rateLimitWindowSeconds, rateLimitedUntil, memberCount, messageCount, ordinal, lastActivity, lastMessageAt, createdBy
        case createdAt, updatedAt, deletedAt, seq
    }

    // derived: encode(to:)
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(channelId, forKey: .channelId)
        try container.encode(type, forKey: .type)
        try container.encode(isDistinct, forKey: .isDistinct)
        try container.encode(isPublic, forKey: .isPublic)
        try container.encode(isEphemeral, forKey: .isEphemeral)
        try container.encode(attributes.displayName, forKey: .displayName)
        try container.encode(attributes.avatarFileId, forKey: .avatarFileId)
        try container.encode(attributes.coverUrl, forKey: .coverUrl)
        try container.encode(attributes.customType, forKey: .customType)
        try container.encode(attributes.data, forKey: .data)
        try container.encode(metadata, forKey: .metadata)
        try container.encode(metadataVersion, forKey: .metadataVersion)
        try container.encode(metadataUpdatedBy, forKey: .metadataUpdatedBy)
        try container.encode(tags, forKey: .tags)
        try container.encode(policy, forKey: .policy)
        try container.encode(isFrozen, forKey: .isFrozen)
        try container.encode(isMuted, forKey: .isMuted)
        try container.encode(mutedUntil, forKey: .mutedUntil)
        try container.encode(isRateLimited, forKey: .isRateLimited)
        try container.encode(rateLimit, forKey: .rateLimit)
        try container.encode(rateLimitWindowSeconds, forKey: .rateLimitWindowSeconds)
        try container.encode(rateLimitedUntil, forKey: .rateLimitedUntil)
        try container.encode(counters.memberCount, forKey: .memberCount)
        try container.encode(counters.messageCount, forKey: .messageCount)
        try container.encode(counters.ordinal, forKey: .ordinal)
        try container.encode(counters.lastActivity, forKey: .lastActivity)
        try container.encode(counters.lastMessageAt, forKey: .lastMessageAt)
        try container.encode(createdBy, forKey: .createdBy)
        try container.encode(createdAt, forKey: .createdAt)
        try container.encode(updatedAt, forKey: .updatedAt)
        try container.encode(deletedAt, forKey: .deletedAt)
        try container.encode(counters.seq, forKey: .seq)
    }

    // derived: init(from:)
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        channelId = try container.decode(ChannelID.self, forKey: .channelId)
        type = try container.decode(ChannelType.self, forKey: .type)
        isDistinct = try container.decode(Bool.self, forKey: .isDistinct)
        isPublic = try container.decode(Bool.self, forKey: .isPublic)
        isEphemeral = try container.decode(Bool.self, forKey: .isEphemeral)
        let displayName = try container.decodeIfPresent(String.self, forKey: .displayName)
        let avatarFileId = try container.decodeIfPresent(String.self, forKey: .avatarFileId)
        let coverUrl = try container.decodeIfPresent(String.self, forKey: .coverUrl)
        let customType = try container.decodeIfPresent(String.self, forKey: .customType)
        let data = try container.decodeIfPresent(String.self, forKey: .data)
        metadata = try container.decodeIfPresent(JSONValue.self, forKey: .metadata)
        metadataVersion = try container.decode(Int.self, forKey: .metadataVersion)
        metadataUpdatedBy = try container.decodeIfPresent(UserID.self, forKey: .metadataUpdatedBy)
        tags = try container.decode([String].self, forKey: .tags)
        policy = try container.decodeIfPresent(PolicyChanges.self, forKey: .policy)
        isFrozen = try container.decode(Bool.self, forKey: .isFrozen)
        isMuted = try container.decode(Bool.self, forKey: .isMuted)
        mutedUntil = try container.decodeIfPresent(Timestamp.self, forKey: .mutedUntil)
        isRateLimited = try container.decode(Bool.self, forKey: .isRateLimited)
        rateLimit = try container.decodeIfPresent(Int.self, forKey: .rateLimit)
        rateLimitWindowSeconds = try container.decodeIfPresent(Int.self, forKey: .rateLimitWindowSeconds)
        rateLimitedUntil = try container.decodeIfPresent(Timestamp.self, forKey: .rateLimitedUntil)
        let memberCount = try container.decode(Int.self, forKey: .memberCount)
        let messageCount = try container.decode(Int.self, forKey: .messageCount)
        let ordinal = try container.decode(Int.self, forKey: .ordinal)
        let lastActivity = try container.decode(Timestamp.self, forKey: .lastActivity)
        let lastMessageAt = try container.decodeIfPresent(Timestamp.self, forKey: .lastMessageAt)
        createdBy = try container.decodeIfPresent(UserID.self, forKey: .createdBy)
        createdAt = try container.decode(Timestamp.self, forKey: .createdAt)
        updatedAt = try container.decode(Timestamp.self, forKey: .updatedAt)
        deletedAt = try container.decodeIfPresent(Timestamp.self, forKey: .deletedAt)
        let seq = try container.decode(Seq.self, forKey: .seq)
        attributes = ChannelAttributes(
            displayName: displayName, avatarFileId: avatarFileId, coverUrl: coverUrl, customType: customType, data: data
        )
        counters = ChannelCounters(
            seq: seq, memberCount: memberCount, messageCount: messageCount, ordinal: ordinal, lastActivity: lastActivity,
            lastMessageAt: lastMessageAt
        )
    }
}

/// A channel as the caller sees it: one row of a channel list.
public struct ChannelView: Hashable, Sendable {
    /// The channel itself.
    public var channel: Channel
    /// Absent when the caller isn't and never was a member.
    public var membership: Membership?
    /// The caller's pending invitation.
    public var invitation: Invitation?
    /// The newest message that the caller may read.
    public var lastMessage: Message?
    /// The caller's current permissions in the channel (ledger §8.4), in the order of `Permission.allCases`.
    public var ownCapabilities: [Permission] = []  // wire: read as KnownNames<Permission>
    /// Whether an unread message mentions the caller, by name or with the whole channel (MN-16).
    public var hasMention: Bool = false  // wire: default is absent
    /// Summaries of the users that the view names, for callers who may see them. A page has them beside its views instead.
    public var users: [UserSummary]?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        channel: Channel, membership: Membership? = nil, invitation: Invitation? = nil, lastMessage: Message? = nil,
        ownCapabilities: [Permission] = [], hasMention: Bool = false, users: [UserSummary]? = nil
    ) {
        self.channel = channel
        self.membership = membership
        self.invitation = invitation
        self.lastMessage = lastMessage
        self.ownCapabilities = ownCapabilities
        self.hasMention = hasMention
        self.users = users
    }

    /// The number of messages unread by the caller; 0 for non-members (AM-43).
    public var unreadCount: Int { membership.map { Unread.count(in: channel.counters, for: $0) } ?? 0 }

    /// Whether the caller hid the channel from their lists (SB-29).
    public var hiddenState: HiddenState { membership?.visibility(in: channel.counters) ?? .unhidden }
}

extension ChannelView: Identifiable {
    /// The channel's id.
    public var id: ChannelID { channel.channelId }
}

extension ChannelView: Codable {
    // derived: CodingKeys
    private enum CodingKeys: String, CodingKey {
        case channel, membership, invitation, lastMessage, ownCapabilities, hasMention, users
    }

    // derived: encode(to:)
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(channel, forKey: .channel)
        try container.encodeIfPresent(membership, forKey: .membership)
        try container.encodeIfPresent(invitation, forKey: .invitation)
        try container.encodeIfPresent(lastMessage, forKey: .lastMessage)
        try container.encode(ownCapabilities, forKey: .ownCapabilities)
        if hasMention { try container.encode(hasMention, forKey: .hasMention) }
        try container.encodeIfPresent(users, forKey: .users)
    }

    // derived: init(from:)
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        channel = try container.decode(Channel.self, forKey: .channel)
        membership = try container.decodeIfPresent(Membership.self, forKey: .membership)
        invitation = try container.decodeIfPresent(Invitation.self, forKey: .invitation)
        lastMessage = try container.decodeIfPresent(Message.self, forKey: .lastMessage)
        ownCapabilities = try container.decode(KnownNames<Permission>.self, forKey: .ownCapabilities).value
        hasMention = try container.decodeIfPresent(Bool.self, forKey: .hasMention) ?? false
        users = try container.decodeIfPresent([UserSummary].self, forKey: .users)
    }
}

extension ChannelView: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("channel", channel)
        json.member("membership", membership)
        json.member("invitation", invitation)
        json.member("lastMessage", lastMessage)
        json.member("ownCapabilities", ownCapabilities)
        if hasMention { json.member("hasMention", hasMention) }
        json.member("users", users)
        json.endObject()
    }
}
