/// The place in a channel's order of a message that was deleted for good.
///
/// It contains nothing of the message, not even its sender, so that everybody who follows the channel may have it.
public struct PurgedMessage: Codable, Hashable, Sendable {
    /// The message's place in the channel's one order.
    public var seq: Seq
    /// The seq at which the message was deleted for good.
    public var changeSeq: Seq
    /// Whether the message counted as unread. If so, it is no longer unread for anybody.
    public var counts: Bool

    // derived: init
    /// Creates a value with these fields.
    public init(seq: Seq, changeSeq: Seq, counts: Bool) {
        self.seq = seq
        self.changeSeq = changeSeq
        self.counts = counts
    }
}

/// It isn't about the message in the sense of ``StreamRow/aboutMessage``: members who may not see the message, or not read at all, get it too. They have
/// unread counts, which fall with it, and nothing else tells them so: no row of theirs is written. What it tells them, that something was sent at a
/// seq and is gone, the counters tell them as well.
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
    /// Messages that were deleted for good; nil for none.
    public var purged: [PurgedMessage]? {
        get { self[PurgedMessage.self] }
        set { self[PurgedMessage.self] = newValue }
    }
}
