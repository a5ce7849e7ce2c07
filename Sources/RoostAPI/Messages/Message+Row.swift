extension Message: StreamRow {
    package static let kind = "messages"
    package var key: String { String(seq) }
    package var stamp: Int64 { changeSeq }
    package var aboutMessage: Seq? { seq }
    package var namedUsers: [UserID] { [sender] + (content.mentionees?.mentionedUsers ?? []) }
    package var contentSizeBytes: Int { content.sizeBytes + envelopeSizeBytes }
    /// An upper bound for ``contentSizeBytes`` that is cheaper to compute.
    package var contentSizeBytesAtMost: Int { content.sizeBytesAtMost + envelopeSizeBytes }

    private var envelopeSizeBytes: Int {
        channelId.rawValue.utf8.count + sender.rawValue.utf8.count + clientId.rawValue.utf8.count + 200
    }
}

extension Rows {
    /// Messages that are new or changed; nil for none.
    public var messages: [Message]? {
        get { self[Message.self] }
        set { self[Message.self] = newValue }
    }
}
