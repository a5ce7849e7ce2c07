/// The content of a message: the same in a draft, the operation that sends it and the stored message.
///
/// All messages are validated here and nowhere else (`validate()`).
public struct MessageContent: Hashable, Sendable {
    /// 1 to `Limits.messageTextLength` characters, at least one of them visible; empty once the message is deleted. A custom message may
    /// have an empty text.
    public var text: String
    /// The kind of message (SB-33). It never changes.
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
    /// The mentions: at most one entry of each type (MN-04). What to highlight is up to `metadata`.
    public var mentionees: [Mentionee]?
    /// Lists of texts by their names, each sorted and without duplicates (SB-37): at most 10 lists of 100. `message.updateMetaArrays` changes
    /// them.
    public var metaArrays: [String: [String]]?
    /// Which members get a push while away (SB-39).
    public var pushOption: PushOption = .default  // wire: default is absent
    /// The languages that the sender wants the text in (SB-38): at most 10 tags such as `pt-BR`. They are stored with the message, whose
    /// `translationStatus` reports the outcome.
    public var targetLanguages: [String]?
    /// Whether it is silent: never unread, and without mentions. It never changes.
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

/// The kind of a message (SB-33).
///
/// A message of a kind added by a newer server still has a text to show, and counts as unread unless it is silent.
public enum MessageKind: OpenWireEnumeration {
    /// A user's text.
    case text
    /// A text by the app's staff or backend: `message.sendAdmin`.
    case admin
    /// The server's own: joins, leaves. It is never unread.
    case system
    /// The app's own, with a `customType` and any other fields. Its text may be empty.
    case custom
    /// A value unknown to this version. Servers don't accept it from this version.
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

/// Which members get a push for a message (SB-39). It is stored with the message, for the service that sends pushes.
public enum PushOption: OpenWireEnumeration {
    /// As each member has set it.
    case `default`
    /// Nobody.
    case suppress
    /// Also members who have muted the channel for themselves.
    case force
    /// A value unknown to this version. Servers don't accept it from this version.
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

/// The status of translating a message's text into the wanted languages (SB-38, §8.8).
public enum TranslationStatus: String, Codable, CaseIterable, Sendable, WireEnumeration {
    /// The app has no translator: the languages are stored with the message, which has no translations. Sending it isn't an error.
    case unavailable
}

/// A value with a message's content, whose fields read as its own: `message.text`.
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

    /// Throws if a field is outside its limits, or if only the server sends such messages.
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

    /// Throws `limit_exceeded`, with the largest field, if the whole content is too large to deliver to all its receivers.
    func checkSize() throws(RoostError) {
        // The short fields have their own limits, and a text alone can't be too large.
        guard data != nil || metadata != nil || metaArrays != nil, sizeBytes > Limits.messageContentSizeBytes else { return }
        let parts = [
            ("text", JSONBytes.sizeBytes(of: text)), ("data", data.map(JSONBytes.sizeBytes) ?? 0),
            ("metadata", metadata?.sizeBytes ?? 0), ("metaArrays", metaArraysSizeBytes),
        ]
        let largest = parts.max { $0.1 < $1.1 }?.0 ?? "text"
        throw RoostError(
            .limitExceeded, "A message has a limit of \(Limits.messageContentSizeBytes) bytes; \(largest) takes most of them.",
            field: largest,
            limit: Int64(Limits.messageContentSizeBytes))
    }

    /// The approximate encoded size in bytes, including every field that can be long.
    package var sizeBytes: Int {
        var bytes =
            JSONBytes.sizeBytes(of: text) + (data.map(JSONBytes.sizeBytes) ?? 0) + (metadata?.sizeBytes ?? 0) + metaArraysSizeBytes
        if let mentionees { bytes += Self.sizeBytes(of: mentionees.mentionedUsers.map(\.rawValue)) }
        if let tags { bytes += Self.sizeBytes(of: tags) }
        if let targetLanguages { bytes += Self.sizeBytes(of: targetLanguages) }
        if let customType { bytes += JSONBytes.sizeBytes(of: customType) }
        return bytes
    }

    /// An upper bound for ``sizeBytes``, cheap for a text alone: each of its bytes takes at most six.
    package var sizeBytesAtMost: Int {
        let isTextAlone =
            data == nil && metadata == nil && metaArrays == nil && mentionees == nil && tags == nil && targetLanguages == nil
            && customType == nil
        return isTextAlone ? text.utf8.count * 6 + 2 : sizeBytes
    }

    private var metaArraysSizeBytes: Int {
        (metaArrays ?? [:]).reduce(0) { $0 + Self.sizeBytes(of: [$1.key]) + Self.sizeBytes(of: $1.value) + 2 }
    }

    /// The approximate size of a list in bytes, with a comma for each entry.
    private static func sizeBytes(of texts: [String]) -> Int { texts.reduce(0) { $0 + JSONBytes.sizeBytes(of: $1) + 1 } }
}
