/// The content of a message: the same in a draft, the operation that sends it and the stored message.
public struct MessageContent: Codable, Hashable, Sendable {
    /// 1 to `Limits.messageTextLength` characters; empty once the message is deleted.
    public var text: String
    /// The app's own classification of the message (SB-34).
    public var customType: String?
    /// The app's own payload (SB-34).
    public var data: String?
    /// The app's own data, which isn't parsed (MN-05).
    public var metadata: JSONValue?
    /// At most 5.
    public var tags: [String]?
    /// The message that this one answers (MN-10).
    public var parentId: MessageID?

    // derived: init
    public init(
        text: String, customType: String? = nil, data: String? = nil, metadata: JSONValue? = nil, tags: [String]? = nil,
        parentId: MessageID? = nil
    ) {
        self.text = text
        self.customType = customType
        self.data = data
        self.metadata = metadata
        self.tags = tags
        self.parentId = parentId
    }
}

/// A value with a message's content. The content's fields read as its own: `message.text`.
@dynamicMemberLookup
public protocol MessageCarrying {
    /// The message's content.
    var content: MessageContent { get set }
}

extension MessageCarrying {
    /// A field of the content.
    public subscript<Value>(dynamicMember path: WritableKeyPath<MessageContent, Value>) -> Value {
        get { content[keyPath: path] }
        set { content[keyPath: path] = newValue }
    }
}

extension MessageContent {
    /// The content after deletion: only the message that it answers.
    public var emptied: MessageContent { MessageContent(text: "", parentId: parentId) }

    /// Throws when something in it is outside its limits.
    public func validate() throws(RoostError) {
        guard !text.isEmpty else { throw .invalidArgument("text", "must not be empty") }
        try Limits.check(text, length: Limits.messageTextLength, field: "text")
        try Limits.check(customType, length: Limits.customTypeLength, field: "customType")
        try Limits.check(data, length: Limits.messageDataLength, field: "data")
        try Limits.check(tags: tags, count: Limits.messageTags)
        try Limits.check(metadata: metadata)
    }
}
