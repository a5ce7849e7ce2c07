/// Marks a channel as read up to a seq, or all of it. The position only moves forward: marking an earlier one changes nothing (AM-45, I8).
public struct MarkRead: Operation {
    public typealias Response = UnreadCount
    public static let name = "reading.mark"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/read"
    public static let permission = Permission.readingMark
    public static let summary = "Mark a channel as read up to a seq, or all of it."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    /// The seq of the newest message seen; all of the channel when left out. A seq ahead of the channel means all.
    public var seq: Seq?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(channel: ChannelID, seq: Seq? = nil) {
        self.channel = channel
        self.seq = seq
    }

    public func validate() throws(RoostError) {
        try channel.validate(field: "channel")
        try Limits.check(seq: seq, field: "seq")
    }
}

extension MarkRead: PlainReadable {
    // derived: init(plainly:), refusing others
    package init?(plainly json: inout PlainJSON) {
        var (channel, seq): (ChannelID?, Seq?)
        let isPlain = json.members { key, json in
            switch key {
            case "channel": json.read(into: &channel)
            case "seq": json.read(into: &seq)
            default: false
            }
        }
        guard isPlain, let channel else { return nil }
        self.init(channel: channel, seq: seq)
    }
}

/// Marks messages from a seq on as unread again for the caller, for example to answer them later. It is the only operation that moves the
/// position back; marking messages that are already unread changes nothing. Nobody else is notified.
///
/// - Throws: `feature_disabled` in an ephemeral channel, which keeps no messages to count.
public struct MarkUnread: Operation {
    public typealias Response = UnreadCount
    public static let name = "reading.markUnread"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/unread"
    public static let permission = Permission.readingMark
    public static let summary = "Mark the messages of a channel from a seq on as unread again."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    /// The seq of the first message to mark. The caller's own messages stay read.
    public var seq: Seq

    // derived: init
    /// Creates a value with these fields.
    public init(channel: ChannelID, seq: Seq) {
        self.channel = channel
        self.seq = seq
    }

    public func validate() throws(RoostError) {
        try channel.validate(field: "channel")
        try Limits.check(seq: seq, field: "seq")
    }
}

/// Reports that a channel's messages up to a seq have reached one of the caller's devices. The position only moves forward, and read
/// messages count as delivered.
///
/// A client calls it once for several messages, every few seconds at most, after storing messages of others that aren't replies in a thread.
/// - Throws: `not_member`; `not_permitted` if the caller may not read, and `kind_forbids` if the policy's ``ChannelPolicy/read`` is
///   `admins` or `nobody`; `feature_disabled` if the policy's ``ChannelPolicy/deliveryEvents`` or ``ChannelPolicy/readEvents`` is off, and
///   in a channel with more than ``Limits/largeChannelMembers`` members; `invalid_argument` for a seq that the channel hasn't reached.
public struct MarkDelivered: Operation {
    public typealias Response = Done
    public static let name = "reading.markDelivered"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/delivered"
    public static let permission = Permission.readingMark
    public static let summary = "Report that the messages of a channel up to a seq have been delivered."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    /// The seq of the newest delivered message.
    public var seq: Seq

    // derived: init
    /// Creates a value with these fields.
    public init(channel: ChannelID, seq: Seq) {
        self.channel = channel
        self.seq = seq
    }

    public func validate() throws(RoostError) {
        try channel.validate(field: "channel")
        try Limits.check(seq: seq, field: "seq")
    }
}

/// How far the members of a channel have read, paged, in the order of joining (SB-02, R26). With a message: the members who have read it,
/// except its sender and members who joined later.
///
/// Members who don't share their read position (``Preferences/sharesReading``), or may not read the channel, are left out, and all but the caller if
/// they may not list members.
/// - Throws: `feature_disabled` if the policy's ``ChannelPolicy/readEvents`` is off, and in a channel with more than
///   ``Limits/largeChannelMembers`` members; `not_found` for a message that the caller can't see.
public struct ListReaders: Operation {
    public typealias Response = Page<ReadPosition>
    public static let name = "reading.listReaders"
    public static let method = HTTPMethod.get
    public static let path = "/v1/channels/{channel}/readers"
    public static let permission = Permission.historyRead
    public static let summary = "How far the members of a channel have read, or who has read a message, paged."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    /// The message that the listed members have read; nil for all members, however far they have read.
    public var message: MessageID?
    /// 1 to 100, 30 when left out.
    public var limit: Int?
    /// Where the page begins: the `nextCursor` of the page before. The first page when left out.
    public var cursor: String?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(channel: ChannelID, message: MessageID? = nil, limit: Int? = nil, cursor: String? = nil) {
        self.channel = channel
        self.message = message
        self.limit = limit
        self.cursor = cursor
    }

    public func validate() throws(RoostError) {
        try channel.validate(field: "channel")
        _ = try Limits.page(limit, Limits.memberPage)
        try Limits.check(cursor, length: Limits.cursorLength, field: "cursor")
    }
}

