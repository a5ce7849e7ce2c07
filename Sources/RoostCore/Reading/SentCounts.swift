import RoostAPI

/// The number of messages that aren't unread for a user who has read up to a place: all up to it, and the user's own after it.
///
/// A user can have sent any number of messages, and all users share the writer. So marks far back don't count them all each time:
///
/// 1. Up to 1,024 messages of a user are found by their sender.
/// 2. The messages of a user who has sent more are counted once, by blocks of 1,024 seqs: a row of `sent_counts` for each
///    block that has any, up to the newest complete one. The first mark that needs a row adds it; sending writes nothing for it.
/// 3. After that, a mark reads these rows, the rest of the place's own block, and the newest block, which isn't complete.
///
/// Such a row is never changed: no message is added to a complete block, none changes whether it counts, and those that are
/// deleted for good are included.
extension Transaction {
    /// The number of seqs searched for one sender's messages.
    private static var walkedSeqsMax: Seq { 1000 }
    /// The number of one sender's messages that are read for every mark.
    private static var readMessagesMax: Int { 1024 }

    /// Returns the number of counting messages that aren't unread for a user who has read up to a seq: those up to it, and the
    /// user's own after it. That number is stored; the current one also includes others' messages deleted for good after it.
    ///
    /// Reading everything, or more than the user's own newest message, takes one or two look-ups however long the channel is.
    /// Only a place before an own message, or before the user joined, requires counting the own messages after it. For that, the
    /// transaction must be one that writes.
    func readCounts(upTo seq: Seq, of user: UserID, in access: ChannelAccess) throws -> (stored: Int, now: Int) {
        if seq >= access.counters.seq { return (access.counters.ordinal, access.counters.ordinal) }
        let before = try ordinal(upTo: seq, in: access)
        var purged = (own: 0, all: 0)
        if access.purgedSeq > seq {
            let (channel, place): (SQL, SQL) = ("\(access.channelId)", "CAST(\(seq) AS BIGINT)")
            let counts: SQL =
                "SELECT \(Unread.purged(after: place, in: channel, by: "\(user)")), \(Unread.purged(after: place, in: channel))"
            purged = try first(counts) { (own: $0.int(), all: $0.int()) } ?? purged
        }
        let sent = try sentCount(after: seq, purged: purged.own, by: user, in: access)
        return (before + sent, before + sent - purged.own + purged.all)
    }

    /// Returns the number of a user's counting messages after a place, including those deleted for good.
    ///
    /// - Parameter purged: The number of those deleted for good.
    private func sentCount(after seq: Seq, purged: Int, by user: UserID, in access: ChannelAccess) throws -> Int {
        guard let member = access.member else { return purged }
        // Messages sent before joining aren't recorded in the membership.
        let last = max(member.lastSentSeq, member.row.joinedSeq)
        guard last > seq else { return purged }
        let (channel, head) = (access.channelId, access.counters.seq)
        if head - seq <= Self.walkedSeqsMax {
            let near: SQL = """
                SELECT COUNT(*) FROM messages
                WHERE channel_id = \(channel) AND seq > \(seq) AND sender_id = \(user) AND counts = 1
                """
            return try purged + (first(near) { $0.int() } ?? 0)
        }

        let known = try countedBlocks(by: user, in: channel)
        if known == nil, let few = try fewSentCount(after: seq, by: user, in: channel) { return purged + few }
        let counted = known ?? 0
        // Later messages go to later blocks than the complete ones, and none is left after the user's last.
        let end = max(counted, min((head + 1) / Unread.blockLength, last / Unread.blockLength + 1))
        if end > counted { try countBlocks(from: counted, to: end, by: user, in: channel) }
        return try sentCount(after: seq, upTo: last, by: user, in: channel, countedBlocks: end)
    }

    /// Returns the number of a user's counting messages after a place; nil if the user has sent more in the channel than a mark reads.
    private func fewSentCount(after seq: Seq, by user: UserID, in channel: ChannelID) throws -> Int? {
        let sql: SQL = """
            SELECT COUNT(*), COUNT(CASE WHEN counts = 1 AND seq > \(seq) THEN 1 END)
            FROM \(sent(by: user, in: channel, limit: Self.readMessagesMax + 1))
            """
        let (all, after) = try first(sql) { ($0.int(), $0.int()) } ?? (0, 0)
        return all <= Self.readMessagesMax ? after : nil
    }

