import RoostAPI

/// A new message that comes alone (``EventFrame``), read without insisting on what this version doesn't know.
struct IncomingMessage: PlainReadable {
    var stream: StreamID
    var seq: Seq
    /// Its sender; nil if it can't be read.
    var sender: UserID?
    /// The message; without it and with a problem if it can't be read. It has its place in the stream all the same.
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
