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

    /// The messages that a member hasn't read (AM-43). Own messages are never unread; deleted ones count until they are read, unless they were
    /// deleted for good.
    public static func count(in channel: ChannelCounters, for membership: Membership) -> Int {
        guard membership.state == .member else { return 0 }
        return max(0, channel.ordinal - membership.readCount)
    }

    /// What a new message does to the membership of the user who sees it: one's own doesn't count as unread, and is counted once.
    public static func receive(_ message: Message, as user: UserID, in membership: inout Membership) {
        membership = bringUp(membership, as: user, with: [message])
    }

    /// A membership as of a later place of its channel: with the own messages since then, and without the unread ones that were deleted for good.
    ///
    /// Where the user's own message was deleted for good, it is taken for another's: nobody is told whose it was. The server tells the sender's
    /// membership anew with it.
    ///
    /// - Parameters:
    ///   - messages: the channel's up to that place, in any order; which of them are newer and own is seen here.
    ///   - purged: what was deleted for good up to that place, in any order.
    public static func bringUp(
        _ membership: Membership, as user: UserID, with messages: some Sequence<Message>, _ purged: [PurgedMessage] = []
    ) -> Membership {
        let known = membership.channelSeq
        var membership = membership
        var counted: Set<Seq> = []
        for message in messages where message.sender == user && message.seq > known {
            if counts(message) { counted.insert(message.seq) }
            membership.channelSeq = max(membership.channelSeq, message.seq)
        }
        for place in purged where place.changeSeq > known {
            if place.counts, place.seq > membership.readSeq { counted.insert(place.seq) }
            membership.channelSeq = max(membership.channelSeq, place.changeSeq)
        }
        membership.readCount += counted.count
        return membership
    }
}
