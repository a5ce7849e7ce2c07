/// The stream that an event belongs to. Each has a counter of its own, and every durable change takes the next value.
public enum StreamID: Hashable, Sendable, Codable, SchemaDescribed, CustomStringConvertible {
    /// Changes for every member of the channel.
    case channel(ChannelID)
    /// Changes for one user only.
    case user(UserID)

    /// `channel:general` or `user:ann`
    public var description: String {
        switch self {
        case .channel(let id): "channel:\(id)"
        case .user(let id): "user:\(id)"
        }
    }

    public init?(_ text: String) {
        if text.hasPrefix("channel:") {
            self = .channel(ChannelID(String(text.dropFirst(8))))
        } else if text.hasPrefix("user:") {
            self = .user(UserID(String(text.dropFirst(5))))
        } else {
            return nil
        }
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let stream = StreamID(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "must be channel:ID or user:ID")
        }
        self = stream
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }

    public static var schema: Schema { .string(pattern: "^(channel|user):") }
    public static var schemaExample: StreamID { .channel("general") }
}

extension StreamID: WireWritable {
    public func write(to json: inout JSONBytes) { json.string(description) }
}

/// A committed change, as clients see it: its stream, its position there, and the rows after the change. On a socket it comes as an
/// ``EventFrame``.
///
/// Applying an event is an upsert of its rows, so applying one twice changes nothing. On a stream an event follows the one before it
/// without a hole; a client that finds one missing asks for the changes after its own position. There is no order between two streams.
public struct Event: Codable, Hashable, Sendable {
    /// What happened (ledger §4).
    public enum Kind: String, Codable, CaseIterable, Sendable, WireEnumeration {
        case messageNew = "message.new"
        case messageUpdated = "message.updated"
        case messageDeleted = "message.deleted"
        case channelCreated = "channel.created"
        case channelUpdated = "channel.updated"
        case channelMetadataUpdated = "channel.metadataUpdated"
        case channelFrozen = "channel.frozen"
        case channelUnfrozen = "channel.unfrozen"
        case channelSilenced = "channel.silenced"
        case channelUnsilenced = "channel.unsilenced"
        case channelRateLimitChanged = "channel.rateLimitChanged"
        case channelDeleted = "channel.deleted"
        /// To all devices of the user who hid or unhid it.
        case channelHidden = "channel.hidden"
        case channelUnhidden = "channel.unhidden"
        case memberJoined = "member.joined"
        case memberLeft = "member.left"
        /// To the removed user; the others get `member.left`.
        case memberRemoved = "member.removed"
        case memberRoleChanged = "member.roleChanged"
        /// To all devices of the inviter.
        case invitationSent = "invitation.sent"
        case invitationReceived = "invitation.received"
        case invitationAccepted = "invitation.accepted"
        case invitationDeclined = "invitation.declined"
        case invitationWithdrawn = "invitation.withdrawn"
        case readingMarked = "reading.marked"
        case userUpdated = "user.updated"
        case preferencesUpdated = "preferences.updated"
        /// Several changes in one event, from `after` up to `seq`: what a node sends for events that didn't reach it.
        case changes = "stream.changes"
    }

    public var kind: Kind  // wire: "event"
    public var stream: StreamID
    public var seq: Seq
    /// The position that the event follows, if that isn't the one before `seq`.
    public var after: Seq?
    /// The user who made the change. Nil for several changes in one event.
    public var actor: Optional<UserID>
    public var rows: Rows

    // derived: init
    public init(kind: Kind, stream: StreamID, seq: Seq, after: Seq? = nil, actor: UserID?, rows: Rows) {
        self.kind = kind
        self.stream = stream
        self.seq = seq
        self.after = after
        self.actor = actor
        self.rows = rows
    }

    // derived: CodingKeys
    private enum CodingKeys: String, CodingKey {
        case kind = "event"
        case stream, seq, after, actor, rows
    }
}

extension Event: WireWritable {
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        writeMembers(to: &json)
        json.endObject()
    }

    // derived: writeMembers(to:)
    /// Writes the members without the braces, for callers that add members of their own.
    public func writeMembers(to json: inout JSONBytes) {
        json.member("event", kind)
        json.member("stream", stream)
        json.member("seq", seq)
        json.member("after", after)
        json.member("actor", actor)
        json.member("rows", rows)
    }
}
