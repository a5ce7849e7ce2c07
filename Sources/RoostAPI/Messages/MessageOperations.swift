/// Sends a text message. The answer means that the message is on disk, in its place in the channel's order.
///
/// Sending again with the same `clientId` stores nothing and answers with the message as it is now.
/// - Throws: `not_member`, `not_permitted`; `not_found` for an unknown `parentId`.
public struct SendMessage: Operation, MessageCarrying {
    public typealias Response = Message
    public static let name = "message.send"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/messages"
    public static let permission = Permission.messageSend
    public static let summary = "Send a text message. Sending again with the same clientId answers with the stored message."
    public static let repeatField: String? = "clientId"

    public var channel: ChannelID
    public var clientId: ClientID
    public var content: MessageContent  // inline

    // derived: init
    public init(channel: ChannelID, clientId: ClientID, content: MessageContent) {
        self.channel = channel
        self.clientId = clientId
        self.content = content
    }

    // derived: flat init
    public init(
        channel: ChannelID, clientId: ClientID, text: String, customType: String? = nil, data: String? = nil,
        metadata: JSONValue? = nil, tags: [String]? = nil, parentId: MessageID? = nil
    ) {
        let content = MessageContent(
            text: text, customType: customType, data: data, metadata: metadata, tags: tags, parentId: parentId
        )
        self.init(channel: channel, clientId: clientId, content: content)
    }

    public func validate() throws(RoostError) {
        try channel.validate(field: "channel")
        try clientId.validate(field: "clientId")
        try content.validate()
    }
}

extension SendMessage {
    // derived: CodingKeys
    private enum CodingKeys: String, CodingKey {
        case channel, clientId, text, customType, data, metadata, tags, parentId
    }

    // derived: encode(to:)
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(channel, forKey: .channel)
        try container.encode(clientId, forKey: .clientId)
        try container.encode(content.text, forKey: .text)
        try container.encodeIfPresent(content.customType, forKey: .customType)
        try container.encodeIfPresent(content.data, forKey: .data)
        try container.encodeIfPresent(content.metadata, forKey: .metadata)
        try container.encodeIfPresent(content.tags, forKey: .tags)
        try container.encodeIfPresent(content.parentId, forKey: .parentId)
    }

    // derived: init(from:)
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        channel = try container.decode(ChannelID.self, forKey: .channel)
        clientId = try container.decode(ClientID.self, forKey: .clientId)
        let text = try container.decode(String.self, forKey: .text)
        let customType = try container.decodeIfPresent(String.self, forKey: .customType)
        let data = try container.decodeIfPresent(String.self, forKey: .data)
        let metadata = try container.decodeIfPresent(JSONValue.self, forKey: .metadata)
        let tags = try container.decodeIfPresent([String].self, forKey: .tags)
        let parentId = try container.decodeIfPresent(MessageID.self, forKey: .parentId)
        content = MessageContent(text: text, customType: customType, data: data, metadata: metadata, tags: tags, parentId: parentId)
    }
}

/// A page of a channel's messages in the order of their seq: the newest when no position is given.
///
/// At most one of `before`, `after`, `around` and `aroundMessage` may be given.
/// - Throws: `not_found` for an `aroundMessage` that the caller can't see: one that never was, is concealed or was deleted for good.
public struct ListMessages: Operation {
    public typealias Response = MessagePage
    public static let name = "message.list"
    public static let method = HTTPMethod.get
    public static let path = "/v1/channels/{channel}/messages"
    public static let permission = Permission.historyRead
    public static let summary = "A page of messages: the newest, or those before, after or around a seq, or around a message."

    public var channel: ChannelID
    /// Messages with a lower seq, the nearest first taken.
    public var before: Seq?
    /// Messages with a higher seq, the nearest first taken.
    public var after: Seq?
    /// Half of the page up to this seq, half after it.
    public var around: Seq?
    /// The same around a message, which is the last one of the first half.
    public var aroundMessage: MessageID?
    /// 1 to 100, 30 when left out.
    public var limit: Int?

    // derived: init
    public init(
        channel: ChannelID, before: Seq? = nil, after: Seq? = nil, around: Seq? = nil, aroundMessage: MessageID? = nil,
        limit: Int? = nil
    ) {
        self.channel = channel
        self.before = before
        self.after = after
        self.around = around
        self.aroundMessage = aroundMessage
        self.limit = limit
    }

