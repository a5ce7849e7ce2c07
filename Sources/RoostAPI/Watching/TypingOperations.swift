/// Notifies the channel's other members and its watchers that the caller is typing (SB-02). It ends with ``StopTyping``, with the
/// membership, or ``Limits/typingSeconds`` after the last call; while typing continues, a client calls again every few seconds.
///
/// It requires the right to send, so muted members can't do it. In a channel of more than ``Limits/largeChannelMembers`` members only
/// watchers are notified.
/// - Throws: The errors of `message.send` about the caller's rights, such as `not_member`, `muted`, `frozen`; `feature_disabled` if the
///   policy has no `typingEvents`; `rate_limited` for more than ``Limits/signalsPerSecond`` per second.
public struct StartTyping: Operation {
    public typealias Response = Done
    public static let name = "typing.start"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/typing"
    public static let permission = Permission.messageSend
    /// Nothing is stored.
    public static let isReadOnly = true
    public static let summary = "Report that the caller is typing in a channel. It ends automatically after 10 seconds."

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

/// Notifies the channel that the caller has stopped typing. Does nothing if they weren't typing. Clients also call it when the user has
/// sent a message.
/// - Throws: `rate_limited` for more than ``Limits/signalsPerSecond`` per second.
public struct StopTyping: Operation {
    public typealias Response = Done
    public static let name = "typing.stop"
    public static let method = HTTPMethod.delete
    public static let path = "/v1/channels/{channel}/typing"
    public static let permission = Permission.streamRead
    public static let isReadOnly = true
    public static let summary = "Report that the caller has stopped typing in a channel."

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

/// Sends an app's own signal to a channel's watchers, including the sender's other connections. Nothing is stored, and users who aren't
/// watching at that moment never receive it.
///
/// - Throws: `rate_limited` for more than ``Limits/signalsPerSecond`` per second by one user, `limit_exceeded` for more than
///   ``Limits/signalSizeBytes``, and the errors of `message.send` about the caller's rights.
public struct SendSignal: Operation {
    public typealias Response = Done
    public static let name = "signal.send"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/signals"
    public static let permission = Permission.messageSend
    public static let isReadOnly = true
    public static let summary = "Send a channel's watchers something that isn't stored."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    /// The app's own name for the kind of signal, 1 to 128 characters.
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
        // Checked first, so that an error for metadata beyond both limits names the limit that applies here.
        guard metadata.map({ $0.sizeBytes <= Limits.signalSizeBytes }) ?? true else {
            throw .limitExceeded("metadata", limit: Limits.signalSizeBytes, unit: "bytes")
        }
        try Limits.check(metadata: metadata)
    }
}
