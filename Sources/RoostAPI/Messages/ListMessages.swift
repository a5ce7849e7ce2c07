/// A page of a channel's messages in the order of their seq: the newest when no position is given.
///
/// At most one of `before`, `after`, `around`, `aroundMessage`, `beforeMessage`, `afterMessage`, `beforeTime`, `afterTime` and `aroundTime`
/// may be given; otherwise `invalid_argument` names the first of them. A page by time or by a message, and with `keepsTimesWhole` any page,
/// never ends between messages of the same time, so it may be larger than its limit (SB-52, SB-56). If it would exceed 1 MiB with these, or
/// with filters reach beyond the messages examined, it ends among them: continue from the last one's seq, or from `from` and `to`.
///
/// With filters a page has only matching messages, and may have fewer than its limit, or none: one call examines a bounded number of
/// messages, the range given by `from` and `to`. The next page is before `from` or after `to`.
/// - Throws: `not_found` for a message that the caller can't see: one that never existed, is concealed or was permanently deleted.
public struct ListMessages: Operation {
    public typealias Response = MessagePage
    public static let name = "message.list"
    public static let method = HTTPMethod.get
    public static let path = "/v1/channels/{channel}/messages"
    public static let permission = Permission.historyRead
    public static let summary = "A page of messages: the newest, or those before, after or around a seq, a time or a message."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    /// Messages with a lower seq, starting with the nearest.
    public var before: Seq?
    /// Messages with a higher seq, starting with the nearest.
    public var after: Seq?
    /// Half of the page up to this seq, half after it.
    public var around: Seq?
    /// The same around a message, which is the last of the first half.
    public var aroundMessage: MessageID?
    /// Messages before this one (SB-56).
    public var beforeMessage: MessageID?
    /// Messages after this one (SB-56).
    public var afterMessage: MessageID?
    /// Messages sent before this time (SB-51).
    public var beforeTime: Timestamp?
    /// Messages sent after this time (SB-54).
    public var afterTime: Timestamp?
    /// Half of the page sent before this time, half at it or after it (SB-55).
    public var aroundTime: Timestamp?
    /// 1 to 100, 30 when left out.
    public var limit: Int?
    /// How many messages of a page around a position come after it; half of the limit when left out, with the other half before it.
    public var newerLimit: Int?
    /// Only messages of these kinds (SB-53).
    public var kinds: [MessageKind]?
    /// Only messages with this custom type (SB-53).
    public var customType: String?
    /// Only messages of these users: at most 20. The server's own messages count as nobody's, and are included only if ``kinds`` names them.
    public var senders: [UserID]?
    /// Newest first (SB-49).
    public var reverse: Bool?
    /// Whether the page doesn't end between messages of the same time (SB-52). When left out, a page by time or by a message doesn't, and others may.
    public var keepsTimesWhole: Bool?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        channel: ChannelID, before: Seq? = nil, after: Seq? = nil, around: Seq? = nil, aroundMessage: MessageID? = nil,
        beforeMessage: MessageID? = nil, afterMessage: MessageID? = nil, beforeTime: Timestamp? = nil, afterTime: Timestamp? = nil,
        aroundTime: Timestamp? = nil, limit: Int? = nil, newerLimit: Int? = nil, kinds: [MessageKind]? = nil,
        customType: String? = nil, senders: [UserID]? = nil, reverse: Bool? = nil, keepsTimesWhole: Bool? = nil
    ) {
        self.channel = channel
        self.before = before
        self.after = after
        self.around = around
        self.aroundMessage = aroundMessage
        self.beforeMessage = beforeMessage
        self.afterMessage = afterMessage
        self.beforeTime = beforeTime
        self.afterTime = afterTime
        self.aroundTime = aroundTime
        self.limit = limit
        self.newerLimit = newerLimit
        self.kinds = kinds
        self.customType = customType
        self.senders = senders
        self.reverse = reverse
        self.keepsTimesWhole = keepsTimesWhole
    }

    public func validate() throws(RoostError) {
        try channel.validate(field: "channel")
        _ = try Limits.page(limit, Limits.historyPage)
        try Limits.check(seq: before, field: "before")
        try Limits.check(seq: after, field: "after")
        try Limits.check(seq: around, field: "around")
        let places = givenPlaces
        if places.count > 1 { throw .invalidArgument(places[0], "can't be combined with another position") }
        if let newerLimit {
            guard around != nil || aroundMessage != nil || aroundTime != nil else {
                throw .invalidArgument("newerLimit", "requires around, aroundMessage or aroundTime")
            }
            guard newerLimit >= 0 else { throw .invalidArgument("newerLimit", "must be 0 or more") }
            guard newerLimit <= Limits.historyPage.max else {
                throw .limitExceeded("newerLimit", limit: Limits.historyPage.max, unit: "rows")
            }
        }
        for (index, kind) in (kinds ?? []).enumerated() { try kind.validate(field: "kinds[\(index)]") }
        try Limits.check(list: kinds, count: MessageKind.allCases.count, field: "kinds") { _ throws(RoostError) in }
        try Limits.check(customType, length: Limits.customTypeLength, field: "customType")
        try Limits.check(list: senders, count: Limits.filterValues, field: "senders") { sender throws(RoostError) in
            try sender.validate(field: "senders")
        }
    }

    /// The given ones of the nine position fields, in field order.
    private var givenPlaces: [String] {
        let places: [(field: String, isGiven: Bool)] = [
            ("before", before != nil), ("after", after != nil), ("around", around != nil), ("aroundMessage", aroundMessage != nil),
            ("beforeMessage", beforeMessage != nil), ("afterMessage", afterMessage != nil), ("beforeTime", beforeTime != nil),
            ("afterTime", afterTime != nil), ("aroundTime", aroundTime != nil),
        ]
        return places.filter { $0.isGiven }.map { $0.field }
    }
}

