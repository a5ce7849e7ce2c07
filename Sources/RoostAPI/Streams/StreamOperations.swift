/// The rows of a channel that changed after a position of its stream.
public struct GetChannelChanges: Operation {
    public typealias Response = Changes
    public static let name = "stream.channelChanges"
    public static let method = HTTPMethod.get
    public static let path = "/v1/channels/{channel}/changes"
    public static let permission = Permission.historyRead
    public static let summary = "The rows of a channel that changed after a position of its stream, paged."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    /// The caller's position in the channel's stream; 0 for none.
    public var after: Seq
    /// 1 to 1000 changed rows, 500 when left out.
    public var limit: Int?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(channel: ChannelID, after: Seq, limit: Int? = nil) {
        self.channel = channel
        self.after = after
        self.limit = limit
    }

    public func validate() throws(RoostError) {
        try channel.validate(field: "channel")
        try Limits.check(seq: after, field: "after")
        _ = try Limits.page(limit, Limits.changesPage)
    }
}

/// The caller's own rows that changed after a position of the caller's stream.
public struct GetMyChanges: Operation {
    public typealias Response = Changes
    public static let name = "stream.myChanges"
    public static let method = HTTPMethod.get
    public static let path = "/v1/me/changes"
    public static let permission = Permission.streamRead
    public static let summary = "The caller's own rows that changed after a position of the caller's stream, paged."

    /// The caller's position in their own stream; 0 for none.
    public var after: Seq
    /// 1 to 1000 changed rows, 500 when left out.
    public var limit: Int?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(after: Seq, limit: Int? = nil) {
        self.after = after
        self.limit = limit
    }

    public func validate() throws(RoostError) {
        try Limits.check(seq: after, field: "after")
        _ = try Limits.page(limit, Limits.changesPage)
    }
}

/// Rows of one stream that changed after a position, and the client's position once they are applied.
public struct Changes: Codable, Hashable, Sendable {
    /// The rows' stream.
    public var stream: StreamID
    /// The rows as they are now.
    public var rows: Rows
    /// The client's position after the rows are applied.
    public var seq: Seq
    /// Whether there are changes after `seq`: call again with it.
    public var hasMore: Bool
    /// Set if too much was missed to send every message: the rows hold the channel and its newest messages. The client drops its messages
    /// of this channel and is then like a fresh client.
    public var isFresh: Bool?
    /// Set for an ephemeral channel: messages may have been sent in between and are lost (SB-04).
    public var isIncomplete: Bool?
    /// Users named by the rows, each once, ordered by id: at most `Limits.usersPerChanges`, those of the newest messages taken first.
    /// Absent if there are none, and within the response to a resume, which has its own.
    public var users: [UserSummary]?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        stream: StreamID, rows: Rows, seq: Seq, hasMore: Bool, isFresh: Bool? = nil, isIncomplete: Bool? = nil,
        users: [UserSummary]? = nil
    ) {
        self.stream = stream
        self.rows = rows
        self.seq = seq
        self.hasMore = hasMore
        self.isFresh = isFresh
        self.isIncomplete = isIncomplete
        self.users = users
    }
}

extension Changes: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("stream", stream)
        json.member("rows", rows)
        json.member("seq", seq)
        json.member("hasMore", hasMore)
        json.member("isFresh", isFresh)
        json.member("isIncomplete", isIncomplete)
        json.member("users", users)
        json.endObject()
    }
}

/// Returns everything that a client missed, over all its streams, in one response.
///
/// The client sends its positions; the server answers with the changes after them. A channel that the caller joined elsewhere is included
/// with the user's stream; one not listed in the request is new to the client and is returned with its newest messages.
///
/// A client whose positions don't fit into one message requests consecutive ranges of ids with ``from`` and ``before``.
public struct Resume: Operation {
    public typealias Response = Resumption
    public static let name = "stream.resume"
    public static let method = HTTPMethod.post
    public static let path = "/v1/me/resume"
    public static let permission = Permission.streamRead
    public static let isReadOnly = true
    public static let summary = "Everything that a client missed since its positions, over all its streams."

    /// The position in the caller's own stream; 0 for a client without data.
    public var after: Seq
    /// The position in each channel that the client holds.
    public var channels: [String: Seq]
    /// The lowest channel id requested; nil for no bound. Ids are compared by their bytes.
    public var from: ChannelID?
    /// The exclusive upper bound of the channel ids, above ``from``; nil for no bound.
    public var before: ChannelID?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(after: Seq, channels: [String: Seq], from: ChannelID? = nil, before: ChannelID? = nil) {
        self.after = after
        self.channels = channels
        self.from = from
        self.before = before
    }

    public func validate() throws(RoostError) {
        try Limits.check(seq: after, field: "after")
        guard channels.count <= Limits.channelsPerUserMax else {
            throw .limitExceeded("channels", limit: Limits.channelsPerUserMax, unit: "channels")
        }
        try from?.validate(field: "from")
        try before?.validate(field: "before")
        if let from, let before, from >= before { throw .invalidArgument("before", "must be greater than `from`") }
        for (channel, seq) in channels {
            try ChannelID(channel).validate(field: "channels")
            guard covers(channel) else {
                throw .invalidArgument("channels", "has an id that isn't among those asked for by `from` and `before`: \(channel)")
            }
            try Limits.check(seq: seq, field: "channels")
        }
    }

    /// Whether a channel's id is within the requested range.
    package func covers(_ channel: String) -> Bool { IDRange(from: from, before: before).contains(channel) }
}

/// A half-open range of channel ids, compared by their bytes.
package struct IDRange: Hashable, Sendable {
    package var from: ChannelID?
    package var before: ChannelID?

    // derived: package init
    package init(from: ChannelID? = nil, before: ChannelID? = nil) {
        self.from = from
        self.before = before
    }

    package func contains(_ id: String) -> Bool {
        let id = ChannelID(id)
        if let from, id < from { return false }
        if let before, id >= before { return false }
        return true
    }
}

extension Resume: PlainReadable {
    // derived: init(plainly:), refusing others
    package init?(plainly json: inout PlainJSON) {
        var (after, channels, from, before): (Seq?, [String: Seq]?, ChannelID?, ChannelID?)
        let isPlain = json.members { key, json in
            switch key {
            case "after": json.read(into: &after)
            case "channels": json.read(into: &channels)
            case "from": json.read(into: &from)
            case "before": json.read(into: &before)
            default: false
            }
        }
        guard isPlain, let after, let channels else { return nil }
        self.init(after: after, channels: channels, from: from, before: before)
    }
}

/// The response to a resume.
public struct Resumption: Codable, Hashable, Sendable {
    /// The caller's own stream: memberships that changed, the caller's profile.
    public var user: Changes
    /// The changed channels, and those new to the client. Channels without changes aren't listed.
    public var channels: [Changes]
    /// Whether there is more: call again with the new positions.
    public var hasMore: Bool
    /// Users named by the rows, each once, ordered by id: at most `Limits.usersPerChanges`, those of each channel's newest message taken
    /// first. Absent if there are none.
    public var users: [UserSummary]?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(user: Changes, channels: [Changes], hasMore: Bool, users: [UserSummary]? = nil) {
        self.user = user
        self.channels = channels
        self.hasMore = hasMore
        self.users = users
    }
}

extension Resumption: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("user", user)
        json.member("channels", channels)
        json.member("hasMore", hasMore)
        json.member("users", users)
        json.endObject()
    }
}
