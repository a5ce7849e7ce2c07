/// The stream that an event belongs to. Each has its own counter, and every durable change takes the next value.
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

    /// Reads what ``description`` writes; nil for anything else.
    public init?(_ text: String) {
        // By bytes: a combining mark at the beginning of an id and the colon before it are one character.
        func id(after prefix: String) -> String? {
            text.utf8.starts(with: prefix.utf8) ? String(decoding: text.utf8.dropFirst(prefix.utf8.count), as: UTF8.self) : nil
        }
        if let channel = id(after: "channel:") {
            self = .channel(ChannelID(channel))
        } else if let user = id(after: "user:") {
            self = .user(UserID(user))
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

/// What happened (ledger §4).
public enum EventKind: String, Codable, CaseIterable, Sendable, WireEnumeration {
    /// A message was sent.
    case messageNew = "message.new"
    /// A message was edited.
    case messageUpdated = "message.updated"
    /// A message was deleted: its place stays.
    case messageDeleted = "message.deleted"
    /// A deleted message was restored.
    case messageUndeleted = "message.undeleted"
    /// To all devices of the user who has deleted messages for themselves.
    case messageDeletedForMe = "message.deletedForMe"
    /// To a user newly mentioned by name: the membership has `mentionSeq` and `mentionMessage` (SB-45).
    case mentionReceived = "mention.received"
    /// A channel was created, to its first members.
    case channelCreated = "channel.created"
    /// A channel's attributes changed.
    case channelUpdated = "channel.updated"
    /// A channel's metadata changed.
    case channelMetadataUpdated = "channel.metadataUpdated"
    /// A channel was frozen: only operators send.
    case channelFrozen = "channel.frozen"
    /// A freeze ended.
    case channelUnfrozen = "channel.unfrozen"
    /// Ordinary members of a channel may not send for a time.
    case channelSilenced = "channel.silenced"
    /// A silence was ended.
    case channelUnsilenced = "channel.unsilenced"
    /// A channel's rate limit was set or removed.
    case channelRateLimitChanged = "channel.rateLimitChanged"
    /// A channel was deleted.
    case channelDeleted = "channel.deleted"
    /// To all devices of the user who hid it.
    case channelHidden = "channel.hidden"
    /// To all devices of the user who has concealed the messages so far from themselves.
    case channelHistoryReset = "channel.historyReset"
    /// To all devices of the user who unhid it.
    case channelUnhidden = "channel.unhidden"
    /// To all devices of the user who has muted it for themselves.
    case channelNotificationsMuted = "channel.notificationsMuted"
    /// To all devices of the user: it counts in their total again.
    case channelNotificationsUnmuted = "channel.notificationsUnmuted"
    /// Users became members.
    case memberJoined = "member.joined"
    /// A member left, or was removed.
    case memberLeft = "member.left"
    /// To the removed user; the others get `member.left`.
    case memberRemoved = "member.removed"
    /// A member's role changed.
    case memberRoleChanged = "member.roleChanged"
    /// To all devices of the inviter.
    case invitationSent = "invitation.sent"
    /// To the invited user.
    case invitationReceived = "invitation.received"
    /// An invitation was accepted.
    case invitationAccepted = "invitation.accepted"
    /// An invitation was declined.
    case invitationDeclined = "invitation.declined"
    /// An invitation was withdrawn.
    case invitationWithdrawn = "invitation.withdrawn"
    /// To all devices of a user: the user's read position moved.
    case readingMarked = "reading.marked"
    /// The user marked messages that they had read as unread again.
    case readingUnmarked = "reading.unmarked"
    /// To all devices of a user: the profile changed.
    case userUpdated = "user.updated"
    /// To all devices of a user: the preferences changed.
    case preferencesUpdated = "preferences.updated"
    /// To all devices of a user: their draft in a channel changed or was removed.
    case draftUpdated = "draft.updated"
    /// Several changes in one event, from `after` up to `seq`: sent by a node in place of events that didn't reach it.
    case changes = "stream.changes"
}

/// A committed change, as clients see it: its stream, its position there, and the rows after the change. On a socket it is sent as an ``EventFrame``.
///
/// Applying an event is an upsert of its rows, so applying one twice changes nothing. Events of a stream follow each other without gaps; a
/// client that detects a gap requests the changes after its own position. There is no order between two streams.
public struct Event: Codable, Hashable, Sendable {
    /// What happened.
    public typealias Kind = EventKind

    /// What happened.
    public var kind: Kind  // wire: "event"
    /// The event's stream.
    public var stream: StreamID
    /// Its position there.
    public var seq: Seq
    /// The position that the event follows, if that isn't the one before `seq`.
    public var after: Seq?
    /// The user who made the change. Nil for several changes in one event.
    public var actor: Optional<UserID>
    /// The rows that changed, as they are afterwards.
    public var rows: Rows

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
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
