/// The single definition of unread messages: the SDK calls it, and the server's SQL is tested against it.
///
/// Nothing is counted per member when a message is sent, so a channel of 300,000 members costs no more than one of ten. A member's unread
/// count is the difference of two numbers: the channel's counting messages, and those of them read by this member.
public enum Unread {
    /// Returns whether a message counts: as unread for members who haven't read it, and as a new message for those who hid the channel.
    ///
    /// The server's own messages and silent ones don't count; this is the only place that excludes them. The result for a message must
    /// never change, so it may only depend on immutable fields.
    ///
    /// A message of an unknown kind counts unless it is silent, so messages of future kinds that don't count must be silent.
    public static func counts(_ message: Message) -> Bool { message.kind != .system && !message.isSilent }

    /// Returns whether an unread message mentions a member: by name or with the whole channel (MN-16).
    ///
    /// A message mentions from the seq at which it was sent, or edited to mention. The mention is unread until the member has read up to
    /// that seq, so editing a read message can mention a member. Messages that the member can't see don't mention them, nor do their own.
    ///
    /// - Parameter mentions: Those of the channel, in any order; read ones are ignored here.
    public static func hasMention(in membership: Membership, _ mentions: some Sequence<ChannelMention>, as user: UserID) -> Bool {
        guard membership.state == .member else { return false }
        if membership.mentionSeq > membership.readSeq { return true }
        return mentions.contains { mention in
            (mention.mentionSeq ?? 0) > membership.readSeq && mention.seq > membership.historyFloor && mention.sender != user
        }
    }

    /// Returns a member's number of unread messages (AM-43). Own messages are never unread; deleted ones count until they are read, unless
    /// they were permanently deleted.
    public static func count(in channel: ChannelCounters, for membership: Membership) -> Int {
        guard membership.state == .member else { return 0 }
        return max(0, channel.ordinal.subtractingWithSaturation(membership.readCount))
    }

    /// Applies a new message to the receiving user's membership: an own message doesn't count as unread, and is counted once.
    public static func receive(_ message: Message, as user: UserID, in membership: inout Membership) {
        membership = advancing(membership, as: user, with: [message])
    }

    /// Advances a membership to a later position of its channel: the own messages since then, and unread ones that were permanently
    /// deleted, are counted as read.
    ///
    /// A permanently deleted own message counts as another user's, since its sender isn't revealed. The server sends the sender's
    /// membership again with it.
    ///
    /// - Parameters:
    ///   - messages: The channel's messages up to that position, in any order; newer and own ones are picked here.
    ///   - purged: Places of messages permanently deleted up to that position, in any order.
    public static func advancing(
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
