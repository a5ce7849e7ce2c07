/// Watches a channel on this connection and returns its state (ST-01, ST-05). Watching again returns the current state.
///
/// A member gets the channel's durable events without watching; a watched channel's events are marked `watching: true`. With ``create`` it
/// creates the channel if there is none of that id: one call to create, query and watch it.
/// - Throws: `not_connected` over HTTP, which has no connection to watch on (ST-02); `limit_exceeded` if the connection would watch more
///   than ``Limits/watchedChannels``; the errors of `channel.create` if it creates.
public struct WatchChannel: Operation {
    public typealias Response = WatchedChannel
    public static let name = "channel.watch"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/watch"
    public static let permission = Permission.channelWatch
    public static let summary = "Watch a channel on this connection, and get its state. Only over a WebSocket."
    public static let isConnectionScoped = true

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    /// The number of newest messages in the response: 1 to 100, 30 when left out. With 0 the response also omits members and watchers,
    /// except for their numbers: for a client that already has the channel.
    public var limit: Int?
    /// The most watchers in the response: 0 to 300, 30 when left out (ST-11). It always has their number.
    public var watchersLimit: Int?
    /// How to create the channel if there is none: the fields of `channel.create` without `channel` and `idempotencyKey`. If no type is
    /// given and the id is `type:id` with an existing type, that type is used; any other id with a colon is entirely the channel's own.
    public var create: CreateChannel?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(channel: ChannelID, limit: Int? = nil, watchersLimit: Int? = nil, create: CreateChannel? = nil) {
        self.channel = channel
        self.limit = limit
        self.watchersLimit = watchersLimit
        self.create = create
    }

    public func validate() throws(RoostError) {
        try channel.validate(field: "channel")
        if let create {
            guard create.channel == nil, create.idempotencyKey == nil else {
                throw .invalidArgument(
                    "create", "must have neither a channel nor an idempotencyKey: the channel is the one to watch")
            }
            do { try create.validate() } catch { throw error.inside("create") }
        }
        _ = try Limits.page(limit, Limits.historyPage, least: 0)
        _ = try Limits.page(watchersLimit, Limits.watcherPage, field: "watchersLimit", least: 0)
    }
}

extension WatchChannel: PlainReadable {
    // derived: init(plainly:), refusing others
    package init?(plainly json: inout PlainJSON) {
        var (channel, limit, watchersLimit, create): (ChannelID?, Int?, Int?, CreateChannel?)
        let isPlain = json.members { key, json in
            switch key {
            case "channel": json.read(into: &channel)
            case "limit": json.read(into: &limit)
            case "watchersLimit": json.read(into: &watchersLimit)
            case "create": json.read(into: &create)
            default: false
            }
        }
        guard isPlain, let channel else { return nil }
        self.init(channel: channel, limit: limit, watchersLimit: watchersLimit, create: create)
    }
}

/// Returns channels by filters, as ``QueryChannels`` does, and watches those of the page on this connection: no further call is needed (ST-09).
///
/// Channels that the caller may find but not watch are returned too: their `ownCapabilities` lack `channel.watch`. A channel that changes
/// during the search is returned as it is when its watch begins, at the position where it was found, or left out if the query no longer
/// matches it.
/// - Throws: `not_connected` over HTTP; `limit_exceeded` if the connection could exceed ``Limits/watchedChannels``; the errors of `channel.query`.
public struct QueryAndWatchChannels: Operation {
    public typealias Response = Page<ChannelView>
    public static let name = "channel.queryAndWatch"
    public static let method = HTTPMethod.post
    public static let path = "/v1/watch"
    public static let permission = Permission.streamRead
    public static let summary = "Channels by filters, which are watched on this connection from then on. Only over a WebSocket."
    public static let isConnectionScoped = true

    /// The filters, the order and the page.
    public var query: QueryChannels

    // derived: init
    /// Creates a value with these fields.
    public init(query: QueryChannels) { self.query = query }

    public func validate() throws(RoostError) {
        do { try query.validate() } catch { throw error.inside("query") }
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
    public static let isConnectionScoped = true

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    // derived: init
    /// Creates a value with these fields.
    public init(channel: ChannelID) { self.channel = channel }
    public func validate() throws(RoostError) { try channel.validate(field: "channel") }
}

extension UnwatchChannel: PlainReadable {
    // derived: init(plainly:), refusing others
    package init?(plainly json: inout PlainJSON) {
        var channel: ChannelID?
        let isPlain = json.members { key, json in
            switch key {
            case "channel": json.read(into: &channel)
            default: false
            }
        }
        guard isPlain, let channel else { return nil }
        self.init(channel: channel)
    }
}

/// Connected users watching a channel, members or not, paged (ST-06, ST-12). The earliest watchers come first.
///
/// - Throws: `limit_exceeded` for a limit above ``Limits/watcherPage`` or an offset above ``Limits/watcherOffset``.
public struct ListWatchers: Operation {
    public typealias Response = WatcherPage
    public static let name = "channel.listWatchers"
    public static let method = HTTPMethod.get
    public static let path = "/v1/channels/{channel}/watchers"
    public static let permission = Permission.channelWatch
    public static let summary = "The connected users who watch a channel, paged."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    /// 1 to 300, 30 when left out.
    public var limit: Int?
    /// The number of watchers to skip: 0 to 10,000, 0 when left out.
    public var offset: Int?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(channel: ChannelID, limit: Int? = nil, offset: Int? = nil) {
        self.channel = channel
        self.limit = limit
        self.offset = offset
    }

