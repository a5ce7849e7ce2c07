/// Creates a new channel. The caller becomes its owner and first member (D-17); a service token's channel has no owner until one is named.
///
/// If the type is distinct, like a conversation, or `isDistinct` is set, an existing channel with the same members is returned unchanged
/// instead of a new one (AM-25, SB-05).
/// - Throws: `already_exists` when the id is taken (AM-23), `not_found` for an unknown user, `kind_forbids` for something
///   that the type doesn't allow (AM-19), `member_limit`, `channel_limit`, `key_reused`.
public struct CreateChannel: Operation, ChannelAttributesCarrying, ChannelRequest {
    public typealias Response = ChannelView
    public static let name = "channel.create"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels"
    public static let permission = Permission.channelCreate
    public static let summary = "Create a channel. The caller becomes its owner and first member."
    public static let repeatField: String? = "idempotencyKey"

    /// Unique and unchangeable; made by the server when left out (AM-13).
    public var channel: ChannelID?
    /// `community` when left out (AM-14).
    public var type: ChannelType?
    /// Its texts. They read as fields of the operation.
    public var attributes: ChannelAttributes  // inline
    /// To find channels by.
    public var tags: [String]?
    /// The app's own data: an object.
    public var metadata: JSONValue?
    /// Members from the start, beside the caller, or invited, as the type says (AM-24, SB-07). Required for a conversation.
    public var users: [UserID]?
    /// The users who become operators (SB-10). They needn't be among `users`.
    public var operators: [UserID]?
    /// Whether it is to be the only channel of just these members (SB-05).
    public var isDistinct: Bool?
    /// Whether everyone finds and joins it. As the type says when left out.
    public var isPublic: Bool?
    /// Whether its messages aren't stored. It can't be changed (SB-04).
    public var isEphemeral: Bool?
    /// How the channel differs from its type.
    public var policy: PolicyChanges?
    /// A repeat with the same key within ``Limits/idempotencyKeyHours``, by the same caller, gets the channel that the first call created (SB-12).
    public var idempotencyKey: String?

    // derived: package init
    package init(
        channel: ChannelID? = nil, type: ChannelType? = nil, attributes: ChannelAttributes, tags: [String]? = nil,
        metadata: JSONValue? = nil, users: [UserID]? = nil, operators: [UserID]? = nil, isDistinct: Bool? = nil,
        isPublic: Bool? = nil, isEphemeral: Bool? = nil, policy: PolicyChanges? = nil, idempotencyKey: String? = nil
    ) {
        self.channel = channel
        self.type = type
        self.attributes = attributes
        self.tags = tags
        self.metadata = metadata
        self.users = users
        self.operators = operators
        self.isDistinct = isDistinct
        self.isPublic = isPublic
        self.isEphemeral = isEphemeral
        self.policy = policy
        self.idempotencyKey = idempotencyKey
    }

    // derived: flat init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        channel: ChannelID? = nil, type: ChannelType? = nil, displayName: String? = nil, avatarFileId: String? = nil,
        coverUrl: String? = nil, customType: String? = nil, data: String? = nil, tags: [String]? = nil, metadata: JSONValue? = nil,
        users: [UserID]? = nil, operators: [UserID]? = nil, isDistinct: Bool? = nil, isPublic: Bool? = nil,
        isEphemeral: Bool? = nil, policy: PolicyChanges? = nil, idempotencyKey: String? = nil
    ) {
        let attributes = ChannelAttributes(
            displayName: displayName, avatarFileId: avatarFileId, coverUrl: coverUrl, customType: customType, data: data
        )
        self.init(
            channel: channel, type: type, attributes: attributes, tags: tags, metadata: metadata, users: users,
            operators: operators, isDistinct: isDistinct, isPublic: isPublic, isEphemeral: isEphemeral, policy: policy,
            idempotencyKey: idempotencyKey
        )
    }

    public func validate() throws(RoostError) {
        try channel?.validateNew(field: "channel")
        try type?.validate(field: "type")
        try validateAttributes()
        if let users { try Limits.check(users: users, field: "users", mayBeEmpty: true) }
        if let operators { try Limits.check(users: operators, field: "operators", mayBeEmpty: true) }
        if let idempotencyKey {
            guard !idempotencyKey.isEmpty else { throw .invalidArgument("idempotencyKey", "must not be empty") }
            try Limits.check(idempotencyKey, length: Limits.identifierLength, field: "idempotencyKey")
        }
    }
}

extension CreateChannel {
    // derived: CodingKeys
    private enum CodingKeys: String, CodingKey {
        case channel, type, displayName, avatarFileId, coverUrl, customType, data, tags, metadata, users, operators, isDistinct
        case isPublic, isEphemeral, policy, idempotencyKey
    }

