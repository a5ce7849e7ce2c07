/// A message of a channel.
public struct Message: Codable, Hashable, Sendable {
    public var messageId: MessageID
    public var channelId: ChannelID
    /// The message's place in the channel's one order.
    public var seq: Seq
    /// The seq of the message's newest change; equal to `seq` for a message that was never changed.
    public var changeSeq: Seq
    public var sender: UserID
    /// The sender's own id of the message.
    public var clientId: ClientID
    /// Empty once the message is deleted.
    public var text: String
    /// The app's own classification of the message (SB-34).
    public var customType: String?
    /// The app's own payload (SB-34).
    public var data: String?
    /// The app's own data, not looked into (MN-05).
    public var metadata: JSONValue?
    /// At most 5.
    public var tags: [String]?
    /// The message that this one answers (MN-10).
    public var parentId: MessageID?
    public var createdAt: Timestamp
    public var editedAt: Timestamp?
    /// Set when the message was deleted: its place stays, its content is gone.
    public var deletedAt: Timestamp?

    // derived: init
    public init(
        messageId: MessageID, channelId: ChannelID, seq: Seq, changeSeq: Seq, sender: UserID, clientId: ClientID, text: String,
        customType: String? = nil, data: String? = nil, metadata: JSONValue? = nil, tags: [String]? = nil,
        parentId: MessageID? = nil, createdAt: Timestamp, editedAt: Timestamp? = nil, deletedAt: Timestamp? = nil
    ) {
        self.messageId = messageId
        self.channelId = channelId
        self.seq = seq
        self.changeSeq = changeSeq
        self.sender = sender
        self.clientId = clientId
        self.text = text
        self.customType = customType
        self.data = data
        self.metadata = metadata
        self.tags = tags
        self.parentId = parentId
        self.createdAt = createdAt
        self.editedAt = editedAt
        self.deletedAt = deletedAt
    }
}

extension Message: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("messageId", messageId)
        json.member("channelId", channelId)
        json.member("seq", seq)
        json.member("changeSeq", changeSeq)
        json.member("sender", sender)
        json.member("clientId", clientId)
        json.member("text", text)
        json.member("customType", customType)
        json.member("data", data)
        json.member("metadata", metadata)
        json.member("tags", tags)
        json.member("parentId", parentId)
        json.member("createdAt", createdAt)
        json.member("editedAt", editedAt)
        json.member("deletedAt", deletedAt)
        json.endObject()
    }
}
