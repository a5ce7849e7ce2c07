/// The place of a permanently deleted message in its channel's order.
///
/// It contains nothing of the message, not even its sender, so every follower of the channel may receive it.
public struct PurgedMessage: Codable, Hashable, Sendable {
    /// The message's place in the channel's order.
    public var seq: Seq
    /// The seq at which the message was permanently deleted.
    public var changeSeq: Seq
    /// Whether the message counted as unread. If so, it is no longer unread for anyone.
    public var counts: Bool

    // derived: init
    /// Creates a value with these fields.
    public init(seq: Seq, changeSeq: Seq, counts: Bool) {
        self.seq = seq
        self.changeSeq = changeSeq
        self.counts = counts
    }
}

/// It isn't about the message in the sense of ``StreamRow/aboutMessage``: members who may not see the message, or not read at all, get it
/// too. It lowers their unread counts, and nothing else would, because none of their rows is written. It reveals only that something was
/// sent at a seq and is gone, which the counters reveal as well.
extension PurgedMessage: StreamRow {
    package static let kind = "purged"
    package var key: String { String(seq) }
    package var stamp: Int64 { changeSeq }
    package var purgedMessage: Seq? { seq }
    package var contentSizeBytes: Int { 60 }
}

extension PurgedMessage: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("seq", seq)
        json.member("changeSeq", changeSeq)
        json.member("counts", counts)
        json.endObject()
    }
}

extension Rows {
    /// Permanently deleted messages; nil for none.
    public var purged: [PurgedMessage]? {
        get { self[PurgedMessage.self] }
        set { self[PurgedMessage.self] = newValue }
    }
}
