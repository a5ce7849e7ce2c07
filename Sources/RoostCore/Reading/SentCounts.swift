import RoostAPI

extension Transaction {
    /// The number of seqs searched for one sender's messages.
    private static var walkedSeqsMax: Seq { 1000 }

    /// Returns the number of counting messages that aren't unread for a user who has read up to a seq: those up to it, and the
    /// user's own after it. That number is stored; the current one also includes others' messages deleted for good after it.
    ///
    /// Reading everything, or more than the user's own newest message, takes one or two look-ups however long the channel is.
    /// Only a place before an own message, or before the user joined, requires counting the own messages after it.
    func readCounts(upTo seq: Seq, of user: UserID, in access: ChannelAccess) throws -> (stored: Int, now: Int) {
        if seq >= access.counters.seq { return (access.counters.ordinal, access.counters.ordinal) }
        var stored = try ordinal(upTo: seq, in: access)
        // Messages sent before joining aren't recorded in the membership.
        if let member = access.member, max(member.lastSentSeq, member.row.joinedSeq) > seq {
            // Far back, the user's own messages are found by their sender, skipping any number of others' messages.
            let place: SQL = access.counters.seq - seq > Self.walkedSeqsMax ? "+seq" : "seq"
            let after: SQL = """
                SELECT COUNT(*) FROM messages
                WHERE channel_id = \(access.channelId) AND \(place) > \(seq) AND sender_id = \(user) AND counts = 1
                """
            stored += try first(after) { $0.int() } ?? 0
        }
        guard access.purgedSeq > seq else { return (stored, stored) }
        let (channel, place): (SQL, SQL) = ("\(access.channelId)", "CAST(\(seq) AS BIGINT)")
        let purged: SQL =
            "SELECT \(Unread.purged(after: place, in: channel, by: "\(user)")), \(Unread.purged(after: place, in: channel))"
        let (own, all) = try first(purged) { ($0.int(), $0.int()) } ?? (0, 0)
        return (stored + own, stored + all)
    }
}
