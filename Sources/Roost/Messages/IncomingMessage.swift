import RoostAPI

/// A new message that comes alone (``EventFrame``), read without insisting on what this version doesn't know.
struct IncomingMessage: Decodable {
    var stream: StreamID
    var seq: Seq
    /// Its sender; nil if it can't be read.
    var sender: UserID?
    /// The message; without it and with a problem if it can't be read. It has its place in the stream all the same.
    var rows: LenientRows

    private enum CodingKeys: String, CodingKey { case channelId, seq }

    init(from decoder: any Decoder) throws {
        do {
            let message = try Message(from: decoder)
            (stream, seq, sender) = (.channel(message.channelId), message.seq, message.sender)
            rows = LenientRows(rows: Rows([message]))
        } catch {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            stream = .channel(try container.decode(ChannelID.self, forKey: .channelId))
            seq = try container.decode(Seq.self, forKey: .seq)
            rows = LenientRows(problems: ["message: \(error)"])
        }
    }
}
