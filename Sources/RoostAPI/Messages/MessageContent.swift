/// The content of a message: the same in a draft, the operation that sends it and the stored message.
///
/// Messages are validated here and nowhere else (`validate()`), whoever sends them.
public struct MessageContent: Hashable, Sendable {
    /// 1 to `Limits.messageTextLength` characters, one of them visible; empty once the message is deleted. A custom message needs none.
    public var text: String
    /// What sort of message it is (SB-33). It never changes.
    public var kind: MessageKind = .text  // wire: default is absent
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
    /// Whom it mentions: at most one entry of each type (MN-04). What is highlighted is up to `metadata`.
    public var mentionees: [Mentionee]?
    /// Lists of texts by their names, each sorted and without duplicates (SB-37): at most 10 lists of 100. `message.updateMetaArrays` changes
    /// them.
    public var metaArrays: [String: [String]]?
    /// Whether members who are away get a push (SB-39).
    public var pushOption: PushOption = .default  // wire: default is absent
    /// The languages that the sender wants the text in (SB-38): at most 10 tags such as `pt-BR`. They are kept with the message, which tells what became
    /// of them by its `translationStatus`.
    public var targetLanguages: [String]?
    /// Whether it is no news: a silent message is unread for nobody and mentions nobody. It never changes.
    public var isSilent: Bool = false  // wire: default is absent

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        text: String, kind: MessageKind = .text, customType: String? = nil, data: String? = nil, metadata: JSONValue? = nil,
        tags: [String]? = nil, parentId: MessageID? = nil, mentionees: [Mentionee]? = nil, metaArrays: [String: [String]]? = nil,
        pushOption: PushOption = .default, targetLanguages: [String]? = nil, isSilent: Bool = false
    ) {
        self.text = text
        self.kind = kind
        self.customType = customType
        self.data = data
        self.metadata = metadata
        self.tags = tags
        self.parentId = parentId
        self.mentionees = mentionees
        self.metaArrays = metaArrays
        self.pushOption = pushOption
        self.targetLanguages = targetLanguages
        self.isSilent = isSilent
    }
}

/// What sort of message one is (SB-33).
///
/// Whatever a newer server adds, a message has a text to show, and counts as unread unless it is silent.
public enum MessageKind: OpenWireEnumeration {
    /// A user's text.
    case text
    /// A text by the app's own people or backend: `message.sendAdmin`.
    case admin
    /// The server's own: who joined, who left. It is unread for nobody.
    case system
    /// The app's own, with a `customType` and whatever else it takes. Its text may be empty.
    case custom
    /// One that this version doesn't know. No server takes it from this one.
    case unknown(String)

    public static let allCases: [MessageKind] = [.text, .admin, .system, .custom]

    public var rawValue: String {
        switch self {
        case .text: "text"
        case .admin: "admin"
        case .system: "system"
        case .custom: "custom"
        case .unknown(let name): name
        }
    }
}

/// Which members get a push for a message (SB-39). It is kept with the message, for whatever sends pushes.
public enum PushOption: OpenWireEnumeration {
    /// As each member has set it.
    case `default`
    /// Nobody.
    case suppress
    /// Also members who have muted the channel for themselves.
    case force
    /// One that this version doesn't know. No server takes it from this one.
    case unknown(String)

    public static let allCases: [PushOption] = [.default, .suppress, .force]

    public var rawValue: String {
        switch self {
        case .default: "default"
        case .suppress: "suppress"
        case .force: "force"
        case .unknown(let name): name
        }
    }
}

/// What became of the languages that a message's text is wanted in (SB-38, §8.8).
public enum TranslationStatus: String, Codable, CaseIterable, Sendable, WireEnumeration {
    /// The app has nothing that translates: the languages are kept with the message, and it has no translations. Sending it was no error.
    case unavailable
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
    /// The content after deletion: only what never changes.
    public var emptied: MessageContent { MessageContent(text: "", kind: kind, parentId: parentId, isSilent: isSilent) }

