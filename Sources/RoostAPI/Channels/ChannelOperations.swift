/// Creates a new channel. The caller becomes its owner and first member (D-17).
///
/// - Throws: `already_exists` when the id is taken (AM-23), `not_found` for an unknown user among `users`.
public struct CreateChannel: Operation {
    public typealias Response = ChannelView
    public static let name = "channels.create"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels"
    public static let permission = Permission.channelCreate
    public static let summary = "Create a channel. The caller becomes its owner and first member."

    /// Unique and unchangeable; made by the server when left out (AM-13).
    public var channel: ChannelID?
    public var type: ChannelType
    public var displayName: String?
    public var avatarFileId: String?
    public var tags: [String]?
    public var metadata: JSONValue?
    /// Members from the start, beside the caller (AM-24).
    public var users: [UserID]?

    public init(
        channel: ChannelID? = nil, type: ChannelType = .community, displayName: String? = nil, avatarFileId: String? = nil,
        tags: [String]? = nil, metadata: JSONValue? = nil, users: [UserID]? = nil
    ) {
        self.channel = channel
        self.type = type
        self.displayName = displayName
        self.avatarFileId = avatarFileId
        self.tags = tags
        self.metadata = metadata
        self.users = users
    }

    public func validate() throws(RoostError) {
        try channel?.validate(field: "channel")
        guard ChannelPolicy.named(type) != nil else {
            throw .invalidArgument("type", "must be one of: " + ChannelPolicy.presets.map(\.type.rawValue).joined(separator: ", "))
        }
        try Limits.check(displayName, length: Limits.displayNameLength, field: "displayName")
        try Limits.check(avatarFileId, length: Limits.fileIDLength, field: "avatarFileId")
        try Limits.check(tags: tags, count: Limits.channelTags)
        try Limits.check(metadata: metadata)
        if let users {
            guard users.count <= Limits.membersPerCall else {
                throw .limitExceeded("users", limit: Limits.membersPerCall, unit: "users")
            }
            for user in users { try user.validate(field: "users") }
        }
    }
}

/// A channel, without joining it (AM-27).
public struct GetChannel: Operation {
    public typealias Response = ChannelView
    public static let name = "channels.get"
    public static let method = HTTPMethod.get
    public static let path = "/v1/channels/{channel}"
    public static let permission = Permission.channelRead
    public static let summary = "One channel, without joining it."

    public var channel: ChannelID
    public init(channel: ChannelID) { self.channel = channel }
    public func validate() throws(RoostError) { try channel.validate(field: "channel") }
}

/// Replaces what is given of a channel's attributes. What is left out stays as it is (AM-37).
public struct UpdateChannel: Operation {
    public typealias Response = Channel
    public static let name = "channels.update"
    public static let method = HTTPMethod.patch
    public static let path = "/v1/channels/{channel}"
    public static let permission = Permission.channelUpdate
    public static let summary = "Update a channel's name, picture, tags or metadata. For its owner and operators."

    public var channel: ChannelID
    public var displayName: String?
    public var avatarFileId: String?
    public var tags: [String]?
    /// Replaces the whole object: the last writer wins (AM-36).
    public var metadata: JSONValue?

    public init(
        channel: ChannelID, displayName: String? = nil, avatarFileId: String? = nil, tags: [String]? = nil,
        metadata: JSONValue? = nil
    ) {
        self.channel = channel
        self.displayName = displayName
        self.avatarFileId = avatarFileId
        self.tags = tags
        self.metadata = metadata
    }

    public func validate() throws(RoostError) {
        try channel.validate(field: "channel")
        try Limits.check(displayName, length: Limits.displayNameLength, field: "displayName")
        try Limits.check(avatarFileId, length: Limits.fileIDLength, field: "avatarFileId")
        try Limits.check(tags: tags, count: Limits.channelTags)
        try Limits.check(metadata: metadata)
    }
}

/// Deletes a channel softly: nobody can write to it or join it any more, and it stays readable for admins and for those who were members.
/// Deleting it again changes nothing.
public struct DeleteChannel: Operation {
    public typealias Response = Done
    public static let name = "channels.delete"
    public static let method = HTTPMethod.delete
    public static let path = "/v1/channels/{channel}"
    public static let permission = Permission.channelDelete
    public static let summary = "Delete a channel softly. For its owner."

    public var channel: ChannelID
    public init(channel: ChannelID) { self.channel = channel }
    public func validate() throws(RoostError) { try channel.validate(field: "channel") }
}

/// The channels that the caller is a member of, in the order of their ids.
public struct ListMyChannels: Operation {
    public typealias Response = Page<ChannelView>
    public static let name = "channels.mine"
    public static let method = HTTPMethod.get
    public static let path = "/v1/me/channels"
    public static let permission = Permission.streamRead
    public static let summary = "The channels that the caller is a member of, paged, each with its newest message."

    /// 1 to 100, 20 when left out.
    public var limit: Int?
    public var cursor: String?

    public init(limit: Int? = nil, cursor: String? = nil) {
        self.limit = limit
        self.cursor = cursor
    }

    public func validate() throws(RoostError) {
        _ = try Limits.page(limit, Limits.channelPage)
        try Limits.check(cursor, length: Limits.cursorLength, field: "cursor")
    }
}