    public func validate() throws(RoostError) {
        try channel.validate(field: "channel")
        _ = try Limits.page(limit, Limits.watcherPage)
        guard let offset else { return }
        guard offset >= 0 else { throw .invalidArgument("offset", "must be 0 or more") }
        guard offset <= Limits.watcherOffset else { throw .limitExceeded("offset", limit: Limits.watcherOffset, unit: "watchers") }
    }
}

/// A page of a channel's watchers.
public struct WatcherPage: Codable, Hashable, Sendable {
    /// In the order in which they began to watch; over several nodes, node by node.
    public var watchers: [UserSummary]
    /// The number of all connected users watching the channel.
    public var watcherCount: Int

    // derived: init
    /// Creates a value with these fields.
    public init(watchers: [UserSummary], watcherCount: Int) {
        self.watchers = watchers
        self.watcherCount = watcherCount
    }
}

extension WatcherPage: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("watchers", watchers)
        json.member("watcherCount", watcherCount)
        json.endObject()
    }
}

/// A channel's state, as returned by a watch (ST-05).
public struct WatchedChannel: Codable, Hashable, Sendable {
    /// The policy of the channel.
    public var config: ChannelPolicy
    /// The channel itself.
    public var channel: Channel
    /// The caller's membership; absent if the caller isn't and never was a member.
    public var membership: Membership?
    /// The number of members currently connected, without those who don't share their presence.
    public var online: Int
    /// The number of connected users watching the channel, members or not, including the caller (D-23), without those who don't share their presence.
    public var watcherCount: Int
    /// Some of the watchers by id: as many as requested, unless their profiles would exceed 1,048,576 bytes.
    public var watchers: [String: User]
    /// Some of the members by id, at most 30; the rest with `member.list`. Only the caller if they may not list members.
    public var members: [String: Member]
    /// Summaries of those members, each once, ordered by id. Absent if there are none.
    public var users: [UserSummary]?
    /// How far those members have read (D-22), if they share it, and always the caller. Empty if the caller may not read.
    public var read: [String: ReadState]
    /// The newest messages.
    public var messages: MessagePage
    /// The caller's current permissions in the channel, in the order of `Permission.allCases`.
    public var ownCapabilities: [Permission]  // wire: read as KnownNames<Permission>

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        config: ChannelPolicy, channel: Channel, membership: Membership? = nil, online: Int, watcherCount: Int,
        watchers: [String: User], members: [String: Member], users: [UserSummary]? = nil, read: [String: ReadState],
        messages: MessagePage, ownCapabilities: [Permission]
    ) {
        self.config = config
        self.channel = channel
        self.membership = membership
        self.online = online
        self.watcherCount = watcherCount
        self.watchers = watchers
        self.members = members
        self.users = users
        self.read = read
        self.messages = messages
        self.ownCapabilities = ownCapabilities
    }

    // derived: init(from:)
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        config = try container.decode(ChannelPolicy.self, forKey: .config)
        channel = try container.decode(Channel.self, forKey: .channel)
        membership = try container.decodeIfPresent(Membership.self, forKey: .membership)
        online = try container.decode(Int.self, forKey: .online)
        watcherCount = try container.decode(Int.self, forKey: .watcherCount)
        watchers = try container.decode([String: User].self, forKey: .watchers)
        members = try container.decode([String: Member].self, forKey: .members)
        users = try container.decodeIfPresent([UserSummary].self, forKey: .users)
        read = try container.decode([String: ReadState].self, forKey: .read)
        messages = try container.decode(MessagePage.self, forKey: .messages)
        ownCapabilities = try container.decode(KnownNames<Permission>.self, forKey: .ownCapabilities).value
    }
}

extension WatchedChannel: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("config", config)
        json.member("channel", channel)
        json.member("membership", membership)
        json.member("online", online)
        json.member("watcherCount", watcherCount)
        json.member("watchers", watchers)
        json.member("members", members)
        json.member("users", users)
        json.member("read", read)
        json.member("messages", messages)
        json.member("ownCapabilities", ownCapabilities)
        json.endObject()
    }
}

/// How far a member has read.
public struct ReadState: Codable, Hashable, Sendable {
    /// The seq up to which the member has read.
    public var readSeq: Seq
    /// The newest message that the member has read (D-22): nil if there is none up to there that the caller may see.
    public var lastReadMessageId: MessageID?
    /// When the member last marked something as read.
    public var lastReadAt: Timestamp?
    /// The member's number of unread messages.
    public var unreadCount: Int
    /// The seq up to which messages have reached one of the member's devices (``ReadPosition/deliveredSeq``).
    public var deliveredSeq: Seq?
    /// When that was reported.
    public var lastDeliveredAt: Timestamp?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        readSeq: Seq, lastReadMessageId: MessageID? = nil, lastReadAt: Timestamp? = nil, unreadCount: Int, deliveredSeq: Seq? = nil,
        lastDeliveredAt: Timestamp? = nil
    ) {
        self.readSeq = readSeq
        self.lastReadMessageId = lastReadMessageId
        self.lastReadAt = lastReadAt
        self.unreadCount = unreadCount
        self.deliveredSeq = deliveredSeq
        self.lastDeliveredAt = lastDeliveredAt
    }
}

extension ReadState: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("readSeq", readSeq)
        json.member("lastReadMessageId", lastReadMessageId)
        json.member("lastReadAt", lastReadAt)
        json.member("unreadCount", unreadCount)
        json.member("deliveredSeq", deliveredSeq)
        json.member("lastDeliveredAt", lastDeliveredAt)
        json.endObject()
    }
}

extension PlainJSON {
    /// Reads `null`. The values for creating a channel are left to Foundation.
    mutating func read(into place: inout CreateChannel?) -> Bool { read(into: &place) { _ in nil } }
}
