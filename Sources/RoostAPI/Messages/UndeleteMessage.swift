/// Restores a deleted message with the content that it had, as long as the app's option ``AppOptions/undeletionSeconds`` keeps it.
///
/// Authors may restore a message that they deleted themselves as long as they may edit it. Operators may restore any message except admin
/// messages, which only users who may send them can restore. If the caller may mention in the channel, the message again mentions the users
/// that it mentioned and that can still be mentioned; the response names the others in ``Message/droppedMentions``. A mention of the
/// channel is restored if the caller may mention in the channel and ``AppOptions/isMentionAllEnabled`` is still on. Otherwise the
/// response's `mentionees` have no entry for the channel, and nothing else indicates it: clients can compare them with those from before
/// the deletion. A message that isn't deleted stays as it is.
/// - Throws: `feature_disabled` if the app keeps nothing of deleted messages; `not_found` if the content is no longer kept;
///   `not_message_owner` for someone else's message, and for the caller's own if an operator has deleted it; the errors of `message.edit`
///   about the caller's rights.
public struct UndeleteMessage: Operation {
    public typealias Response = Message
    public static let name = "message.undelete"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/messages/{message}/undelete"
    public static let permission = Permission.messageEditOwn
    public static let summary = "Undelete a message within the app's time limit. For the author who deleted it and for operators."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    /// The message to restore.
    public var message: MessageID

    // derived: init
    /// Creates a value with these fields.
    public init(channel: ChannelID, message: MessageID) {
        self.channel = channel
        self.message = message
    }

    public func validate() throws(RoostError) { try channel.validate(field: "channel") }
}
