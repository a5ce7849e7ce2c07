/// Sends a text message. The response confirms that the message is on disk, at its position in the channel's order.
///
/// Sending again with the same `clientId` stores nothing and returns the message as it is now. Senders who may no longer read a message that
/// was changed since get it with the content of this call.
/// - Throws: About the caller's rights: `not_found` for a channel that the caller may not know of; `not_member`, `invite_required`;
///   `not_permitted`, also in a deleted channel; `send_not_allowed` where only operators or admins send, `kind_forbids` where nobody does; `frozen`;
///   `channel_muted`, `muted` and `banned`, with ``RoostError/until`` unless they have no end. About the message: the code of a limit;
///   `invalid_argument`; `not_found` for an unknown `parentId`; `mention_invalid`, `mention_limit`, `mention_all_disabled`, and the
///   refusals of mentioning in this channel, such as `kind_forbids`, for its mentions. Users in `mentionees` who aren't members or are
///   banned are left out and named in the response's `droppedMentions`.
public struct SendMessage: Operation, MessageCarrying {
    public typealias Response = Message
    public static let name = "message.send"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/messages"
    public static let permission = Permission.messageSend
    public static let summary = "Send a text message. Sending again with the same clientId answers with the stored message."
    public static let deduplicationField: String? = "clientId"

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    /// Chosen by the sender's client, unique among the user's messages in the channel: it deduplicates retries.
    public var clientId: ClientID
    /// The message's content.
    public var content: MessageContent  // inline

    // derived: init
    /// Creates a value with these fields.
    public init(channel: ChannelID, clientId: ClientID, content: MessageContent) {
        self.channel = channel
        self.clientId = clientId
        self.content = content
    }

    // derived: flat init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        channel: ChannelID, clientId: ClientID, text: String, kind: MessageKind = .text, customType: String? = nil,
        data: String? = nil, metadata: JSONValue? = nil, tags: [String]? = nil, parentId: MessageID? = nil,
        mentionees: [Mentionee]? = nil, metaArrays: [String: [String]]? = nil, pushOption: PushOption = .default,
        targetLanguages: [String]? = nil, isSilent: Bool = false
    ) {
        let content = MessageContent(
            text: text, kind: kind, customType: customType, data: data, metadata: metadata, tags: tags, parentId: parentId,
            mentionees: mentionees, metaArrays: metaArrays, pushOption: pushOption, targetLanguages: targetLanguages,
            isSilent: isSilent
        )
        self.init(channel: channel, clientId: clientId, content: content)
    }

    public func validate() throws(RoostError) {
        try channel.validate(field: "channel")
        try clientId.validate(field: "clientId")
        guard content.kind != .admin else {
            throw .invalidArgument("kind", "must be text or custom: message.sendAdmin sends admin messages")
        }
        try content.validate()
    }
}

extension SendMessage: PlainReadable {
    // derived: init(plainly:), refusing others
    package init?(plainly json: inout PlainJSON) {
        var (channel, clientId, text, kind, customType, data): (ChannelID?, ClientID?, String?, MessageKind?, String?, String?)
        var (metadata, tags, parentId, mentionees): (JSONValue?, [String]?, MessageID?, [Mentionee]?)
        var (metaArrays, pushOption, targetLanguages, isSilent): ([String: [String]]?, PushOption?, [String]?, Bool?)
        let isPlain = json.members { key, json in
            switch key {
            case "channel": json.read(into: &channel)
            case "clientId": json.read(into: &clientId)
            case "text": json.read(into: &text)
            case "kind": json.read(into: &kind)
            case "customType": json.read(into: &customType)
            case "data": json.read(into: &data)
            case "metadata": json.read(into: &metadata)
            case "tags": json.read(into: &tags)
            case "parentId": json.read(into: &parentId)
            case "mentionees": json.read(into: &mentionees)
            case "metaArrays": json.read(into: &metaArrays)
            case "pushOption": json.read(into: &pushOption)
            case "targetLanguages": json.read(into: &targetLanguages)
            case "isSilent": json.read(into: &isSilent)
            default: false
            }
        }
        guard isPlain, let channel, let clientId, let text else { return nil }
        let content = MessageContent(
            text: text, kind: kind ?? .text, customType: customType, data: data, metadata: metadata, tags: tags, parentId: parentId,
            mentionees: mentionees, metaArrays: metaArrays, pushOption: pushOption ?? .default, targetLanguages: targetLanguages,
            isSilent: isSilent ?? false
        )
        self.init(channel: channel, clientId: clientId, content: content)
    }
}

extension SendMessage {
    // derived: CodingKeys
    private enum CodingKeys: String, CodingKey {
        case channel, clientId, text, kind, customType, data, metadata, tags, parentId, mentionees, metaArrays, pushOption
        case targetLanguages, isSilent
    }

