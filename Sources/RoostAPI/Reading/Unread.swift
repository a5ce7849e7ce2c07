/// How many messages are unread: the one definition, which the SDK calls and the server's SQL is tested against.
///
/// Nothing is counted per member when a message is sent, so that a channel of 300,000 costs no more than one of ten. A member's
/// unread count is the difference of two numbers: the messages of the channel that count, and those of them that aren't unread for this member.
public enum Unread {
    /// Whether a message counts: as unread for those who haven't read it, and as news for those who hid the channel.
    ///
    /// Every message that there is today does. A kind that doesn't says so here: nothing else decides it. A message counts, or doesn't, for
    /// ever: what is looked at mustn't change.
    public static func counts(_ message: Message) -> Bool { true }

    /// The messages that a member hasn't read (AM-43). Own messages are never unread; deleted ones count until they are read.
    public static func count(in channel: ChannelCounters, for membership: Membership) -> Int {
        guard membership.state == .member else { return 0 }
        return max(0, channel.ordinal - membership.readCount)
    }

    /// What a new message does to the membership of the user who sees it: one's own doesn't count as unread, and is counted once.
    public static func receive(_ message: Message, as user: UserID, in membership: inout Membership) {
        guard message.sender == user, message.seq > membership.channelSeq else { return }
        if counts(message) { membership.readCount += 1 }
        membership.channelSeq = message.seq
    }

    /// A membership that comes to who has followed the channel further than it has: the own messages since then are counted too.
    ///
    /// - Parameter messages: the channel's up to where it is followed, in any order; which of them are newer and own is seen here.
    public static func bringUp(_ membership: Membership, as user: UserID, with messages: some Sequence<Message>) -> Membership {
        var membership = membership
        for message in messages.filter({ $0.sender == user }).sorted(by: { $0.seq < $1.seq }) {
            receive(message, as: user, in: &membership)
        }
        return membership
    }
}
