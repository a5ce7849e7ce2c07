/// Tells the channel's other members, and who watches it, that the caller types (SB-02). It ends with ``StopTyping``, with the
/// membership, or ``Limits/typingSeconds`` after the last call; a client that goes on typing calls again every few seconds.
///
/// It needs the right to send: who is muted can't type either. In a channel of more than ``Limits/largeChannelMembers`` only watchers are told.
/// - Throws: Those of `message.send` that concern the caller's right, as `not_member`, `muted`, `frozen`; `feature_disabled` if the policy has no `typingEvents`;
///   `rate_limited` for more than ``Limits/signalsPerSecond`` a second.
public struct StartTyping: Operation {
    public typealias Response = Done
    public static let name = "typing.start"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/typing"
    public static let permission = Permission.messageSend
    /// Nothing is stored.
    public static let isReadOnly = true
    public static let summary = "Tell the channel that the caller types. It ends by itself after 10 seconds."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    // derived: init
    /// Creates a value with these fields.
    public init(channel: ChannelID) { self.channel = channel }
    public func validate() throws(RoostError) { try channel.validate(field: "channel") }
}

extension StartTyping: PlainReadable {
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

/// Tells that the caller doesn't type any more. Does nothing if they don't. A client calls it when its user has sent a message, too.
/// - Throws: `rate_limited` for more than ``Limits/signalsPerSecond`` a second.
public struct StopTyping: Operation {
    public typealias Response = Done
    public static let name = "typing.stop"
    public static let method = HTTPMethod.delete
    public static let path = "/v1/channels/{channel}/typing"
    public static let permission = Permission.streamRead
    public static let isReadOnly = true
    public static let summary = "Tell the channel that the caller doesn't type any more."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    // derived: init
    /// Creates a value with these fields.
    public init(channel: ChannelID) { self.channel = channel }
    public func validate() throws(RoostError) { try channel.validate(field: "channel") }
}

extension StopTyping: PlainReadable {
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

/// Tells those who watch a channel something in passing, of a kind of the app's own, the sender's other connections included. Nothing is
/// stored, and who isn't watching at this moment never learns of it.
///
/// - Throws: `rate_limited` for more than ``Limits/signalsPerSecond`` a second of one user, `limit_exceeded` for more than
///   ``Limits/signalSizeBytes``, and those of `message.send` that concern the caller's right.
public struct SendSignal: Operation {
    public typealias Response = Done
    public static let name = "signal.send"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/signals"
    public static let permission = Permission.messageSend
    public static let isReadOnly = true
    public static let summary = "Tell those who watch a channel something that isn't kept."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    /// The app's own name for it, 1 to 128 characters.
    public var type: String
    /// A JSON object of up to 4,000 bytes.
    public var metadata: JSONValue?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(channel: ChannelID, type: String, metadata: JSONValue? = nil) {
        self.channel = channel
        self.type = type
        self.metadata = metadata
    }

    public func validate() throws(RoostError) {
        try channel.validate(field: "channel")
        guard !type.isEmpty else { throw .invalidArgument("type", "must not be empty") }
        try Limits.check(type, length: Limits.customTypeLength, field: "type")
        // First, so that the refusal of what is beyond both limits names the one that holds here.
        guard metadata.map({ $0.sizeBytes <= Limits.signalSizeBytes }) ?? true else {
            throw .limitExceeded("metadata", limit: Limits.signalSizeBytes, unit: "bytes")
        }
        try Limits.check(metadata: metadata)
    }
}
