/// Mutes a channel for the caller alone, for a time (D-29): the channel's unread count continues, but is left out of the total and the
/// badge, and a message doesn't bring the channel back if the caller has hidden it (D-32). Nothing else changes. Another call sets a new
/// end.
///
/// When the time is over, the server ends it as ``UnmuteNotifications`` does.
public struct MuteNotifications: Operation {
    public typealias Response = Membership
    public static let name = "channel.muteNotifications"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/notifications/mute"
    public static let permission = Permission.channelHide
    public static let summary = "Leave a channel out of the caller's total and badge, for some seconds."

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

/// Ends the effect of ``MuteNotifications``: the channel counts again with all its unread messages, and comes back if a message arrived
/// meanwhile. Does nothing if the channel isn't muted.
public struct UnmuteNotifications: Operation {
    public typealias Response = Membership
    public static let name = "channel.unmuteNotifications"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/notifications/unmute"
    public static let permission = Permission.channelHide
    public static let summary = "Count a channel in the caller's total and badge again."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    // derived: init
    /// Creates a value with these fields.
    public init(channel: ChannelID) { self.channel = channel }
    public func validate() throws(RoostError) { try channel.validate(field: "channel") }
}
