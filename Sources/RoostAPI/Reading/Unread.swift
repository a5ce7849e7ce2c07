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

    /// What a new message does to the membership of the user who sees it: one's own doesn't count as unread, and is counted once.
    public static func receive(_ message: Message, as user: UserID, in membership: inout Membership) {
        guard message.sender == user, message.seq > membership.channelSeq else { return }
        membership.readCount += 1
        membership.channelSeq = message.seq
    }

    /// A membership that comes to who has followed the channel further than it has: the own messages since then are counted too.
    ///
    /// - Parameter ownSeqs: the seqs of the user's own messages up to where the channel is followed; which of them are newer is seen here.
    public static func bringUp(_ membership: Membership, ownSeqs: some Sequence<Seq>) -> Membership {
        var membership = membership
        let newer = ownSeqs.filter { $0 > membership.channelSeq }
        membership.readCount += newer.count
        membership.channelSeq = max(membership.channelSeq, newer.max() ?? 0)
        return membership
    }
}
