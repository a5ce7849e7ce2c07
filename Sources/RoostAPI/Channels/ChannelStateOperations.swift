/// Freezes a channel: ordinary members can't send, edit or react until it is unfrozen (SB-21). Freezing a frozen channel changes nothing.
public struct FreezeChannel: Operation {
    public typealias Response = Channel
    public static let name = "channel.freeze"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/freeze"
    public static let permission = Permission.channelFreeze
    public static let summary = "Freeze a channel: only operators send. For operators."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    // derived: init
    /// Creates a value with these fields.
    public init(channel: ChannelID) { self.channel = channel }
    public func validate() throws(RoostError) { try channel.validate(field: "channel") }
}

/// Ends a freeze (SB-21). Unfreezing a channel that isn't frozen changes nothing.
public struct UnfreezeChannel: Operation {
    public typealias Response = Channel
    public static let name = "channel.unfreeze"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/unfreeze"
    public static let permission = Permission.channelFreeze
    public static let summary = "Unfreeze a channel. For operators."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    // derived: init
    /// Creates a value with these fields.
    public init(channel: ChannelID) { self.channel = channel }
    public func validate() throws(RoostError) { try channel.validate(field: "channel") }
}

/// Silences a whole channel for its ordinary members, for a time (AM-07, D-29). Another call sets a new end.
public struct SilenceChannel: Operation {
    public typealias Response = Channel
    public static let name = "channel.silence"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/silence"
    public static let permission = Permission.channelSilence
    public static let summary = "Silence a channel for ordinary members, for some seconds. For operators."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    /// More than 0, or −1 for no end; no end when left out.
    public var seconds: Int?
    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(channel: ChannelID, seconds: Int? = nil) {
        self.channel = channel
        self.seconds = seconds
    }
    public func validate() throws(RoostError) {
        try channel.validate(field: "channel")
        try Limits.check(seconds: seconds, field: "seconds")
    }
}

/// Ends a silence (AM-07). One that has already expired is cleared: `mutedUntil` is removed, and members are notified. Does nothing if there is none.
public struct UnsilenceChannel: Operation {
    public typealias Response = Channel
    public static let name = "channel.unsilence"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/unsilence"
    public static let permission = Permission.channelSilence
    public static let summary = "End a channel's silence. For operators."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    // derived: init
    /// Creates a value with these fields.
    public init(channel: ChannelID) { self.channel = channel }
    public func validate() throws(RoostError) { try channel.validate(field: "channel") }
}

/// Sets a channel's rate limit: how many messages the channel should get per window of time (AM-08, X-07).
///
/// It is stored and shown to every observer; the server doesn't enforce it yet.
public struct SetRateLimit: Operation {
    public typealias Response = Channel
    public static let name = "channel.setRateLimit"
    public static let method = HTTPMethod.put
    public static let path = "/v1/channels/{channel}/rate-limit"
    public static let permission = Permission.channelSetRateLimit
    public static let summary = "Set a channel's rate limit. For operators."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    /// 1 to 1000 messages in each window.
    public var messages: Int
    /// 1 to 3600 seconds.
    public var windowSeconds: Int
    /// How long the limit lasts: more than 0, or −1 for no end; no end when left out.
    public var seconds: Int?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(channel: ChannelID, messages: Int, windowSeconds: Int, seconds: Int? = nil) {
        self.channel = channel
        self.messages = messages
        self.windowSeconds = windowSeconds
        self.seconds = seconds
    }

    public func validate() throws(RoostError) {
        try channel.validate(field: "channel")
        guard messages >= 1 else { throw .invalidArgument("messages", "must be 1 or more") }
        guard messages <= Limits.rateLimitMessages else {
            throw .limitExceeded("messages", limit: Limits.rateLimitMessages, unit: "messages")
        }
        guard windowSeconds >= 1 else { throw .invalidArgument("windowSeconds", "must be 1 or more") }
        guard windowSeconds <= Limits.rateLimitWindowSeconds else {
            throw .limitExceeded("windowSeconds", limit: Limits.rateLimitWindowSeconds, unit: "seconds")
        }
        try Limits.check(seconds: seconds, field: "seconds")
    }
}

/// Removes a channel's rate limit. One that has already expired is cleared too, and members are notified. Does nothing if there is none.
public struct RemoveRateLimit: Operation {
    public typealias Response = Channel
    public static let name = "channel.removeRateLimit"
    public static let method = HTTPMethod.delete
    public static let path = "/v1/channels/{channel}/rate-limit"
    public static let permission = Permission.channelSetRateLimit
    public static let summary = "Remove a channel's rate limit. For operators."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    // derived: init
    /// Creates a value with these fields.
    public init(channel: ChannelID) { self.channel = channel }
    public func validate() throws(RoostError) { try channel.validate(field: "channel") }
}

/// Hides a channel from the caller's own lists, on all the caller's devices (SB-26).
public struct HideChannel: Operation {
    public typealias Response = Membership
    public static let name = "channel.hide"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/hide"
    public static let permission = Permission.channelHide
    public static let summary = "Hide a channel from the caller's lists."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    /// Whether the messages so far stay concealed when the channel comes back; they then count as read. False when left out.
    public var hidePreviousMessages: Bool?
    /// The newest seq that the client had when the user hid the channel, possibly offline; the channel's newest when left out. Later
    /// messages aren't concealed and bring the channel back.
    public var upTo: Seq?
    /// Whether the next message brings the channel back; true when left out. False archives it (SB-27).
    public var allowAutoUnhide: Bool?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(channel: ChannelID, hidePreviousMessages: Bool? = nil, upTo: Seq? = nil, allowAutoUnhide: Bool? = nil) {
        self.channel = channel
        self.hidePreviousMessages = hidePreviousMessages
        self.upTo = upTo
        self.allowAutoUnhide = allowAutoUnhide
    }
    public func validate() throws(RoostError) {
        try channel.validate(field: "channel")
        try Limits.check(seq: upTo, field: "upTo")
    }
}

/// Clears the channel's history for the caller alone: the messages so far are concealed and count as read (SB-60). Others still see them.
///
/// Repeating it without new messages changes nothing.
/// - Throws: `not_member`; `feature_disabled` where the app hides history from new members (D-35).
public struct ResetHistory: Operation {
    public typealias Response = Membership
    public static let name = "channel.resetHistory"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/history/reset"
    public static let permission = Permission.channelHide
    public static let summary = "Conceal all messages so far from the caller alone."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    /// The newest seq that the client had when the user reset the history, possibly offline; the channel's newest when left out. Later
    /// messages aren't concealed.
    public var upTo: Seq?
    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(channel: ChannelID, upTo: Seq? = nil) {
        self.channel = channel
        self.upTo = upTo
    }

    public func validate() throws(RoostError) {
        try channel.validate(field: "channel")
        try Limits.check(seq: upTo, field: "upTo")
    }
}

/// Shows a hidden channel again (SB-28). Concealed messages stay concealed. Showing a visible channel changes nothing, even if a message
/// brought it back: the response has the row unchanged, and ``Membership/visibility(in:)`` interprets it.
public struct UnhideChannel: Operation {
    public typealias Response = Membership
    public static let name = "channel.unhide"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/unhide"
    public static let permission = Permission.channelHide
    public static let summary = "Show a hidden channel again."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    // derived: init
    /// Creates a value with these fields.
    public init(channel: ChannelID) { self.channel = channel }
    public func validate() throws(RoostError) { try channel.validate(field: "channel") }
}
