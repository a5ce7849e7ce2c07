/// A message of a channel.
public struct Message: MessageCarrying, Hashable, Sendable {
    /// The id of the message. Ids increase with time only to within a second; the order of messages is that of their seqs.
    public var messageId: MessageID
    /// Its channel.
    public var channelId: ChannelID
    /// The message's position in the channel's order.
    public var seq: Seq
    /// The seq of the message's newest change; equal to `seq` for a message that was never changed.
    public var changeSeq: Seq  // wire: absent is seq, default is absent
    /// Who sent it.
    public var sender: UserID
    /// The id that the sender's client gave the message.
    public var clientId: ClientID
    /// The sender's content, as last edited; emptied once the message is deleted.
    public var content: MessageContent  // inline
    /// When the server stored it.
    public var createdAt: Timestamp
    /// When its content was last replaced.
    public var editedAt: Timestamp?
    /// Set when the message was deleted: its place stays, its content is removed.
    public var deletedAt: Timestamp?
    /// Whether the user has deleted it for themselves; others still see it. Its content is then removed as well, and `deletedAt` is when it
    /// was deleted for all, if it was, and otherwise when the user deleted it.
    public var isDeletedForMe: Bool = false  // wire: default is absent
    /// Users named by the call, or mentioned before the message was deleted, who aren't mentioned because they aren't members, may not read
    /// it or are banned (MN-17). Only in the response to `message.send`, `message.sendAdmin`, `message.edit` and `message.undelete`.
    public var droppedMentions: [UserID]?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        messageId: MessageID, channelId: ChannelID, seq: Seq, changeSeq: Seq, sender: UserID, clientId: ClientID,
        content: MessageContent, createdAt: Timestamp, editedAt: Timestamp? = nil, deletedAt: Timestamp? = nil,
        isDeletedForMe: Bool = false, droppedMentions: [UserID]? = nil
    ) {
        self.messageId = messageId
        self.channelId = channelId
        self.seq = seq
        self.changeSeq = changeSeq
        self.sender = sender
        self.clientId = clientId
        self.content = content
        self.createdAt = createdAt
        self.editedAt = editedAt
        self.deletedAt = deletedAt
        self.isDeletedForMe = isDeletedForMe
        self.droppedMentions = droppedMentions
    }

    // derived: flat init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        messageId: MessageID, channelId: ChannelID, seq: Seq, changeSeq: Seq, sender: UserID, clientId: ClientID, text: String,
        kind: MessageKind = .text, customType: String? = nil, data: String? = nil, metadata: JSONValue? = nil,
        tags: [String]? = nil, parentId: MessageID? = nil, mentionees: [Mentionee]? = nil, metaArrays: [String: [String]]? = nil,
        pushOption: PushOption = .default, targetLanguages: [String]? = nil, isSilent: Bool = false, createdAt: Timestamp,
        editedAt: Timestamp? = nil, deletedAt: Timestamp? = nil, isDeletedForMe: Bool = false, droppedMentions: [UserID]? = nil
    ) {
        let content = MessageContent(
            text: text, kind: kind, customType: customType, data: data, metadata: metadata, tags: tags, parentId: parentId,
            mentionees: mentionees, metaArrays: metaArrays, pushOption: pushOption, targetLanguages: targetLanguages,
            isSilent: isSilent
        )
        self.init(
            messageId: messageId, channelId: channelId, seq: seq, changeSeq: changeSeq, sender: sender, clientId: clientId,
            content: content, createdAt: createdAt, editedAt: editedAt, deletedAt: deletedAt, isDeletedForMe: isDeletedForMe,
            droppedMentions: droppedMentions
        )
    }
}

extension Message: Identifiable {
    /// ``messageId``. A row of a list has another id, because it is shown before the message is stored.
    public var id: MessageID { messageId }
}

extension Message {
    /// The status of translating its text into `targetLanguages` (SB-38); nil if it has none.
    ///
    /// It isn't sent with each message: `translation` of `config.get` applies to all.
    public var translationStatus: TranslationStatus? { content.targetLanguages == nil ? nil : .unavailable }
}

extension Message: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("messageId", messageId)
        json.member("channelId", channelId)
        json.member("seq", seq)
        if changeSeq != seq { json.member("changeSeq", changeSeq) }
        json.member("sender", sender)
        json.member("clientId", clientId)
        json.member("text", content.text)
        if content.kind != .text { json.member("kind", content.kind) }
        json.member("customType", content.customType)
        json.member("data", content.data)
        json.member("metadata", content.metadata)
        json.member("tags", content.tags)
        json.member("parentId", content.parentId)
        json.member("mentionees", content.mentionees)
        json.member("metaArrays", content.metaArrays)
        if content.pushOption != .default { json.member("pushOption", content.pushOption) }
        json.member("targetLanguages", content.targetLanguages)
        if content.isSilent { json.member("isSilent", content.isSilent) }
        json.member("createdAt", createdAt)
        json.member("editedAt", editedAt)
        json.member("deletedAt", deletedAt)
        if isDeletedForMe { json.member("isDeletedForMe", isDeletedForMe) }
        json.member("droppedMentions", droppedMentions)
        json.endObject()
    }
}

