/// Joins a channel. Joining one that the caller is a member of changes nothing and answers the same (AM-26).
public struct JoinChannel: Operation {
    public typealias Response = ChannelView
    public static let name = "members.join"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/join"
    public static let permission = Permission.memberJoin
    public static let summary = "Join a channel. Joining again changes nothing."

    public var channel: ChannelID
    public init(channel: ChannelID) { self.channel = channel }
    public func validate() throws(RoostError) { try channel.validate(field: "channel") }
}

/// Leaves a channel (AM-41). Leaving one that the caller isn't a member of changes nothing.
public struct LeaveChannel: Operation {
    public typealias Response = Done
    public static let name = "members.leave"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/leave"
    public static let permission = Permission.memberLeave
    public static let summary = "Leave a channel. Leaving again changes nothing."

    public var channel: ChannelID
    public init(channel: ChannelID) { self.channel = channel }
    public func validate() throws(RoostError) { try channel.validate(field: "channel") }
}

/// The members of a channel in the order of their ids (AM-42).
public struct ListMembers: Operation {
    public typealias Response = Page<Member>
    public static let name = "members.list"
    public static let method = HTTPMethod.get
    public static let path = "/v1/channels/{channel}/members"
    public static let permission = Permission.memberList
    public static let summary = "The members of a channel, paged."

    public var channel: ChannelID
    /// 1 to 100, 30 when left out.
    public var limit: Int?
    public var cursor: String?

    public init(channel: ChannelID, limit: Int? = nil, cursor: String? = nil) {
        self.channel = channel
        self.limit = limit
        self.cursor = cursor
    }

    public func validate() throws(RoostError) {
        try channel.validate(field: "channel")
        _ = try Limits.page(limit, Limits.memberPage)
        try Limits.check(cursor, length: Limits.cursorLength, field: "cursor")
    }
}