    /// The messages of a user as a table, found by their sender. The order is that of the index, so no plan reads others' messages.
    private func sent(by user: UserID, in channel: ChannelID, limit: Int) -> SQL {
        """
        (SELECT channel_id, sender_id, seq, counts FROM messages
         WHERE channel_id = \(channel) AND sender_id = \(user) ORDER BY client_id LIMIT \(limit)) AS counted
        """
    }

    // MARK: Blocks

    /// Returns the number of blocks, from the first one on, in which a user's messages were counted; nil for none.
    private func countedBlocks(by user: UserID, in channel: ChannelID) throws -> Seq? {
        let sql: SQL = """
            SELECT block FROM sent_counts WHERE channel_id = \(channel) AND sender_id = \(user) ORDER BY block DESC LIMIT 1
            """
        return try first(sql) { $0.int64() + 1 }
    }

    /// Counts a user's messages in blocks that are complete.
    ///
    /// - Parameters:
    ///   - begin: The first block that isn't counted yet.
    ///   - end: The block after the last one.
    private func countBlocks(from begin: Seq, to end: Seq, by user: UserID, in channel: ChannelID) throws {
        let (start, next) = (begin * Unread.blockLength, end * Unread.blockLength)
        // Passing a row costs a fraction of finding one by its sender.
        let fewMax = Int((next - start) / 8)
        let sparse: SQL = """
            SELECT COUNT(*) FROM (
                SELECT 1 FROM messages WHERE channel_id = \(channel) AND sender_id = \(user) ORDER BY client_id LIMIT \(fewMax)) AS counted
            """
        let isSparse = try first(sparse) { $0.int() < fewMax } ?? false
        let messages: SQL = isSparse ? sent(by: user, in: channel, limit: fewMax) : "messages"
        try perform(
            """
            INSERT INTO sent_counts (channel_id, sender_id, block, count)
            SELECT channel_id, sender_id, block, SUM(count) FROM (
                SELECT channel_id, sender_id, seq / \(Unread.purgeBlockLength) AS block, COUNT(*) AS count FROM \(messages)
                WHERE channel_id = \(channel) AND sender_id = \(user) AND seq >= \(start) AND seq < \(next) AND counts = 1
                GROUP BY channel_id, sender_id, seq / \(Unread.purgeBlockLength)
                UNION ALL
                SELECT channel_id, sender_id, stretch, count FROM purged_counts
                WHERE channel_id = \(channel) AND sender_id = \(user) AND stretch >= \(begin) AND stretch < \(end)
            ) AS blocks GROUP BY channel_id, sender_id, block
            """)
        // The newest row tells how far they are counted, so there is one even for a block without any.
        try perform(
            """
            INSERT INTO sent_counts (channel_id, sender_id, block, count) VALUES (\(channel), \(user), \(end - 1), 0)
            ON CONFLICT (channel_id, sender_id, block) DO NOTHING
            """)
    }

    /// Returns the number of a user's counting messages after a place, and up to the last, from the blocks' rows and what is outside of them.
    private func sentCount(
        after seq: Seq, upTo last: Seq, by user: UserID, in channel: ChannelID, countedBlocks: Seq
    ) throws -> Int {
        /// One by one, with those deleted for good: at most a block of them.
        func single(after seq: Seq, before end: Seq) -> SQL {
            let place: SQL = "channel_id = \(channel) AND seq > \(seq) AND seq < \(end) AND sender_id = \(user) AND counts = 1"
            return "(SELECT COUNT(*) FROM messages WHERE \(place)) + (SELECT COUNT(*) FROM purged_messages WHERE \(place))"
        }
        let block = seq / Unread.blockLength
        guard block < countedBlocks else {
            return try first("SELECT \(single(after: seq, before: last + 1))") { $0.int() } ?? 0
        }
        let sql: SQL = """
            SELECT \(single(after: seq, before: (block + 1) * Unread.blockLength))
                + (SELECT COALESCE(SUM(count), 0) FROM sent_counts
                   WHERE channel_id = \(channel) AND sender_id = \(user) AND block > \(block))
                + \(single(after: countedBlocks * Unread.blockLength - 1, before: last + 1))
            """
        return try first(sql) { $0.int() } ?? 0
    }
}
