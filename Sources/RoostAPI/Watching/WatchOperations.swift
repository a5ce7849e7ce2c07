/// Watches a channel on this connection, and answers with its state (ST-01, ST-05). Watching again answers with the current state.
///
/// A member gets the channel's durable events without watching; a watched channel's events are marked `watching: true`.
/// - Throws: `not_connected` over HTTP, which has no connection that could watch (ST-02).
public struct WatchChannel: Operation {
    public typealias Response = WatchedChannel
    public static let name = "channel.watch"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/watch"
    public static let permission = Permission.channelWatch
    public static let summary = "Watch a channel on this connection, and get its state. Only over a WebSocket."

    public var channel: ChannelID
    /// The number of newest messages in the answer: 1 to 100, 30 when left out.
    public var limit: Int?

    // derived: init
    public init(channel: ChannelID, limit: Int? = nil) {
        self.channel = channel
        self.limit = limit
    }

    public func validate() throws(RoostError) {
        try channel.validate(field: "channel")
        _ = try Limits.page(limit, Limits.historyPage)
    }
}

/// Stops watching a channel on this connection. Does nothing if it isn't watched (ST-10).
public struct UnwatchChannel: Operation {
    public typealias Response = Done
    public static let name = "channel.unwatch"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/unwatch"
    public static let permission = Permission.streamRead
    public static let summary = "Stop watching a channel on this connection. Only over a WebSocket."

    public var channel: ChannelID
    // derived: init
    public init(channel: ChannelID) { self.channel = channel }
    public func validate() throws(RoostError) { try channel.validate(field: "channel") }
}

/// A channel's state, as the answer to a watch gives it (ST-05).
public struct WatchedChannel: Codable, Hashable, Sendable {
    /// The policy of the channel.
    public var config: ChannelPolicy
    /// The channel itself.
    public var channel: Channel
    /// The caller's membership; absent when the caller isn't and never was a member.
    public var membership: Membership?
    /// Members with a connection at this moment.
    public var online: Int
    /// Connected users who watch the channel, members or not, the caller included (D-23).
    public var watcherCount: Int
    /// Some of the watchers by id, at most 30.
    public var watchers: [String: User]
    /// Some of the members by id, at most 30; the rest with `member.list`.
    public var members: [String: Member]
    /// How far those members have read (D-22).
    public var read: [String: ReadState]
    /// The newest messages.
    public var messages: MessagePage
    /// The caller's current permissions in the channel, in the order of `Permission.allCases`.
    public var ownCapabilities: [Permission]

    // derived: init
    public init(
        config: ChannelPolicy, channel: Channel, membership: Membership? = nil, online: Int, watcherCount: Int,
        watchers: [String: User], members: [String: Member], read: [String: ReadState], messages: MessagePage,
        ownCapabilities: [Permission]
    ) {
        self.config = config
        self.channel = channel
        self.membership = membership
        self.online = online
        self.watcherCount = watcherCount
        self.watchers = watchers
        self.members = members
        self.read = read
        self.messages = messages
        self.ownCapabilities = ownCapabilities
    }
}

/// How far a member has read.
public struct ReadState: Codable, Hashable, Sendable {
    /// The seq up to which the member has read.
    public var readSeq: Seq
    /// When the member last marked something as read.
    public var lastReadAt: Timestamp?
    /// Messages that the member hasn't read.
    public var unreadCount: Int

    // derived: init
    public init(readSeq: Seq, lastReadAt: Timestamp? = nil, unreadCount: Int) {
        self.readSeq = readSeq
        self.lastReadAt = lastReadAt
        self.unreadCount = unreadCount
    }
}
