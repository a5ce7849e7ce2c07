import RoostAPI

/// A new message that arrives alone (``EventFrame``), read leniently: unknown parts are ignored.
struct IncomingMessage: PlainReadable {
    var stream: StreamID
    var seq: Seq
    /// Its sender; nil if it can't be read.
    var sender: UserID?
    /// The message; if it can't be read, none and a problem. It has its place in the stream all the same.
    var rows: LenientRows

    private enum CodingKeys: String, CodingKey { case channelId, seq }

    private init(_ message: Message) {
        (stream, seq, sender) = (.channel(message.channelId), message.seq, message.sender)
        rows = LenientRows(rows: Rows([message]))
    }

    private init(channel: ChannelID, seq: Seq, problem: String) {
        (stream, self.seq) = (.channel(channel), seq)
        rows = LenientRows(problems: [problem])
    }

    init?(plainly json: inout PlainJSON) {
        guard let message = Message(plainly: &json) else { return nil }
        self.init(message)
    }

    init(from decoder: any Decoder) throws {
        do {
            self.init(try Message(from: decoder))
        } catch {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            self.init(
                channel: try container.decode(ChannelID.self, forKey: .channelId),
                seq: try container.decode(Seq.self, forKey: .seq), problem: "message: \(error)")
        }
    }
}
