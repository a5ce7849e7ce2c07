/// A message that mentions its whole channel (MN-12), or used to.
///
/// The message's own event carries this row to everyone who sees the message, so nothing is written per member. It is separate from the
/// message because a client may learn of the mention without having cached the message.
public struct ChannelMention: Codable, Hashable, Sendable {
    /// The place of the message.
    public var seq: Seq
    /// The channel's seq at which this row last changed.
    public var changeSeq: Seq
    /// The channel's seq at which the message came to mention the channel, by being sent or edited. Nil once it no longer does.
    public var mentionSeq: Seq?
    /// The message's sender, whom it doesn't mention.
    public var sender: UserID

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(seq: Seq, changeSeq: Seq, mentionSeq: Seq? = nil, sender: UserID) {
        self.seq = seq
        self.changeSeq = changeSeq
        self.mentionSeq = mentionSeq
        self.sender = sender
    }
}

extension ChannelMention: StreamRow {
    package static let kind = "channelMentions"
    package var key: String { String(seq) }
    package var stamp: Int64 { changeSeq }
    // Not `aboutMessage` in the sense of ``StreamRow/aboutMessage``: clients need the row without the message.
    package var concealedWith: Seq? { seq }
}

extension ChannelMention: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("seq", seq)
        json.member("changeSeq", changeSeq)
        json.member("mentionSeq", mentionSeq)
        json.member("sender", sender)
        json.endObject()
    }
}

extension ChannelMention: PlainReadable {
    // derived: init(plainly:)
    package init?(plainly json: inout PlainJSON) {
        var (seq, changeSeq, mentionSeq, sender): (Seq?, Seq?, Seq?, UserID?)
        let isPlain = json.members { key, json in
            switch key {
            case "seq": json.read(into: &seq)
            case "changeSeq": json.read(into: &changeSeq)
            case "mentionSeq": json.read(into: &mentionSeq)
            case "sender": json.read(into: &sender)
            default: json.pass() != nil
            }
        }
        guard isPlain, let seq, let changeSeq, let sender else { return nil }
        self.init(seq: seq, changeSeq: changeSeq, mentionSeq: mentionSeq, sender: sender)
    }
}

extension Rows {
    /// Messages that mention the whole channel, or used to; nil for none.
    public var channelMentions: [ChannelMention]? {
        get { self[ChannelMention.self] }
        set { self[ChannelMention.self] = newValue }
    }
}
