/// An earlier version of a message, from before it was edited or deleted.
public struct MessageVersion: MessageCarrying, Hashable, Sendable {
    /// The message's `changeSeq` in this version.
    public var changeSeq: Seq
    /// The message's content in this version.
    public var content: MessageContent  // inline
    /// When this version was written, unless it is the first.
    public var editedAt: Timestamp?
    /// When it was replaced, or the message was deleted.
    public var replacedAt: Timestamp
    /// Who replaced it or deleted the message.
    public var replacedBy: UserID
    /// Whether the message was deleted, not edited.
    public var isDeletion: Bool = false  // wire: default is absent

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        changeSeq: Seq, content: MessageContent, editedAt: Timestamp? = nil, replacedAt: Timestamp, replacedBy: UserID,
        isDeletion: Bool = false
    ) {
        self.changeSeq = changeSeq
        self.content = content
        self.editedAt = editedAt
        self.replacedAt = replacedAt
        self.replacedBy = replacedBy
        self.isDeletion = isDeletion
    }
}

extension MessageVersion: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("changeSeq", changeSeq)
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
        json.member("editedAt", editedAt)
        json.member("replacedAt", replacedAt)
        json.member("replacedBy", replacedBy)
        if isDeletion { json.member("isDeletion", isDeletion) }
        json.endObject()
    }
}

extension MessageVersion: Codable {
    // derived: CodingKeys
    private enum CodingKeys: String, CodingKey {
        case changeSeq, text, kind, customType, data, metadata, tags, parentId, mentionees, metaArrays, pushOption, targetLanguages
        case isSilent, editedAt, replacedAt, replacedBy, isDeletion
    }
    // derived: encode(to:)
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(changeSeq, forKey: .changeSeq)
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
        try container.encodeIfPresent(editedAt, forKey: .editedAt)
        try container.encode(replacedAt, forKey: .replacedAt)
        try container.encode(replacedBy, forKey: .replacedBy)
        if isDeletion { try container.encode(isDeletion, forKey: .isDeletion) }
    }
    // derived: init(from:)
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        changeSeq = try container.decode(Seq.self, forKey: .changeSeq)
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
        editedAt = try container.decodeIfPresent(Timestamp.self, forKey: .editedAt)
        replacedAt = try container.decode(Timestamp.self, forKey: .replacedAt)
        replacedBy = try container.decode(UserID.self, forKey: .replacedBy)
        isDeletion = try container.decodeIfPresent(Bool.self, forKey: .isDeletion) ?? false
        content = MessageContent(
            text: text, kind: kind, customType: customType, data: data, metadata: metadata, tags: tags, parentId: parentId,
            mentionees: mentionees, metaArrays: metaArrays, pushOption: pushOption, targetLanguages: targetLanguages,
            isSilent: isSilent
        )
    }
}

/// The earlier versions of a message.
public struct MessageVersions: Hashable, Sendable {
    /// The newest first: at most 10, plus the deleted one.
    public var versions: [MessageVersion]
    /// Whether there are older ones that didn't fit: a response ends at 1 MiB of content, with at least one version.
    /// ``ListMessageVersions/before`` reads them.
    public var hasMore: Bool = false  // wire: default is absent

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(versions: [MessageVersion], hasMore: Bool = false) {
        self.versions = versions
        self.hasMore = hasMore
    }
}

extension MessageVersions: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("versions", versions)
        if hasMore { json.member("hasMore", hasMore) }
        json.endObject()
    }
}

extension MessageVersions: Codable {
    // derived: CodingKeys
    private enum CodingKeys: String, CodingKey {
        case versions, hasMore
    }
    // derived: encode(to:)
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(versions, forKey: .versions)
        if hasMore { try container.encode(hasMore, forKey: .hasMore) }
    }
    // derived: init(from:)
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        versions = try container.decode([MessageVersion].self, forKey: .versions)
        hasMore = try container.decodeIfPresent(Bool.self, forKey: .hasMore) ?? false
    }
}

/// Reads a message's earlier versions, for operators, as long as they are kept: ``AppOptions/versionSeconds`` and
/// ``AppOptions/undeletionSeconds``. A deleted message that can't be undeleted has none.
///
/// - Throws: `feature_disabled` if the app keeps neither.
public struct ListMessageVersions: Operation {
    public typealias Response = MessageVersions
    public static let name = "message.listVersions"
    public static let method = HTTPMethod.get
    public static let path = "/v1/channels/{channel}/messages/{message}/versions"
    public static let permission = Permission.messageReadVersions
    public static let summary = "Read a message's versions from before it was edited or deleted. For operators."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    /// The message whose versions are read.
    public var message: MessageID
    /// The `changeSeq` of a version: only versions before it. All when left out.
    public var before: Seq?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(channel: ChannelID, message: MessageID, before: Seq? = nil) {
        self.channel = channel
        self.message = message
        self.before = before
    }

    public func validate() throws(RoostError) {
        try channel.validate(field: "channel")
        try Limits.check(seq: before, field: "before")
    }
}
