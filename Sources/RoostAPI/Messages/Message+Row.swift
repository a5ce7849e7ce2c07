extension Message: StreamRow {
    package static let kind = "messages"
    package var key: String { String(seq) }
    package var stamp: Int64 { changeSeq }
    package var aboutMessage: Seq? { seq }
}

extension Rows {
    /// Messages that are new or changed; nil for none.
    public var messages: [Message]? {
        get { self[Message.self] }
        set { self[Message.self] = newValue }
    }
}
