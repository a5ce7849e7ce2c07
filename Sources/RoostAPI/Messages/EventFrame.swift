/// An event as it reaches a socket, in the smallest form that loses nothing.
///
/// What a client can compute isn't sent. Of a new message's event only the message is: its stream is that of the message's channel, its seq
/// is the message's, its actor is the sender, and the channel's counters are those before it with the message added
/// (``ChannelCounters/add(_:)``). Every other event has all its members, and so has that of a new message which may be hidden from a receiver.
public struct EventFrame: Codable, Hashable, Sendable {
    /// Whether the connection watches the channel.
    public var watching: Bool
    /// The event. Without `rows.counters` if it came as a message alone.
    public var event: Event

    // derived: init
    /// Creates a value with these fields.
    public init(watching: Bool, event: Event) {
        self.watching = watching
        self.event = event
    }

    /// The smallest form.
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

    /// The new message from which all of the event follows, counters included; nil if there is no such one.
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

    /// Writes the members without the braces, of a new message the smallest form.
    package func writeSmallestMembers(to json: inout JSONBytes) {
        guard let message = wholeMessage else { return writeMembers(to: &json) }
        json.member("message", message)
    }
}

extension ChannelCounters {
    /// Adds a new message: one more of the channel's, and a counting one if it is (``Unread/counts(_:)``).
    public mutating func add(_ message: Message) {
        seq = message.seq
        messageCount = messageCount.addingWithSaturation(1)
        if Unread.counts(message) { ordinal = ordinal.addingWithSaturation(1) }
        lastActivity = message.createdAt
        lastMessageAt = message.createdAt
    }

    /// Adds new messages in their order, but for those that the counters have.
    package mutating func add(_ rows: Rows) {
        for message in rows.messages ?? [] where message.seq > seq { add(message) }
    }
}
