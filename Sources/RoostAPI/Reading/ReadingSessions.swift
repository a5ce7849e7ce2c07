/// Tells that the caller reads a channel on this connection from now on (AM-45): all of it is read at once, and what the connection receives of it
/// from then on counts as read, on all of the caller's devices. Calling it again marks the channel as read once more.
///
/// It ends with ``StopReading``, with the membership, with the right to read, with ``MarkUnread`` on any device, and with the connection (AM-46). A caller may read several channels at once, on
/// several connections. The server moves the position itself, a second or two after a message: once the client has answered a ping sent after it, so that
/// nothing counts as read that hasn't arrived. Where more than 100 connections on one of a server's threads for connections (it has one for each
/// core) read one channel it does so every ten seconds.
/// - Throws: `not_connected` over HTTP, which has no connection that could read; those of `reading.mark`; `not_permitted` where the caller may not read, and
///   `kind_forbids` where the policy's ``ChannelPolicy/read`` is `admins` or `nobody`.
public struct StartReading: Operation {
    public typealias Response = UnreadCount
    public static let name = "reading.start"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/reading"
    public static let permission = Permission.readingMark
    public static let summary = "Read a channel on this connection: what it receives counts as read. Only over a WebSocket."
    public static let isAboutConnection = true

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    // derived: init
    /// Creates a value with these fields.
    public init(channel: ChannelID) { self.channel = channel }
    public func validate() throws(RoostError) { try channel.validate(field: "channel") }
}

/// Tells that the caller doesn't read a channel on this connection any more. What it has received until then is read; other connections go on. Does nothing if
/// it isn't read.
public struct StopReading: Operation {
    public typealias Response = Done
    public static let name = "reading.stop"
    public static let method = HTTPMethod.delete
    public static let path = "/v1/channels/{channel}/reading"
    public static let permission = Permission.streamRead
    public static let summary = "Stop reading a channel on this connection. Only over a WebSocket."
    public static let isAboutConnection = true

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    // derived: init
    /// Creates a value with these fields.
    public init(channel: ChannelID) { self.channel = channel }
    public func validate() throws(RoostError) { try channel.validate(field: "channel") }
}