    // derived: encode(to:)
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(channel, forKey: .channel)
        try container.encode(clientId, forKey: .clientId)
        try container.encode(content.text, forKey: .text)
        if content.kind != .text { try container.encode(content.kind, forKey: .kind) }
        try container.encodeIfPresent(content.customType, forKey: .customType)
        try container.encodeIfPresent(content.data, forKey: .data)
        try container.encodeIfPresent(content.metadata, forKey: .metadata)
        try container.encodeIfPresent(content.tags, forKey: .tags)
        try container.encodeIfPresent(content.parentId, forKey: .parentId)
        try container.encodeIfPresent(content.mentionees, forKey: .mentionees)
        try container.encodeIfPresent(content.metaArrays, forKey: .metaArrays)
        if content.pushOption != .default { try container.encode(content.pushOption, forKey: .pushOption) }
        try container.encodeIfPresent(content.targetLanguages, forKey: .targetLanguages)
        if content.isSilent { try container.encode(content.isSilent, forKey: .isSilent) }
    }

    // derived: init(from:)
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        channel = try container.decode(ChannelID.self, forKey: .channel)
        clientId = try container.decode(ClientID.self, forKey: .clientId)
        let text = try container.decode(String.self, forKey: .text)
        let kind = try container.decodeIfPresent(MessageKind.self, forKey: .kind) ?? .text
        let customType = try container.decodeIfPresent(String.self, forKey: .customType)
        let data = try container.decodeIfPresent(String.self, forKey: .data)
        let metadata = try container.decodeIfPresent(JSONValue.self, forKey: .metadata)
        let tags = try container.decodeIfPresent([String].self, forKey: .tags)
        let parentId = try container.decodeIfPresent(MessageID.self, forKey: .parentId)
        let mentionees = try container.decodeIfPresent([Mentionee].self, forKey: .mentionees)
        let metaArrays = try container.decodeIfPresent([String: [String]].self, forKey: .metaArrays)
        let pushOption = try container.decodeIfPresent(PushOption.self, forKey: .pushOption) ?? .default
        let targetLanguages = try container.decodeIfPresent([String].self, forKey: .targetLanguages)
        let isSilent = try container.decodeIfPresent(Bool.self, forKey: .isSilent) ?? false
        content = MessageContent(
            text: text, kind: kind, customType: customType, data: data, metadata: metadata, tags: tags, parentId: parentId,
            mentionees: mentionees, metaArrays: metaArrays, pushOption: pushOption, targetLanguages: targetLanguages,
            isSilent: isSilent
        )
    }
}

/// One message of a channel, as in a page: with empty content if it is deleted.
///
/// - Throws: `not_found` for a message that no page shows the caller: it never existed, is concealed or was permanently deleted. The error
///   is the same for all.
public struct GetMessage: Operation {
    public typealias Response = Message
    public static let name = "message.get"
    public static let method = HTTPMethod.get
    public static let path = "/v1/channels/{channel}/messages/{message}"
    public static let permission = Permission.historyRead
    public static let summary = "One message of a channel."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    /// The message's id.
    public var message: MessageID
    // derived: init
    /// Creates a value with these fields.
    public init(channel: ChannelID, message: MessageID) {
        self.channel = channel
        self.message = message
    }
    public func validate() throws(RoostError) { try channel.validate(field: "channel") }
}

/// Replaces the given parts of a message's content. The author may edit it, and an operator may edit any (SB-58), except admin messages,
/// which only admins edit.
///
/// An edit that changes nothing produces no event and returns the message as it is.
/// - Throws: About the caller's rights: `not_message_owner` for someone else's message; `not_found` for a channel that the caller may not
///   know of; `not_member`, `invite_required`; `not_permitted`, also in a deleted channel, and for messages of the server and of admins;
///   `kind_forbids` where nobody may edit it; `frozen`; `channel_muted`, `muted` and `banned`, with ``RoostError/until`` unless they have
///   no end. About the message: `not_found` for one that doesn't exist or is deleted; the code of a limit, `invalid_argument`, and those of
///   `message.send` for its mentions.
public struct EditMessage: Operation {
    public typealias Response = Message
    public static let name = "message.edit"
    public static let method = HTTPMethod.patch
    public static let path = "/v1/channels/{channel}/messages/{message}"
    public static let permission = Permission.messageEditOwn
    public static let summary = "Edit a message. For its author and for operators."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    /// The message to change.
    public var message: MessageID
    /// The new text; unchanged when left out.
    public var text: String?
    /// The new custom type; unchanged when left out.
    public var customType: String?
    /// The new data; unchanged when left out.
    public var data: String?
    /// Replaces the whole value.
    public var metadata: JSONValue?
    /// Replaces all tags.
    public var tags: [String]?
    /// Replaces all mentions; an empty list mentions nobody (MN-11).
    public var mentionees: [Mentionee]?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        channel: ChannelID, message: MessageID, text: String? = nil, customType: String? = nil, data: String? = nil,
        metadata: JSONValue? = nil, tags: [String]? = nil, mentionees: [Mentionee]? = nil
    ) {
        self.channel = channel
        self.message = message
        self.text = text
        self.customType = customType
        self.data = data
        self.metadata = metadata
        self.tags = tags
        self.mentionees = mentionees
    }

    public func validate() throws(RoostError) {
        try channel.validate(field: "channel")
        // The given parts must be within the limits of a new message. Only a custom message may have no visible text.
        var content = MessageContent(text: "any", kind: text?.hasVisibleCharacter == false ? .custom : .text, customType: "any")
        content.apply(self)
        try content.validate()
    }
}

extension EditMessage: PlainReadable {
    // derived: init(plainly:), refusing others
    package init?(plainly json: inout PlainJSON) {
        var (channel, message, text, customType, data, metadata): (ChannelID?, MessageID?, String?, String?, String?, JSONValue?)
        var (tags, mentionees): ([String]?, [Mentionee]?)
        let isPlain = json.members { key, json in
            switch key {
            case "channel": json.read(into: &channel)
            case "message": json.read(into: &message)
            case "text": json.read(into: &text)
            case "customType": json.read(into: &customType)
            case "data": json.read(into: &data)
            case "metadata": json.read(into: &metadata)
            case "tags": json.read(into: &tags)
            case "mentionees": json.read(into: &mentionees)
            default: false
            }
        }
        guard isPlain, let channel, let message else { return nil }
        self.init(
            channel: channel, message: message, text: text, customType: customType, data: data, metadata: metadata, tags: tags,
            mentionees: mentionees
        )
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
        if let mentionees = edit.mentionees { self.mentionees = mentionees.isEmpty ? nil : mentionees }
    }
}