    // derived: encode(to:)
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encodeIfPresent(channel, forKey: .channel)
        try container.encodeIfPresent(type, forKey: .type)
        try container.encodeIfPresent(attributes.displayName, forKey: .displayName)
        try container.encodeIfPresent(attributes.avatarFileId, forKey: .avatarFileId)
        try container.encodeIfPresent(attributes.coverUrl, forKey: .coverUrl)
        try container.encodeIfPresent(attributes.customType, forKey: .customType)
        try container.encodeIfPresent(attributes.data, forKey: .data)
        try container.encodeIfPresent(tags, forKey: .tags)
        try container.encodeIfPresent(metadata, forKey: .metadata)
        try container.encodeIfPresent(users, forKey: .users)
        try container.encodeIfPresent(operators, forKey: .operators)
        try container.encodeIfPresent(isDistinct, forKey: .isDistinct)
        try container.encodeIfPresent(isPublic, forKey: .isPublic)
        try container.encodeIfPresent(isEphemeral, forKey: .isEphemeral)
        try container.encodeIfPresent(policy, forKey: .policy)
        try container.encodeIfPresent(idempotencyKey, forKey: .idempotencyKey)
    }

    // derived: init(from:)
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        channel = try container.decodeIfPresent(ChannelID.self, forKey: .channel)
        type = try container.decodeIfPresent(ChannelType.self, forKey: .type)
        let displayName = try container.decodeIfPresent(String.self, forKey: .displayName)
        let avatarFileId = try container.decodeIfPresent(String.self, forKey: .avatarFileId)
        let coverUrl = try container.decodeIfPresent(String.self, forKey: .coverUrl)
        let customType = try container.decodeIfPresent(String.self, forKey: .customType)
        let data = try container.decodeIfPresent(String.self, forKey: .data)
        tags = try container.decodeIfPresent([String].self, forKey: .tags)
        metadata = try container.decodeIfPresent(JSONValue.self, forKey: .metadata)
        users = try container.decodeIfPresent([UserID].self, forKey: .users)
        operators = try container.decodeIfPresent([UserID].self, forKey: .operators)
        isDistinct = try container.decodeIfPresent(Bool.self, forKey: .isDistinct)
        isPublic = try container.decodeIfPresent(Bool.self, forKey: .isPublic)
        isEphemeral = try container.decodeIfPresent(Bool.self, forKey: .isEphemeral)
        policy = try container.decodeIfPresent(PolicyChanges.self, forKey: .policy)
        idempotencyKey = try container.decodeIfPresent(String.self, forKey: .idempotencyKey)
        attributes = ChannelAttributes(
            displayName: displayName, avatarFileId: avatarFileId, coverUrl: coverUrl, customType: customType, data: data
        )
    }
}

/// A channel, without joining it (AM-27, SB-25).
public struct GetChannel: Operation {
    public typealias Response = ChannelView
    public static let name = "channel.get"
    public static let method = HTTPMethod.get
    public static let path = "/v1/channels/{channel}"
    public static let permission = Permission.channelRead
    public static let summary = "One channel, without joining it."

    /// The channel's id, or `type:id` (ST-03).
    public var channel: ChannelID
    // derived: init
    /// Creates a value with these fields.
    public init(channel: ChannelID) { self.channel = channel }
    public func validate() throws(RoostError) { try channel.validate(field: "channel") }
}

/// Replaces the given attributes of a channel. Absent ones stay unchanged; an empty text removes a value (AM-37, SB-11).
///
/// - Throws: `conflict_version` when `ifMetadataVersion` isn't the metadata's version; `already_exists` when another channel is the
///   distinct one of the same members, or if the name of a channel that everyone finds looks like another such one's and the operator refuses
///   that; `immutable_field` for something that the type has fixed.
public struct UpdateChannel: Operation, ChannelAttributesCarrying, ChannelRequest {
    public typealias Response = Channel
    public static let name = "channel.update"
    public static let method = HTTPMethod.patch
    public static let path = "/v1/channels/{channel}"
    public static let permission = Permission.channelUpdate
    public static let summary = "Update a channel's attributes. For its owner and operators."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    /// Replaces those that are given.
    public var attributes: ChannelAttributes  // inline
    /// Replaces all of the channel's tags.
    public var tags: [String]?
    /// Replaces the whole object: the last writer wins (AM-36).
    public var metadata: JSONValue?
    /// Writes the metadata only if this is still its version, so as not to overwrite changes that the caller hasn't seen.
    public var ifMetadataVersion: Int?
    /// Whether it is to be the only channel of its members, at most 100, and of the users with a pending invitation (SB-05, SB-11).
    public var isDistinct: Bool?
    /// Whether everyone is to find and join it without an invitation (SB-03).
    public var isPublic: Bool?
    /// Changes the given parts of the channel's differences from its type.
    public var policy: PolicyChanges?

    // derived: package init
    package init(
        channel: ChannelID, attributes: ChannelAttributes, tags: [String]? = nil, metadata: JSONValue? = nil,
        ifMetadataVersion: Int? = nil, isDistinct: Bool? = nil, isPublic: Bool? = nil, policy: PolicyChanges? = nil
    ) {
        self.channel = channel
        self.attributes = attributes
        self.tags = tags
        self.metadata = metadata
        self.ifMetadataVersion = ifMetadataVersion
        self.isDistinct = isDistinct
        self.isPublic = isPublic
        self.policy = policy
    }

