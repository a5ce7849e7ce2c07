public import RoostAPI

/// A message to be sent.
///
///     try await channel.send("hi")
///     try await channel.send(MessageDraft(text: "It's raining.", tags: ["weather"]))
public struct MessageDraft: MessageCarrying, Hashable, Sendable, ExpressibleByStringLiteral {
    /// The content of the message.
    public var content: MessageContent  // inline
    /// The app's own id of the message, permanently unique among the user's messages in the channel. Generated if nil.
    public var clientId: ClientID?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(content: MessageContent, clientId: ClientID? = nil) {
        self.content = content
        self.clientId = clientId
    }

    // derived: flat init
    /// Makes a draft. Limits are checked when it is sent.
    public init(
        text: String, kind: MessageKind = .text, customType: String? = nil, data: String? = nil, metadata: JSONValue? = nil,
        tags: [String]? = nil, parentId: MessageID? = nil, mentionees: [Mentionee]? = nil, metaArrays: [String: [String]]? = nil,
        pushOption: PushOption = .default, targetLanguages: [String]? = nil, isSilent: Bool = false, clientId: ClientID? = nil
    ) {
        let content = MessageContent(
            text: text, kind: kind, customType: customType, data: data, metadata: metadata, tags: tags, parentId: parentId,
            mentionees: mentionees, metaArrays: metaArrays, pushOption: pushOption, targetLanguages: targetLanguages,
            isSilent: isSilent
        )
        self.init(content: content, clientId: clientId)
    }

    /// A draft with only a text.
    public init(stringLiteral text: String) { self.init(text: text) }

    func operation(in channel: ChannelID, clientId: ClientID) -> SendMessage {
        SendMessage(channel: channel, clientId: clientId, content: content)
    }
}