extension Message: PlainReadable {
    // derived: init(plainly:)
    package init?(plainly json: inout PlainJSON) {
        var (messageId, channelId, seq, changeSeq, sender, clientId): (MessageID?, ChannelID?, Seq?, Seq?, UserID?, ClientID?)
        var (text, kind, customType, data, metadata, tags): (String?, MessageKind?, String?, String?, JSONValue?, [String]?)
        var (parentId, mentionees, metaArrays, pushOption): (MessageID?, [Mentionee]?, [String: [String]]?, PushOption?)
        var (targetLanguages, isSilent, createdAt, editedAt, deletedAt): ([String]?, Bool?, Timestamp?, Timestamp?, Timestamp?)
        var (isDeletedForMe, droppedMentions): (Bool?, [UserID]?)
        let isPlain = json.members { key, json in
            switch key {
            case "messageId": json.read(into: &messageId)
            case "channelId": json.read(into: &channelId)
            case "seq": json.read(into: &seq)
            case "changeSeq": json.read(into: &changeSeq)
            case "sender": json.read(into: &sender)
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
            case "createdAt": json.read(into: &createdAt)
            case "editedAt": json.read(into: &editedAt)
            case "deletedAt": json.read(into: &deletedAt)
            case "isDeletedForMe": json.read(into: &isDeletedForMe)
            case "droppedMentions": json.read(into: &droppedMentions)
            default: json.pass() != nil
            }
        }
        guard isPlain, let messageId, let channelId, let seq, let sender, let clientId, let text, let createdAt else { return nil }
        let content = MessageContent(
            text: text, kind: kind ?? .text, customType: customType, data: data, metadata: metadata, tags: tags, parentId: parentId,
            mentionees: mentionees, metaArrays: metaArrays, pushOption: pushOption ?? .default, targetLanguages: targetLanguages,
            isSilent: isSilent ?? false
        )
        self.init(
            messageId: messageId, channelId: channelId, seq: seq, changeSeq: changeSeq ?? seq, sender: sender, clientId: clientId,
            content: content, createdAt: createdAt, editedAt: editedAt, deletedAt: deletedAt,
            isDeletedForMe: isDeletedForMe ?? false, droppedMentions: droppedMentions
        )
    }
}

extension Message: Codable {
    // derived: CodingKeys
    private enum CodingKeys: String, CodingKey {
        case messageId, channelId, seq, changeSeq, sender, clientId, text, kind, customType, data, metadata, tags, parentId
        case mentionees, metaArrays, pushOption, targetLanguages, isSilent, createdAt, editedAt, deletedAt, isDeletedForMe
        case droppedMentions
    }

    // derived: encode(to:)
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(messageId, forKey: .messageId)
        try container.encode(channelId, forKey: .channelId)
        try container.encode(seq, forKey: .seq)
        if changeSeq != seq { try container.encode(changeSeq, forKey: .changeSeq) }
        try container.encode(sender, forKey: .sender)
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
        try container.encode(createdAt, forKey: .createdAt)
        try container.encodeIfPresent(editedAt, forKey: .editedAt)
        try container.encodeIfPresent(deletedAt, forKey: .deletedAt)
        if isDeletedForMe { try container.encode(isDeletedForMe, forKey: .isDeletedForMe) }
        try container.encodeIfPresent(droppedMentions, forKey: .droppedMentions)
    }

    // derived: init(from:)
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        messageId = try container.decode(MessageID.self, forKey: .messageId)
        channelId = try container.decode(ChannelID.self, forKey: .channelId)
        seq = try container.decode(Seq.self, forKey: .seq)
        changeSeq = try container.decodeIfPresent(Seq.self, forKey: .changeSeq) ?? seq
        sender = try container.decode(UserID.self, forKey: .sender)
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
        createdAt = try container.decode(Timestamp.self, forKey: .createdAt)
        editedAt = try container.decodeIfPresent(Timestamp.self, forKey: .editedAt)
        deletedAt = try container.decodeIfPresent(Timestamp.self, forKey: .deletedAt)
        isDeletedForMe = try container.decodeIfPresent(Bool.self, forKey: .isDeletedForMe) ?? false
        droppedMentions = try container.decodeIfPresent([UserID].self, forKey: .droppedMentions)
        content = MessageContent(
            text: text, kind: kind, customType: customType, data: data, metadata: metadata, tags: tags, parentId: parentId,
            mentionees: mentionees, metaArrays: metaArrays, pushOption: pushOption, targetLanguages: targetLanguages,
            isSilent: isSilent
        )
    }
}
