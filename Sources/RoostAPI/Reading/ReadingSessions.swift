/// Starts reading a channel on this connection (AM-45): the whole channel is marked as read at once, and everything that the connection
/// then receives of it counts as read, on all of the caller's devices. Calling it again marks the channel as read again.
///
/// It ends with ``StopReading``, with the membership, with the right to read, with ``MarkUnread`` on any device, and with the connection
/// (AM-46). A caller may read several channels at once, on several connections. The server moves the position itself, a second or two after
/// a message: once the client has answered a ping sent after it, so nothing counts as read before it has arrived. If more than 100
/// connections on one of a server's event-loop threads (one per core) read one channel, it does so every ten seconds.
/// - Throws: `not_connected` over HTTP, which has no connection to read on; the errors of `reading.mark`; `not_permitted` if the caller may
///   not read, and `kind_forbids` if the policy's ``ChannelPolicy/read`` is `admins` or `nobody`.
public struct StartReading: Operation {
    public typealias Response = UnreadCount
    public static let name = "reading.start"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/reading"
    public static let permission = Permission.readingMark
    public static let summary = "Read a channel on this connection: what it receives counts as read. Only over a WebSocket."
    public static let isConnectionScoped = true

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    // derived: init
    /// Creates a value with these fields.
    public init(channel: ChannelID) { self.channel = channel }
    public func validate() throws(RoostError) { try channel.validate(field: "channel") }
}

/// Stops reading a channel on this connection. Everything received until then is read; other connections keep reading. Does nothing if the
/// channel isn't being read.
public struct StopReading: Operation {
    public typealias Response = Done
    public static let name = "reading.stop"
    public static let method = HTTPMethod.delete
    public static let path = "/v1/channels/{channel}/reading"
    public static let permission = Permission.streamRead
    public static let summary = "Stop reading a channel on this connection. Only over a WebSocket."
    public static let isConnectionScoped = true

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    // derived: init
    /// Creates a value with these fields.
    public init(channel: ChannelID) { self.channel = channel }
    public func validate() throws(RoostError) { try channel.validate(field: "channel") }
}