    // derived: flat init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        channel: ChannelID, displayName: String? = nil, avatarFileId: String? = nil, coverUrl: String? = nil,
        customType: String? = nil, data: String? = nil, tags: [String]? = nil, metadata: JSONValue? = nil,
        ifMetadataVersion: Int? = nil, isDistinct: Bool? = nil, isPublic: Bool? = nil, policy: PolicyChanges? = nil
    ) {
        let attributes = ChannelAttributes(
            displayName: displayName, avatarFileId: avatarFileId, coverUrl: coverUrl, customType: customType, data: data
        )
        self.init(
            channel: channel, attributes: attributes, tags: tags, metadata: metadata, ifMetadataVersion: ifMetadataVersion,
            isDistinct: isDistinct, isPublic: isPublic, policy: policy
        )
    }

    public func validate() throws(RoostError) {
        try channel.validate(field: "channel")
        try validateAttributes()
        guard ifMetadataVersion == nil || metadata != nil else {
            throw .invalidArgument("ifMetadataVersion", "needs metadata to write")
        }
    }
}

extension UpdateChannel {
    // derived: CodingKeys
    private enum CodingKeys: String, CodingKey {
        case channel, displayName, avatarFileId, coverUrl, customType, data, tags, metadata, ifMetadataVersion, isDistinct, isPublic
        case policy
    }

    // derived: encode(to:)
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(channel, forKey: .channel)
        try container.encodeIfPresent(attributes.displayName, forKey: .displayName)
        try container.encodeIfPresent(attributes.avatarFileId, forKey: .avatarFileId)
        try container.encodeIfPresent(attributes.coverUrl, forKey: .coverUrl)
        try container.encodeIfPresent(attributes.customType, forKey: .customType)
        try container.encodeIfPresent(attributes.data, forKey: .data)
        try container.encodeIfPresent(tags, forKey: .tags)
        try container.encodeIfPresent(metadata, forKey: .metadata)
        try container.encodeIfPresent(ifMetadataVersion, forKey: .ifMetadataVersion)
        try container.encodeIfPresent(isDistinct, forKey: .isDistinct)
        try container.encodeIfPresent(isPublic, forKey: .isPublic)
        try container.encodeIfPresent(policy, forKey: .policy)
    }

    // derived: init(from:)
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        channel = try container.decode(ChannelID.self, forKey: .channel)
        let displayName = try container.decodeIfPresent(String.self, forKey: .displayName)
        let avatarFileId = try container.decodeIfPresent(String.self, forKey: .avatarFileId)
        let coverUrl = try container.decodeIfPresent(String.self, forKey: .coverUrl)
        let customType = try container.decodeIfPresent(String.self, forKey: .customType)
        let data = try container.decodeIfPresent(String.self, forKey: .data)
        tags = try container.decodeIfPresent([String].self, forKey: .tags)
        metadata = try container.decodeIfPresent(JSONValue.self, forKey: .metadata)
        ifMetadataVersion = try container.decodeIfPresent(Int.self, forKey: .ifMetadataVersion)
        isDistinct = try container.decodeIfPresent(Bool.self, forKey: .isDistinct)
        isPublic = try container.decodeIfPresent(Bool.self, forKey: .isPublic)
        policy = try container.decodeIfPresent(PolicyChanges.self, forKey: .policy)
        attributes = ChannelAttributes(
            displayName: displayName, avatarFileId: avatarFileId, coverUrl: coverUrl, customType: customType, data: data
        )
    }
}

/// Deletes a channel softly: nobody can write to it or join it any more, and it stays readable for admins and for those who were members
/// (AM-34). Pending invitations are withdrawn. Deleting it again changes nothing.
public struct DeleteChannel: Operation {
    public typealias Response = Done
    public static let name = "channel.delete"
    public static let method = HTTPMethod.delete
    public static let path = "/v1/channels/{channel}"
    public static let permission = Permission.channelDelete
    public static let summary = "Delete a channel softly. For its owner, and for operators where its policy says so."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    // derived: init
    /// Creates a value with these fields.
    public init(channel: ChannelID) { self.channel = channel }
    public func validate() throws(RoostError) { try channel.validate(field: "channel") }
}

/// The fields that creating and updating a channel have in common.
protocol ChannelRequest: ChannelAttributesCarrying {
    var tags: [String]? { get }
    var metadata: JSONValue? { get }
    var isPublic: Bool? { get }
    var policy: PolicyChanges? { get }
}

extension ChannelRequest {
    /// Throws when something in it is outside its limits, or two fields say the same thing.
    func validateAttributes() throws(RoostError) {
        try attributes.validate()
        try Limits.check(tags: tags, count: Limits.channelTags)
        try Limits.check(metadata: metadata)
        try policy?.validate(field: "policy")
        guard isPublic == nil || (policy?.discovery == nil && policy?.join == nil) else {
            throw .invalidArgument("isPublic", "decides discovery and join: give either it or them")
        }
    }
}
