/// How many messages are unread: the one definition, which the SDK calls and the server's SQL is tested against.
///
/// Nothing is counted per member when a message is sent, so that a channel of 300,000 costs no more than one of ten. A member's
/// unread count is the difference of two numbers: the messages of the channel, and those that don't count for this member.
public enum Unread {
    /// The messages that a member hasn't read (AM-43). Own messages are never unread; deleted ones count until they are read.
    public static func count(in channel: ChannelCounters, for membership: Membership) -> Int {
        guard membership.state == .member else { return 0 }
        return max(0, channel.messageCount - membership.readCount)
    }

    /// What a new message does to the membership of the user who sees it: one's own doesn't count as unread.
    public static func receive(_ message: Message, as user: UserID, in membership: inout Membership) {
        if message.sender == user { membership.readCount += 1 }
    }
}
