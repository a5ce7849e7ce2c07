/// Deletes a message: its place stays, its content is removed. The author may delete it, and an operator may delete any (SB-59). Deleting
/// it again changes nothing, except that the author can't undelete it once an operator has also deleted it.
///
/// - Throws: `not_message_owner` for someone else's, `not_found` for one that doesn't exist. About the caller's rights: `not_found` for a
///   channel that the caller may not know of; `not_member`; `not_permitted`, also in a deleted channel; `kind_forbids` where nobody may delete it;
///   `banned`, with ``RoostError/until`` unless it has no end.
public struct DeleteMessage: Operation {
    public typealias Response = Message
    public static let name = "message.delete"
    public static let method = HTTPMethod.delete
    public static let path = "/v1/channels/{channel}/messages/{message}"
    public static let permission = Permission.messageDeleteOwn
    public static let summary = "Delete a message: its place stays, its content is removed. For its author and for operators."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    /// The message to delete.
    public var message: MessageID
    // derived: init
    /// Creates a value with these fields.
    public init(channel: ChannelID, message: MessageID) {
        self.channel = channel
        self.message = message
    }
    public func validate() throws(RoostError) { try channel.validate(field: "channel") }
}

/// Deletes several messages of a channel, all or none, as `message.delete` does for one. Already deleted messages stay as they are.
///
/// - Throws: The errors of `message.delete`; `limit_exceeded` if the messages together, with the earlier versions that are kept of them, have more
///   content than ``Limits/deletedMessagesSizeBytes``. The `field` of an error about one of the messages names it by its index: `messages[2]`.
public struct DeleteMessages: Operation {
    public typealias Response = MessageResults
    public static let name = "message.deleteMany"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/messages/delete"
    public static let permission = Permission.messageDeleteOwn
    public static let summary = "Delete up to 100 messages of a channel, all of them or none."

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

extension [MessageID] {
    /// Checks the `messages` of a call that deletes them.
    func validateForDeletion() throws(RoostError) {
        guard !isEmpty else { throw .invalidArgument("messages", "must not be empty") }
        guard count <= Limits.messagesPerCall else {
            throw .limitExceeded("messages", limit: Limits.messagesPerCall, unit: "messages")
        }
        guard Set(self).count == count else { throw .notUnique("messages") }
    }
}

/// Permanently deletes a message: only its place in the order is left, without even its author. The author may do it, and operators with
/// any message. It is no longer unread for anyone.
///
/// - Throws: `not_message_owner` for someone else's, and for the caller's own if someone else has deleted it and it can still be undeleted;
///   `not_found`, also for one already permanently deleted; the errors of `message.delete` about the caller's rights.
public struct PurgeMessage: Operation {
    public typealias Response = Done
    public static let name = "message.purge"
    public static let method = HTTPMethod.delete
    public static let path = "/v1/channels/{channel}/messages/{message}/purge"
    public static let permission = Permission.messageDeleteOwn
    public static let summary = "Permanently delete a message: only its place is left. For its author and for operators."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    /// The message to delete permanently.
    public var message: MessageID
    // derived: init
    /// Creates a value with these fields.
    public init(channel: ChannelID, message: MessageID) {
        self.channel = channel
        self.message = message
    }

    public func validate() throws(RoostError) { try channel.validate(field: "channel") }
}