extension ListMessages: PlainReadable {
    // derived: init(plainly:), refusing others
    package init?(plainly json: inout PlainJSON) {
        var (channel, before, after, around, aroundMessage, beforeMessage): (ChannelID?, Seq?, Seq?, Seq?, MessageID?, MessageID?)
        var (afterMessage, beforeTime, afterTime, aroundTime, limit): (MessageID?, Timestamp?, Timestamp?, Timestamp?, Int?)
        var (newerLimit, kinds, customType, senders, reverse): (Int?, [MessageKind]?, String?, [UserID]?, Bool?)
        var keepsTimesWhole: Bool?
        let isPlain = json.members { key, json in
            switch key {
            case "channel": json.read(into: &channel)
            case "before": json.read(into: &before)
            case "after": json.read(into: &after)
            case "around": json.read(into: &around)
            case "aroundMessage": json.read(into: &aroundMessage)
            case "beforeMessage": json.read(into: &beforeMessage)
            case "afterMessage": json.read(into: &afterMessage)
            case "beforeTime": json.read(into: &beforeTime)
            case "afterTime": json.read(into: &afterTime)
            case "aroundTime": json.read(into: &aroundTime)
            case "limit": json.read(into: &limit)
            case "newerLimit": json.read(into: &newerLimit)
            case "kinds": json.read(into: &kinds)
            case "customType": json.read(into: &customType)
            case "senders": json.read(into: &senders)
            case "reverse": json.read(into: &reverse)
            case "keepsTimesWhole": json.read(into: &keepsTimesWhole)
            default: false
            }
        }
        guard isPlain, let channel else { return nil }
        self.init(
            channel: channel, before: before, after: after, around: around, aroundMessage: aroundMessage,
            beforeMessage: beforeMessage, afterMessage: afterMessage, beforeTime: beforeTime, afterTime: afterTime,
            aroundTime: aroundTime, limit: limit, newerLimit: newerLimit, kinds: kinds, customType: customType, senders: senders,
            reverse: reverse, keepsTimesWhole: keepsTimesWhole
        )
    }
}

/// Messages in the order of their seq, and whether there are more on either side.
public struct MessagePage: Codable, Hashable, Sendable {
    /// The messages, oldest first unless `reverse` was requested.
    public var messages: [Message]
    /// Whether there are older ones.
    public var hasOlder: Bool
    /// Whether there are newer ones.
    public var hasNewer: Bool
    /// The channel's seq at this response: a message list that begins with this page follows the stream from here.
    public var seq: Seq
    /// The first seq of the range examined; only with filters.
    public var from: Seq?
    /// The last seq of the range examined; only with filters.
    public var to: Seq?
    /// The users named by the messages, each once, ordered by id. Absent if there are none.
    public var users: [UserSummary]?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        messages: [Message], hasOlder: Bool, hasNewer: Bool, seq: Seq, from: Seq? = nil, to: Seq? = nil, users: [UserSummary]? = nil
    ) {
        self.messages = messages
        self.hasOlder = hasOlder
        self.hasNewer = hasNewer
        self.seq = seq
        self.from = from
        self.to = to
        self.users = users
    }
}

extension MessagePage: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("messages", messages)
        json.member("hasOlder", hasOlder)
        json.member("hasNewer", hasNewer)
        json.member("seq", seq)
        json.member("from", from)
        json.member("to", to)
        json.member("users", users)
        json.endObject()
    }
}