    public func validate() throws(RoostError) {
        try channel.validate(field: "channel")
        _ = try Limits.page(limit, Limits.historyPage)
        try Limits.check(seq: before, field: "before")
        try Limits.check(seq: after, field: "after")
        try Limits.check(seq: around, field: "around")
        let given = [before, after, around, aroundMessage?.rawValue].compactMap { $0 }.count
        guard given <= 1 else {
            throw .invalidArgument("before", "must be alone: give only one of before, after, around and aroundMessage")
        }
    }
}

/// One message of a channel, as a page shows it: with empty content if it is deleted.
///
/// - Throws: `not_found` for one that no page shows the caller: that never was, is concealed or was deleted for good. The answers are the
///   same.
public struct GetMessage: Operation {
    public typealias Response = Message
    public static let name = "message.get"
    public static let method = HTTPMethod.get
    public static let path = "/v1/channels/{channel}/messages/{message}"
    public static let permission = Permission.historyRead
    public static let summary = "One message of a channel."

    public var channel: ChannelID
    public var message: MessageID
    // derived: init
    public init(channel: ChannelID, message: MessageID) {
        self.channel = channel
        self.message = message
    }
    public func validate() throws(RoostError) { try channel.validate(field: "channel") }
}

/// Messages in the order of their seq, and whether there are more on either side.
public struct MessagePage: Codable, Hashable, Sendable {
    /// The messages, oldest first.
    public var messages: [Message]
    /// Whether there are older ones.
    public var hasOlder: Bool
    /// Whether there are newer ones.
    public var hasNewer: Bool
    /// The channel's seq at this answer: a message list that begins with this page follows the stream from here.
    public var seq: Seq
    /// The users whom the messages name, each once, in the order of their ids. Absent where there are none.
    public var users: [UserSummary]?

    // derived: init
    public init(messages: [Message], hasOlder: Bool, hasNewer: Bool, seq: Seq, users: [UserSummary]? = nil) {
        self.messages = messages
        self.hasOlder = hasOlder
        self.hasNewer = hasNewer
        self.seq = seq
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
        json.member("users", users)
        json.endObject()
    }
}

/// Replaces the given parts of a message's content. The author may edit it, and an operator may edit any (SB-58).
///
/// An edit that changes nothing makes no event and answers with the message as it is.
/// - Throws: `not_message_owner` for someone else's, `not_found` for one that is deleted.
public struct EditMessage: Operation {
    public typealias Response = Message
    public static let name = "message.edit"
    public static let method = HTTPMethod.patch
    public static let path = "/v1/channels/{channel}/messages/{message}"
    public static let permission = Permission.messageEditOwn
    public static let summary = "Edit a message. For its author and for operators."

    public var channel: ChannelID
    public var message: MessageID
    public var text: String?
    public var customType: String?
    public var data: String?
    public var metadata: JSONValue?
    public var tags: [String]?

    // derived: init
    public init(
        channel: ChannelID, message: MessageID, text: String? = nil, customType: String? = nil, data: String? = nil,
        metadata: JSONValue? = nil, tags: [String]? = nil
    ) {
        self.channel = channel
        self.message = message
        self.text = text
        self.customType = customType
        self.data = data
        self.metadata = metadata
        self.tags = tags
    }

    public func validate() throws(RoostError) {
        try channel.validate(field: "channel")
        // The given parts must be within the limits of a new message.
        var content = MessageContent(text: "any")
        content.apply(self)
        try content.validate()
    }
}

extension MessageContent {
    /// Applies an edit.
    public mutating func apply(_ edit: EditMessage) {
        text = edit.text ?? text
        customType = edit.customType ?? customType
        data = edit.data ?? data
        metadata = edit.metadata ?? metadata
        tags = edit.tags ?? tags
    }
}

/// Deletes a message: its place stays, its content is removed. The author may delete it, and an operator may delete any (SB-59). Deleting
/// it again changes nothing.
public struct DeleteMessage: Operation {
    public typealias Response = Message
    public static let name = "message.delete"
    public static let method = HTTPMethod.delete
    public static let path = "/v1/channels/{channel}/messages/{message}"
    public static let permission = Permission.messageDeleteOwn
    public static let summary = "Delete a message: its place stays, its content goes. For its author and for operators."

    public var channel: ChannelID
    public var message: MessageID
    // derived: init
    public init(channel: ChannelID, message: MessageID) {
        self.channel = channel
        self.message = message
    }
    public func validate() throws(RoostError) { try channel.validate(field: "channel") }
}
