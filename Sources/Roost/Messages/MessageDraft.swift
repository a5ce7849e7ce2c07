public import RoostAPI

/// A message to be sent.
///
///     try await channel.send("hi")
///     try await channel.send(MessageDraft(text: "It's raining.", tags: ["weather"]))
public struct MessageDraft: Hashable, Sendable, ExpressibleByStringLiteral {
    /// 1 to `Limits.messageTextLength` characters.
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
    /// The app's own id of the message, unique among the user's messages in the channel, for ever. A new one is made when it is
    /// nil.
    public var clientId: ClientID?

    // derived: init
    /// A draft with what is given. Limits are checked when it is sent.
    public init(
        text: String, customType: String? = nil, data: String? = nil, metadata: JSONValue? = nil, tags: [String]? = nil,
        parentId: MessageID? = nil, clientId: ClientID? = nil
    ) {
        self.text = text
        self.customType = customType
        self.data = data
        self.metadata = metadata
        self.tags = tags
        self.parentId = parentId
        self.clientId = clientId
    }

    /// A draft of a text alone.
    public init(stringLiteral text: String) { self.init(text: text) }

    func operation(in channel: ChannelID, clientId: ClientID) -> SendMessage {
        SendMessage(
            channel: channel, clientId: clientId, text: text, customType: customType, data: data, metadata: metadata, tags: tags,
            parentId: parentId)
    }
}
