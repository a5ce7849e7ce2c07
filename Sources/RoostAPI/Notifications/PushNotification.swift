/// A message to push and its recipients, as handed to the push sender (ST-07).
///
/// It may be handed off more than once, with the same message.
public struct PushNotification: Hashable, Sendable {
    /// The message as members see it. In an ephemeral channel, where messages aren't stored, it has everything but the content.
    public let message: Message
    /// The channel's name, shown in the push (AM-12); nil if it has none.
    public let channelName: String?
    /// The message's sender; nil for a user who no longer exists.
    public let sender: UserSummary?
    /// The members to be pushed, by their ids.
    public var recipients: [Recipient]

    /// A member to be pushed.
    public struct Recipient: Hashable, Sendable {
        /// The member.
        public let user: UserID
        /// Whether the message mentions them, by name or with the whole channel (MN-19). At most the app's `mentionNotifyCap` members are mentioned
        /// by name.
        public let isMentioned: Bool

        // derived: init
        /// Creates a value with these fields.
        public init(user: UserID, isMentioned: Bool) {
            self.user = user
            self.isMentioned = isMentioned
        }
    }

    // derived: init
    /// Creates a value with these fields.
    public init(message: Message, channelName: String?, sender: UserSummary?, recipients: [Recipient]) {
        self.message = message
        self.channelName = channelName
        self.sender = sender
        self.recipients = recipients
    }
}
