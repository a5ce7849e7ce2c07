/// Deletes messages for the caller alone, on all of their devices: each keeps its place without its content, like a deleted message. Others
/// still see it. This can't be undone. Messages that the caller has already deleted this way stay as they are.
///
/// Unread messages stay unread, but a message deleted this way no longer mentions the caller, even if it is edited later.
///
/// - Throws: `not_member`; `not_found`, also for a permanently deleted message. The error's `field` names the message by its index: `messages[2]`.
public struct DeleteMessagesForMe: Operation {
    public typealias Response = MessageResults
    public static let name = "message.deleteForMe"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/messages/delete-for-me"
    public static let permission = Permission.channelHide
    public static let summary = "Delete up to 100 messages for the caller alone: others still see them."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    /// 1 to 100, each once.
    public var messages: [MessageID]

    // derived: init
    /// Creates a value with these fields.
    public init(channel: ChannelID, messages: [MessageID]) {
        self.channel = channel
        self.messages = messages
    }

    public func validate() throws(RoostError) {
        try channel.validate(field: "channel")
        try messages.validateForDeletion()
    }
}

/// A message that a user has deleted for themselves, on the user's own stream.
///
/// A channel's events are the same for all its followers, so an edit of such a message still reaches the user's devices with its content.
/// Clients keep these rows and conceal every message named by one, whenever it arrives.
public struct OwnDeletion: Codable, Hashable, Sendable {
    /// The message's channel.
    public var channelId: ChannelID
    /// The message's place in the channel's order.
    public var seq: Seq
    /// When the user deleted it.
    public var deletedAt: Timestamp
    /// The seq of the deletion in the user's stream.
    public var userSeq: Seq

    // derived: init
    /// Creates a value with these fields.
    public init(channelId: ChannelID, seq: Seq, deletedAt: Timestamp, userSeq: Seq) {
        self.channelId = channelId
        self.seq = seq
        self.deletedAt = deletedAt
        self.userSeq = userSeq
    }
}

extension OwnDeletion: StreamRow {
    package static let kind = "ownDeletions"
    package var key: String { "\(channelId):\(seq)" }
    package var stamp: Int64 { userSeq }
    package var contentSizeBytes: Int { 120 }
}

extension OwnDeletion: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("channelId", channelId)
        json.member("seq", seq)
        json.member("deletedAt", deletedAt)
        json.member("userSeq", userSeq)
        json.endObject()
    }
}

extension Message {
    /// The message as seen by a user who has deleted it for themselves.
    package func deletedForMe(at time: Timestamp) -> Message {
        var message = self
        message.content = content.emptied
        message.deletedAt = deletedAt ?? time
        message.isDeletedForMe = true
        return message
    }
}

extension Rows {
    /// Messages that the user has deleted for themselves; nil for none.
    public var ownDeletions: [OwnDeletion]? {
        get { self[OwnDeletion.self] }
        set { self[OwnDeletion.self] = newValue }
    }
}
