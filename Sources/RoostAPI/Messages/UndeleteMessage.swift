/// Brings a deleted message back, with what it said when it was deleted, as long as the app's option ``AppOptions/undeletionSeconds`` has that kept.
///
/// Whoever deleted their own message may do it as long as they may edit it, and an operator with any but an admin message, which only those bring back
/// who may send one. It mentions again whom it mentioned, of those who can still be mentioned, if the caller may mention there; the answer names the others
/// in ``Message/droppedMentions``. It mentions the channel again if it did, if the caller may mention there and if ``AppOptions/isMentionAllEnabled`` still
/// holds. Otherwise the answer's `mentionees` have no entry for the channel, and nothing else says so: whoever wants to tell compares them with what the
/// message had before its deletion.
/// A message that isn't deleted stays as it is.
/// - Throws: `feature_disabled` where the app keeps nothing of deleted messages; `not_found` for one whose content isn't kept any more;
///   `not_message_owner` for someone else's, and for an own one that an operator has deleted; those of `message.edit`.
public struct UndeleteMessage: Operation {
    public typealias Response = Message
    public static let name = "message.undelete"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/messages/{message}/undelete"
    public static let permission = Permission.messageEditOwn
    public static let summary = "Bring a deleted message back within the app's time for that. For who deleted it and for operators."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    /// The message to bring back.
    public var message: MessageID

    // derived: init
    /// Creates a value with these fields.
    public init(channel: ChannelID, message: MessageID) {
        self.channel = channel
        self.message = message
    }

    public func validate() throws(RoostError) { try channel.validate(field: "channel") }
}
