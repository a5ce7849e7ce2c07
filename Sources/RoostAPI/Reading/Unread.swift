/// The one definition of unread messages, which the SDK calls and the server's SQL is tested against.
///
/// Nothing is counted per member when a message is sent, so that a channel of 300,000 costs no more than one of ten. A member's unread
/// count is the difference of two numbers: the channel's counting messages, and those of them that aren't unread for this member.
public enum Unread {
    /// Returns whether a message counts: as unread for those who haven't read it, and as news for those who hid the channel.
    ///
    /// The server's own messages and silent ones don't. What doesn't count is excluded here and nowhere else. The answer for a message must never
    /// change, so it may only depend on fields that don't.
    ///
    /// One of a kind that this version doesn't know counts, unless it is silent: so messages of later kinds that don't count are silent ones.
    public static func counts(_ message: Message) -> Bool { message.kind != .system && !message.isSilent }

    /// Returns whether an unread message mentions a member: by name or with the whole channel (MN-16).
    ///
    /// A message mentions from the seq on at which it was sent, or edited so that it does. It is unread as long as the member hasn't read up to
    /// there, so that an edit of a message that was read can mention somebody. Messages that the member can't see mention nobody, nor does
    /// a member mention themselves.
    ///
    /// - Parameter mentions: Those of the channel, in any order; ones that aren't unread are left out here.
    public static func hasMention(in membership: Membership, _ mentions: some Sequence<ChannelMention>, as user: UserID) -> Bool {
        guard membership.state == .member else { return false }
        if membership.mentionSeq > membership.readSeq { return true }
        return mentions.contains { mention in
            (mention.mentionSeq ?? 0) > membership.readSeq && mention.seq > membership.historyFloor && mention.sender != user
        }
    }

    /// Returns the number of messages that a member hasn't read (AM-43). Own messages are never unread; deleted ones count until they are
    /// read, unless they were deleted for good.
    public static func count(in channel: ChannelCounters, for membership: Membership) -> Int {
        guard membership.state == .member else { return 0 }
        return max(0, channel.ordinal.subtractingWithSaturation(membership.readCount))
    }

    /// Applies a new message to the membership of the user who sees it: an own message doesn't count as unread, and is counted once.
    public static func receive(_ message: Message, as user: UserID, in membership: inout Membership) {
        membership = bringUp(membership, as: user, with: [message])
    }

    /// Brings a membership to a later position of its channel: with the own messages since then, and without the unread ones that were
    /// deleted for good.
    ///
    /// An own message that was deleted for good counts as another user's, since nobody learns whose it was. The server sends the sender's
    /// membership again with it.
    ///
    /// - Parameters:
    ///   - messages: The channel's up to that place, in any order; newer and own ones are picked here.
    ///   - purged: Places of messages deleted for good up to that place, in any order.
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
        membership.readCount = membership.readCount.addingWithSaturation(counted.count)
        return membership
    }
}
