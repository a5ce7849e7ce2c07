/// Sends an admin message, on behalf of the app, to channels (SB-33). The caller need not be a member. It is sent to all of the channels or to none.
///
/// Sending again with the same `clientId` stores nothing in channels that have it, and returns the messages as they are now, also for
/// channels that have since been deleted or closed to admins. Senders who may no longer read a message that was changed since get it with
/// the content of this call.
/// - Throws: `limit_exceeded` if all copies together have more than ``Limits/adminMessagesSizeBytes``; `not_found`, also for a channel
///   visible only to its members, such as a conversation that the caller isn't part of; `kind_forbids` if the policy lets no admin send, as
///   in a channel of the type `standard` and in the caller's own conversation. The error's `field` names the channel by its index:
///   `channels[2]`.
public struct SendAdminMessage: Operation, MessageCarrying {
    public typealias Response = MessageResults
    public static let name = "message.sendAdmin"
    public static let method = HTTPMethod.post
    public static let path = "/v1/messages"
    public static let permission = Permission.messageSendAdmin
    public static let summary = "Send an admin message to up to 100 channels. For admins and backends."
    public static let deduplicationField: String? = "clientId"

    /// 1 to 100, each once.
    public var channels: [ChannelID]
    /// Chosen by the caller; it deduplicates retries.
    public var clientId: ClientID
    /// Its kind is always stored as `admin`.
    public var content: MessageContent  // inline

    // derived: init
    /// Creates a value with these fields.
    public init(channels: [ChannelID], clientId: ClientID, content: MessageContent) {
        self.channels = channels
        self.clientId = clientId
        self.content = content
    }

    // derived: flat init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        channels: [ChannelID], clientId: ClientID, text: String, kind: MessageKind = .text, customType: String? = nil,
        data: String? = nil, metadata: JSONValue? = nil, tags: [String]? = nil, parentId: MessageID? = nil,
        mentionees: [Mentionee]? = nil, metaArrays: [String: [String]]? = nil, pushOption: PushOption = .default,
        targetLanguages: [String]? = nil, isSilent: Bool = false
    ) {
        let content = MessageContent(
            text: text, kind: kind, customType: customType, data: data, metadata: metadata, tags: tags, parentId: parentId,
            mentionees: mentionees, metaArrays: metaArrays, pushOption: pushOption, targetLanguages: targetLanguages,
            isSilent: isSilent
        )
        self.init(channels: channels, clientId: clientId, content: content)
    }

    public func validate() throws(RoostError) {
        try Limits.check(list: channels, count: Limits.channelsPerCall, field: "channels") { channel throws(RoostError) in
            try channel.validate(field: "channels")
        }
        guard Set(channels).count == channels.count else { throw .notUnique("channels") }
        try clientId.validate(field: "clientId")
        guard content.kind == .text || content.kind == .admin else { throw .invalidArgument("kind", "must be admin, or left out") }
        try content.validate()
        guard content.sizeBytes * channels.count <= Limits.adminMessagesSizeBytes else {
            throw .limitExceeded("channels", limit: Limits.adminMessagesSizeBytes, unit: "bytes of all copies of the message")
        }
    }
}

extension SendAdminMessage {
    // derived: CodingKeys
    private enum CodingKeys: String, CodingKey {
        case channels, clientId, text, kind, customType, data, metadata, tags, parentId, mentionees, metaArrays, pushOption
        case targetLanguages, isSilent
    }

    // derived: encode(to:)
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(channels, forKey: .channels)
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
        channels = try container.decode([ChannelID].self, forKey: .channels)
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

/// The messages that a call sent or changed.
public struct MessageResults: Codable, Hashable, Sendable {
    /// In the order of the call's channels or messages.
    public var messages: [Message]

    // derived: init
    /// Creates a value with these fields.
    public init(messages: [Message]) { self.messages = messages }
}

extension MessageResults: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("messages", messages)
        json.endObject()
    }
}
