/// An event as sent to a socket, in the smallest lossless form.
///
/// Anything a client can compute is omitted. For a new message only the message is sent: the event's stream is the message's channel, its
/// seq the message's, its actor the sender, and the channel's counters are the previous ones with the message added
/// (``ChannelCounters/add(_:)``). Every other event is sent with all its members, as is that of a new message that may be hidden from a
/// receiver.
public struct EventFrame: Codable, Hashable, Sendable {
    /// Whether the connection watches the channel.
    public var watching: Bool
    /// The event. Without `rows.counters` if it was sent as a message alone.
    public var event: Event

    // derived: init
    /// Creates a value with these fields.
    public init(watching: Bool, event: Event) {
        self.watching = watching
        self.event = event
    }

    /// The smallest form: a new message alone.
    package struct NewMessage: Codable {
        var watching: Bool
        var message: Message
    }

    private enum CodingKeys: String, CodingKey { case watching, message }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        watching = try container.decode(Bool.self, forKey: .watching)
        event = try container.contains(.message) ? Event(of: NewMessage(from: decoder).message) : Event(from: decoder)
    }

    public func encode(to encoder: any Encoder) throws {
        if let message = event.wholeMessage { return try NewMessage(watching: watching, message: message).encode(to: encoder) }
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(watching, forKey: .watching)
        try event.encode(to: encoder)
    }
}

extension EventFrame: WireWritable {
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("watching", watching)
        event.writeSmallestMembers(to: &json)
        json.endObject()
    }
}

extension Event {
    /// The event of a new message, without the channel's counters.
    package init(of message: Message) {
        self.init(
            kind: .messageNew, stream: .channel(message.channelId), seq: message.seq, actor: message.sender, rows: Rows([message]))
    }

    /// The new message that the whole event follows from, including counters; nil for any other event.
    fileprivate var wholeMessage: Message? {
        guard kind == .messageNew, after == nil, rows.count == 1, let message = rows.messages?.first, message.seq == seq,
            message.changeSeq == seq, stream == .channel(message.channelId), actor == message.sender, rows.channel == nil,
            rows.ownCapabilities == nil, rows.capabilities == nil
        else { return nil }
        guard let counters = rows.counters else { return message }
        let isNewest =
            counters.seq == seq && counters.lastActivity == message.createdAt && counters.lastMessageAt == message.createdAt
        return isNewest ? message : nil
    }

    /// Writes the members without the braces, in the smallest form for a new message.
    package func writeSmallestMembers(to json: inout JSONBytes) {
        guard let message = wholeMessage else { return writeMembers(to: &json) }
        json.member("message", message)
    }
}

extension ChannelCounters {
    /// Adds a new message, which also advances the ordinal if it counts (``Unread/counts(_:)``).
    public mutating func add(_ message: Message) {
        seq = message.seq
        messageCount = messageCount.addingWithSaturation(1)
        if Unread.counts(message) { ordinal = ordinal.addingWithSaturation(1) }
        lastActivity = message.createdAt
        lastMessageAt = message.createdAt
    }

    /// Adds new messages in order, skipping those already included.
    package mutating func add(_ rows: Rows) {
        for message in rows.messages ?? [] where message.seq > seq { add(message) }
    }
}
