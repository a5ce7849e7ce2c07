/// Creates a new channel. The caller becomes its owner and first member (D-17); a service token's channel has no owner until one is named.
///
/// If the type is distinct, like a conversation, or `isDistinct` is set, an existing channel with the same members is returned unchanged
/// instead of a new one (AM-25, SB-05).
/// - Throws: `already_exists` when the id is taken (AM-23), `not_found` for an unknown user among `users`, `kind_forbids` for something
///   that the type doesn't allow (AM-19), `member_limit`, `channel_limit`, `key_reused`.
public struct CreateChannel: Operation, ChannelAttributes {
    public typealias Response = ChannelView
    public static let name = "channel.create"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels"
    public static let permission = Permission.channelCreate
    public static let summary = "Create a channel. The caller becomes its owner and first member."

    /// Unique and unchangeable; made by the server when left out (AM-13).
    public var channel: ChannelID?
    /// `community` when left out (AM-14).
    public var type: ChannelType?
    public var displayName: String?
    public var avatarFileId: String?
    public var coverUrl: String?
    public var customType: String?
    public var data: String?
    public var tags: [String]?
    public var metadata: JSONValue?
    /// Members from the start, beside the caller, or invited, as the type says (AM-24, SB-07). Required for a conversation.
    public var users: [UserID]?
    /// The users who become operators (SB-10). They needn't be among `users`.
    public var operators: [UserID]?
    public var isDistinct: Bool?
    /// Whether everyone finds and joins it. As the type says when left out.
    public var isPublic: Bool?
    /// Whether its messages aren't stored. It can't be changed (SB-04).
    public var isEphemeral: Bool?
    /// How the channel differs from its type.
    public var policy: PolicyChanges?
    /// A repeat with the same key within 24 hours, by the same caller, gets the channel that the first call created (SB-12).
    public var idempotencyKey: String?

    // derived: init
    public init(
        channel: ChannelID? = nil, type: ChannelType? = nil, displayName: String? = nil, avatarFileId: String? = nil,
        coverUrl: String? = nil, customType: String? = nil, data: String? = nil, tags: [String]? = nil, metadata: JSONValue? = nil,
        users: [UserID]? = nil, operators: [UserID]? = nil, isDistinct: Bool? = nil, isPublic: Bool? = nil,
        isEphemeral: Bool? = nil, policy: PolicyChanges? = nil, idempotencyKey: String? = nil
    ) {
        self.channel = channel
        self.type = type
        self.displayName = displayName
        self.avatarFileId = avatarFileId
        self.coverUrl = coverUrl
        self.customType = customType
        self.data = data
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
    public init(channel: ChannelID) { self.channel = channel }
    public func validate() throws(RoostError) { try channel.validate(field: "channel") }
}

/// Replaces the given attributes of a channel. Absent ones stay unchanged; an empty text removes a value (AM-37, SB-11).
///
/// - Throws: `conflict_version` when `ifMetadataVersion` isn't the metadata's version; `already_exists` when another channel is the
///   distinct one of the same members; `immutable_field` for something that the type has fixed.
public struct UpdateChannel: Operation, ChannelAttributes {
    public typealias Response = Channel
    public static let name = "channel.update"
    public static let method = HTTPMethod.patch
    public static let path = "/v1/channels/{channel}"
    public static let permission = Permission.channelUpdate
    public static let summary = "Update a channel's attributes. For its owner and operators."

    public var channel: ChannelID
    public var displayName: String?
    public var avatarFileId: String?
    public var coverUrl: String?
    public var customType: String?
    public var data: String?
    public var tags: [String]?
    /// Replaces the whole object: the last writer wins (AM-36).
    public var metadata: JSONValue?
    /// Writes the metadata only if this is still its version, so as not to overwrite changes that the caller hasn't seen.
    public var ifMetadataVersion: Int?
    public var isDistinct: Bool?
    public var isPublic: Bool?
    /// Changes the given parts of the channel's differences from its type.
    public var policy: PolicyChanges?

    // derived: init
    public init(
        channel: ChannelID, displayName: String? = nil, avatarFileId: String? = nil, coverUrl: String? = nil,
        customType: String? = nil, data: String? = nil, tags: [String]? = nil, metadata: JSONValue? = nil,
        ifMetadataVersion: Int? = nil, isDistinct: Bool? = nil, isPublic: Bool? = nil, policy: PolicyChanges? = nil
    ) {
        self.channel = channel
        self.displayName = displayName
        self.avatarFileId = avatarFileId
        self.coverUrl = coverUrl
        self.customType = customType
        self.data = data
        self.tags = tags
        self.metadata = metadata
        self.ifMetadataVersion = ifMetadataVersion
        self.isDistinct = isDistinct
        self.isPublic = isPublic
        self.policy = policy
    }

    public func validate() throws(RoostError) {
        try channel.validate(field: "channel")
        try validateAttributes()
        guard ifMetadataVersion == nil || metadata != nil else {
            throw .invalidArgument("ifMetadataVersion", "needs metadata to write")
        }
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
    public static let summary = "Delete a channel softly. For its owner."

    public var channel: ChannelID
    // derived: init
    public init(channel: ChannelID) { self.channel = channel }
    public func validate() throws(RoostError) { try channel.validate(field: "channel") }
}

/// The attributes that a channel can be given at its creation, and later.
protocol ChannelAttributes {
    var displayName: String? { get }
    var avatarFileId: String? { get }
    var coverUrl: String? { get }
    var customType: String? { get }
    var data: String? { get }
    var tags: [String]? { get }
    var metadata: JSONValue? { get }
    var isPublic: Bool? { get }
    var policy: PolicyChanges? { get }
}

extension ChannelAttributes {
    /// Throws when one of them is outside its limits, or two of them say the same thing.
    func validateAttributes() throws(RoostError) {
        try Limits.check(displayName: displayName)
        try Limits.check(avatarFileId, length: Limits.fileIDLength, field: "avatarFileId")
        try Limits.check(coverUrl: coverUrl)
        try Limits.check(customType, length: Limits.customTypeLength, field: "customType")
        try Limits.check(data, length: Limits.channelDataLength, field: "data")
        try Limits.check(tags: tags, count: Limits.channelTags)
        try Limits.check(metadata: metadata)
        try policy?.validate(field: "policy")
        guard isPublic == nil || (policy?.discovery == nil && policy?.join == nil) else {
            throw .invalidArgument("isPublic", "decides discovery and join: give either it or them")
        }
    }
}