/// How far a member of a channel has read.
public struct ReadPosition: Codable, Hashable, Sendable {
    /// The member.
    public var userId: UserID
    /// The seq up to which they have read.
    public var readSeq: Seq
    /// When they last marked something as read.
    public var lastReadAt: Timestamp?
    /// The seq up to which messages have reached one of the member's devices, if that is beyond `readSeq` and deliveries are reported
    /// (``ChannelPolicy/deliveryEvents``).
    public var deliveredSeq: Seq?
    /// When that was reported.
    public var lastDeliveredAt: Timestamp?
    /// The seq at which they became a member, in responses only: messages up to it count as read by them, seen or not.
    public var joinedSeq: Seq?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        userId: UserID, readSeq: Seq, lastReadAt: Timestamp? = nil, deliveredSeq: Seq? = nil, lastDeliveredAt: Timestamp? = nil,
        joinedSeq: Seq? = nil
    ) {
        self.userId = userId
        self.readSeq = readSeq
        self.lastReadAt = lastReadAt
        self.deliveredSeq = deliveredSeq
        self.lastDeliveredAt = lastDeliveredAt
        self.joinedSeq = joinedSeq
    }

    /// Merges two positions of the same member, received in any order.
    package func merged(with other: ReadPosition) -> ReadPosition {
        var merged = other.readSeq > readSeq ? other : self
        merged.joinedSeq = joinedSeq ?? other.joinedSeq
        let further = deliveredSeq ?? 0 >= other.deliveredSeq ?? 0 ? self : other
        (merged.deliveredSeq, merged.lastDeliveredAt) = (further.deliveredSeq, further.lastDeliveredAt)
        // Read messages count as delivered.
        if merged.deliveredSeq ?? 0 <= merged.readSeq { (merged.deliveredSeq, merged.lastDeliveredAt) = (nil, nil) }
        return merged
    }
}

extension ReadPosition: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("userId", userId)
        json.member("readSeq", readSeq)
        json.member("lastReadAt", lastReadAt)
        json.member("deliveredSeq", deliveredSeq)
        json.member("lastDeliveredAt", lastDeliveredAt)
        json.member("joinedSeq", joinedSeq)
        json.endObject()
    }
}

/// The caller's unread messages in one channel (AM-43).
public struct GetUnread: Operation {
    public typealias Response = UnreadCount
    public static let name = "reading.unread"
    public static let method = HTTPMethod.get
    public static let path = "/v1/channels/{channel}/unread"
    public static let permission = Permission.readingMark
    public static let summary = "The caller's unread count in one channel."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    // derived: init
    /// Creates a value with these fields.
    public init(channel: ChannelID) { self.channel = channel }
    public func validate() throws(RoostError) { try channel.validate(field: "channel") }
}

/// The sum of the caller's unread messages over all joined channels (AM-44).
public struct GetTotalUnread: Operation {
    public typealias Response = TotalUnread
    public static let name = "reading.total"
    public static let method = HTTPMethod.get
    public static let path = "/v1/me/unread"
    public static let permission = Permission.streamRead
    public static let summary = "The caller's unread count over all joined channels."

    // derived: init
    /// Creates a value, which has no fields.
    public init() {}
    public func validate() throws(RoostError) {}
}

/// The caller's unread messages in one channel.
public struct UnreadCount: Codable, Hashable, Sendable {
    /// The channel.
    public var channelId: ChannelID
    /// The number of unread messages.
    public var unreadCount: Int
    /// The seq up to which the caller has read.
    public var readSeq: Seq
    /// Whether an unread message mentions the caller (MN-16).
    public var hasMention: Bool = false  // wire: may be absent

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(channelId: ChannelID, unreadCount: Int, readSeq: Seq, hasMention: Bool = false) {
        self.channelId = channelId
        self.unreadCount = unreadCount
        self.readSeq = readSeq
        self.hasMention = hasMention
    }
}

extension UnreadCount: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("channelId", channelId)
        json.member("unreadCount", unreadCount)
        json.member("readSeq", readSeq)
        json.member("hasMention", hasMention)
        json.endObject()
    }
}

extension UnreadCount {
    // derived: CodingKeys
    private enum CodingKeys: String, CodingKey {
        case channelId, unreadCount, readSeq, hasMention
    }

    // derived: encode(to:)
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(channelId, forKey: .channelId)
        try container.encode(unreadCount, forKey: .unreadCount)
        try container.encode(readSeq, forKey: .readSeq)
        try container.encode(hasMention, forKey: .hasMention)
    }

    // derived: init(from:)
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        channelId = try container.decode(ChannelID.self, forKey: .channelId)
        unreadCount = try container.decode(Int.self, forKey: .unreadCount)
        readSeq = try container.decode(Seq.self, forKey: .readSeq)
        hasMention = try container.decodeIfPresent(Bool.self, forKey: .hasMention) ?? false
    }
}

/// The caller's unread messages over all joined channels, without those that the caller has muted (D-29).
public struct TotalUnread: Codable, Hashable, Sendable {
    /// The number of unread messages.
    public var unreadCount: Int
    /// Channels with at least one unread message.
    public var unreadChannelCount: Int

    // derived: init
    /// Creates a value with these fields.
    public init(unreadCount: Int, unreadChannelCount: Int) {
        self.unreadCount = unreadCount
        self.unreadChannelCount = unreadChannelCount
    }
}
