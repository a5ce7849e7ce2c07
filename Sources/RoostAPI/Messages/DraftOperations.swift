/// A user's unsent text in a channel, on the user's own stream: it is synced to all of their devices and visible to nobody else.
public struct ChannelDraft: Codable, Hashable, Sendable {
    /// The channel.
    public var channelId: ChannelID
    /// The text so far. Empty once the draft was removed.
    public var text: String
    /// The app's own data, which isn't parsed: for example the mentions, or the message being answered.
    public var metadata: JSONValue?
    /// When it was last changed; when the user joined the channel if there never was one.
    public var updatedAt: Timestamp
    /// The seq of the user's stream at which it was last changed; 0 if there never was one.
    public var userSeq: Seq

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(channelId: ChannelID, text: String, metadata: JSONValue? = nil, updatedAt: Timestamp, userSeq: Seq) {
        self.channelId = channelId
        self.text = text
        self.metadata = metadata
        self.updatedAt = updatedAt
        self.userSeq = userSeq
    }
}

extension ChannelDraft: Identifiable {
    /// ``channelId``: a channel has one draft.
    public var id: ChannelID { channelId }
}

extension ChannelDraft {
    /// Whether the draft was removed.
    public var isRemoved: Bool { text.isEmpty }
}

extension ChannelDraft: StreamRow {
    package static let kind = "drafts"
    package var key: String { channelId.rawValue }
    package var stamp: Int64 { userSeq }
    package var contentSizeBytes: Int {
        channelId.rawValue.utf8.count + 200 + JSONBytes.sizeBytes(of: text) + (metadata?.sizeBytes ?? 0)
    }
}

extension ChannelDraft: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("channelId", channelId)
        json.member("text", text)
        json.member("metadata", metadata)
        json.member("updatedAt", updatedAt)
        json.member("userSeq", userSeq)
        json.endObject()
    }
}

extension Rows {
    /// The user's drafts; nil for none.
    public var drafts: [ChannelDraft]? {
        get { self[ChannelDraft.self] }
        set { self[ChannelDraft.self] = newValue }
    }
}

/// Stores the caller's draft in one of their channels, replacing the previous one: one draft per channel, on all of their devices. An empty
/// text removes it, also in a deleted channel; an identical draft changes nothing.
///
/// Sending a message doesn't remove it: the client that sends the draft does. Leaving the channel removes it.
/// - Throws: `not_member`, `not_found`; `limit_exceeded` with the field `text` or `metadata`; `invalid_argument` for metadata that isn't an object, and for
///   metadata without a text.
public struct SetDraft: Operation {
    public typealias Response = ChannelDraft
    public static let name = "draft.set"
    public static let method = HTTPMethod.put
    public static let path = "/v1/channels/{channel}/draft"
    // Not the permission to send: while muted, or while the channel is frozen, a member may keep writing a message for later.
    public static let permission = Permission.readingMark
    public static let summary = "Store the caller's draft in a channel; an empty text removes it."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    /// Up to `Limits.messageTextLength` characters; empty to remove the draft.
    public var text: String
    /// The app's own data, an object as in a message. Removed when left out.
    public var metadata: JSONValue?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(channel: ChannelID, text: String, metadata: JSONValue? = nil) {
        self.channel = channel
        self.text = text
        self.metadata = metadata
    }

    public func validate() throws(RoostError) {
        try channel.validate(field: "channel")
        try Limits.check(text, length: Limits.messageTextLength, field: "text")
        try Limits.check(metadata: metadata)
        guard !text.isEmpty || metadata == nil else {
            throw .invalidArgument("metadata", "must be left out with an empty text, which removes the draft")
        }
    }
}

/// The caller's draft in a channel; a draft with an empty text if there is none.
///
/// - Throws: `not_member`, `not_found`.
public struct GetDraft: Operation {
    public typealias Response = ChannelDraft
    public static let name = "draft.get"
    public static let method = HTTPMethod.get
    public static let path = "/v1/channels/{channel}/draft"
    public static let permission = Permission.readingMark
    public static let summary = "The caller's draft in a channel."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID

    // derived: init
    /// Creates a value with these fields.
    public init(channel: ChannelID) { self.channel = channel }

    public func validate() throws(RoostError) { try channel.validate(field: "channel") }
}

/// The caller's drafts in all of their channels, paged, the most recently changed first. Deleted channels are left out.
public struct ListDrafts: Operation {
    public typealias Response = Page<ChannelDraft>
    public static let name = "draft.list"
    public static let method = HTTPMethod.get
    public static let path = "/v1/me/drafts"
    public static let permission = Permission.streamRead
    public static let summary = "The caller's drafts in all channels, the most recently changed first."

    /// 1 to 100, 30 when left out.
    public var limit: Int?
    /// Where the page begins: the `nextCursor` of the page before. The first page when left out.
    public var cursor: String?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(limit: Int? = nil, cursor: String? = nil) {
        self.limit = limit
        self.cursor = cursor
    }

    public func validate() throws(RoostError) {
        _ = try Limits.page(limit, Limits.historyPage)
        try Limits.check(cursor, length: Limits.cursorLength, field: "cursor")
    }
}