    /// Throws when something in it is outside its limits, or when only the server sends such messages.
    public func validate() throws(RoostError) {
        try kind.validate(field: "kind")
        try pushOption.validate(field: "pushOption")
        guard kind != .system else { throw .invalidArgument("kind", "must not be system: the server sends these itself") }
        try Limits.check(text, length: Limits.messageTextLength, field: "text")
        if kind == .custom {
            guard customType?.isEmpty == false else {
                throw .invalidArgument("customType", "must not be empty in a custom message")
            }
        } else {
            guard !text.isEmpty else { throw .invalidArgument("text", "must not be empty") }
            guard text.hasVisibleCharacter else { throw .invalidArgument("text", "must have a visible character") }
        }
        try Limits.check(customType, length: Limits.customTypeLength, field: "customType")
        try Limits.check(data, length: Limits.messageDataLength, field: "data")
        try Limits.check(tags: tags, count: Limits.messageTags)
        try Limits.check(metadata: metadata)
        try mentionees?.validate()
        guard !isSilent || mentionees?.isEmpty != false else {
            throw .invalidArgument("mentionees", "must be empty in a silent message")
        }
        try metaArrays.map(MetaArrays.validate)
        try Limits.check(languages: targetLanguages)
        try checkSize()
    }

    /// Throws `limit_exceeded`, with the field that takes most, when all of it together is too large to be handed to all who have to get it.
    func checkSize() throws(RoostError) {
        // The short fields have limits of their own, and of a text alone the size needn't be known.
        guard data != nil || metadata != nil || metaArrays != nil, sizeBytes > Limits.messageContentSizeBytes else { return }
        let parts = [
            ("text", JSONBytes.sizeBytes(of: text)), ("data", data.map(JSONBytes.sizeBytes) ?? 0),
            ("metadata", metadata?.sizeBytes ?? 0), ("metaArrays", metaArraysSizeBytes),
        ]
        let largest = parts.max { $0.1 < $1.1 }?.0 ?? "text"
        throw RoostError(
            .limitExceeded, "A message has a limit of \(Limits.messageContentSizeBytes) bytes, and \(largest) takes most of them.",
            field: largest,
            limit: Int64(Limits.messageContentSizeBytes))
    }

    /// About its bytes as it is written, with those of all that can be long.
    package var sizeBytes: Int {
        var bytes =
            JSONBytes.sizeBytes(of: text) + (data.map(JSONBytes.sizeBytes) ?? 0) + (metadata?.sizeBytes ?? 0) + metaArraysSizeBytes
        if let mentionees { bytes += Self.sizeBytes(of: mentionees.mentionedUsers.map(\.rawValue)) }
        if let tags { bytes += Self.sizeBytes(of: tags) }
        if let targetLanguages { bytes += Self.sizeBytes(of: targetLanguages) }
        if let customType { bytes += JSONBytes.sizeBytes(of: customType) }
        return bytes
    }

    /// A bound for ``sizeBytes``: each byte of a text takes six at most. Only of what has nothing else to be looked at.
    package var sizeBytesAtMost: Int {
        let isTextAlone =
            data == nil && metadata == nil && metaArrays == nil && mentionees == nil && tags == nil && targetLanguages == nil
            && customType == nil
        return isTextAlone ? text.utf8.count * 6 + 2 : sizeBytes
    }

    private var metaArraysSizeBytes: Int {
        (metaArrays ?? [:]).reduce(0) { $0 + Self.sizeBytes(of: [$1.key]) + Self.sizeBytes(of: $1.value) + 2 }
    }

    /// About the bytes of a list, with a comma for each entry.
    private static func sizeBytes(of texts: [String]) -> Int { texts.reduce(0) { $0 + JSONBytes.sizeBytes(of: $1) + 1 } }
}
