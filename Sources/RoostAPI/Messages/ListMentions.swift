/// The messages that mention the caller by name, in all channels where the caller may read them, the newest first; or those of one channel
/// that mention the caller, by name or with the whole channel.
///
/// A page may hold fewer than requested and still have a `nextCursor`: mentions that the caller can no longer see are skipped, and one call
/// looks at a bounded number of them.
public struct ListMentions: Operation {
    public typealias Response = Page<Message>
    public static let name = "mention.list"
    public static let method = HTTPMethod.get
    public static let path = "/v1/me/mentions"
    public static let permission = Permission.streamRead
    public static let summary = """
        The messages that mention the caller by name, in all channels, or those of one channel that mention them or all of it; the newest first.
        """

    /// The channel; all of them when left out. Messages that mention a whole channel are listed only if that channel is given.
    public var channel: ChannelID?
    /// 1 to 100, 30 when left out.
    public var limit: Int?
    /// Where the page begins: the `nextCursor` of the page before. The first page when left out.
    public var cursor: String?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(channel: ChannelID? = nil, limit: Int? = nil, cursor: String? = nil) {
        self.channel = channel
        self.limit = limit
        self.cursor = cursor
    }

    public func validate() throws(RoostError) {
        try channel?.validate(field: "channel")
        _ = try Limits.page(limit, Limits.historyPage)
        try Limits.check(cursor, length: Limits.cursorLength, field: "cursor")
    }
}
