extension Message: StreamRow {
    package static let kind = "messages"
    package var key: String { String(seq) }
    package var stamp: Int64 { changeSeq }
    package var aboutMessage: Seq? { seq }
    package var namedUsers: [UserID] { [sender] + (content.mentionees?.mentionedUsers ?? []) }
    package var contentSizeBytes: Int {
        JSONBytes.sizeBytes(of: content.text) + (content.data.map(JSONBytes.sizeBytes) ?? 0) + (content.metadata?.sizeBytes ?? 0)
            + content.listsSizeBytes + 200
    }
}

extension MessageContent {
    /// About the bytes of the lists that may be long, with a comma for each entry.
    fileprivate var listsSizeBytes: Int {
        func size(of texts: [String]) -> Int { texts.reduce(0) { $0 + JSONBytes.sizeBytes(of: $1) + 1 } }
        var bytes = 0
        for (name, values) in metaArrays ?? [:] { bytes += size(of: [name]) + size(of: values) + 2 }
        if let mentionees { bytes += size(of: mentionees.mentionedUsers.map(\.rawValue)) }
        if let tags { bytes += size(of: tags) }
        return bytes
    }
}

extension Rows {
    /// Messages that are new or changed; nil for none.
    public var messages: [Message]? {
        get { self[Message.self] }
        set { self[Message.self] = newValue }
    }
}
