package import RoostAPI

extension ChannelMention {
    init(of message: Message, from seq: Seq?) {
        self.init(seq: message.seq, changeSeq: message.changeSeq, mentionSeq: seq, sender: message.sender)
    }

    // derived: columns, sender as sender_id
    static let columns: SQL = "seq, change_seq, mention_seq, sender_id"

    /// The number of rows per read when the newest don't mention a user, and the maximum number of reads: they bound the cost of a search.
    fileprivate static let rowsAtOnce = 20
    fileprivate static let looksMax = 100

    // derived: init(reading:)
    init(reading row: inout RowReader) throws {
        try self.init(seq: row.value(), changeSeq: row.value(), mentionSeq: row.value(), sender: row.value())
    }
}

extension ChannelMention: StoredRow {
    package static var headBit: Int64? { 1 << 1 }
    package static var permission: Permission? { .historyRead }

    /// If a mention ends within the requested changes, the newest remaining ones are sent with it, as with the event of that end
    /// (``Transaction/newestChannelMentions(in:above:)``).
    ///
    /// They are sent with the first end: a page may be cut off before the last one, which may be undone before the next page is fetched.
    package static func changed(for request: ChannelChangesRequest) throws -> ChangedRows<ChannelMention> {
        let transaction = request.transaction
        let (found, upTo) = try rows(for: request)
        // A message deleted for good leaves no row that says whether it mentioned the channel.
        let purged = request.hasPurges ? try transaction.oldestPurge(in: request.channel, after: request.after) : nil
        let taken = found.first { $0.row.mentionSeq == nil }?.stamp
        guard let end = [taken, purged].compactMap(\.self).min() else { return ChangedRows(found, upTo: upTo) }
        let left = try transaction.newestChannelMentions(in: request.channel, above: request.floor)
        // A remaining one may have been sent after the end, on a later page. It is still sent with the end.
        let others = found.filter { $0.stamp < end || !left.contains($0.row) }
        let missing = left.filter { mention in !others.contains { $0.row == mention } }
        return ChangedRows(others + missing.map { (stamp: end, row: $0) }, upTo: upTo)
    }

    /// Returns the requested rows in the order of their changes, and the position up to which they are complete; nil if all are.
    ///
    /// An unchanged message is found where it was sent, the changed ones by their own index. The first search passes the
    /// changed ones too, so each search has its own bound.
    private static func rows(
        for request: ChannelChangesRequest
    ) throws -> (found: [(stamp: Seq, row: ChannelMention)], upTo: Seq?) {
        let (transaction, channel) = (request.transaction, request.channel)
        let sent: SQL = """
            SELECT \(columns) FROM channel_mentions WHERE channel_id = \(channel) AND seq > \(max(request.after, request.floor))
            ORDER BY seq LIMIT \(request.limit + 1)
            """
        let changed: SQL = """
            SELECT \(columns) FROM channel_mentions
            WHERE channel_id = \(channel) AND change_seq > \(request.after) AND change_seq > seq AND seq > \(request.floor)
            ORDER BY change_seq LIMIT \(request.limit + 1)
            """
        let passed = try transaction.rows(sent) { try ChannelMention(reading: &$0) }
        let others = try transaction.rows(changed) { try ChannelMention(reading: &$0) }
        let ends = [
            passed.count > request.limit ? passed.last?.seq : nil,
            others.count > request.limit ? others[request.limit - 1].changeSeq : nil,
        ]
        let found = (passed.filter { $0.changeSeq == $0.seq } + others).map { (stamp: $0.changeSeq, row: $0) }
        return (found.sorted { $0.stamp < $1.stamp }, ends.compactMap(\.self).min())
    }

    /// The newest valid mentions. If there are more, the newest that can be unread instead: however many are the follower's
    /// own, an earlier one by another user matters. An older one is sent once all of these were taken back.
    package static func fresh(
        in channel: ChannelID, for user: UserID, above floor: Seq, messages: Int, beside rows: Rows, in transaction: any Transaction
    ) throws -> [ChannelMention] {
        let sql: SQL = """
            SELECT \(columns) FROM channel_mentions WHERE channel_id = \(channel) AND mention_seq > \(floor) AND seq > \(floor)
            ORDER BY mention_seq DESC LIMIT \(Limits.freshMentions)
            """
        let newest = try transaction.rows(sql) { try ChannelMention(reading: &$0) }
        guard newest.count == Limits.freshMentions else { return newest }
        return try transaction.newestChannelMentions(
            for: user, in: channel, above: floor, since: 0, limit: Limits.freshMentions)
    }

    package static func purge(about message: Seq, in channel: ChannelID, _ transaction: any Transaction) throws {
        try transaction.perform("DELETE FROM channel_mentions WHERE channel_id = \(channel) AND seq = \(message)")
    }
}

extension Transaction {
    /// Returns the channel's newest valid mention, and the newest one by another sender.
    ///
    /// The newest that mentions a given user is always one of the two. So all followers of the channel get both when a mention
    /// ends, which may have been the newest that some of them knew of.
    func newestChannelMentions(in channel: ChannelID, above floor: Seq = 0) throws -> [ChannelMention] {
        let sql: SQL = """
            SELECT \(ChannelMention.columns) FROM channel_mentions
            WHERE channel_id = \(channel) AND mention_seq > \(floor) AND seq > \(floor) ORDER BY mention_seq DESC LIMIT 1
            """
        guard let newest = try first(sql, { try ChannelMention(reading: &$0) }) else { return [] }
        let other = try newestChannelMention(for: newest.sender, in: channel, above: floor, since: 0, mayBeDeleted: false)
        return [newest, other].compactMap(\.self)
    }

    /// Returns the channel's newest mention of a user.
    func newestChannelMention(
        for user: UserID, in channel: ChannelID, above floor: Seq, since: Seq, mayBeDeleted: Bool = true
    ) throws -> ChannelMention? {
        try newestChannelMentions(for: user, in: channel, above: floor, since: since, limit: 1, mayBeDeleted: mayBeDeleted).first
    }

    /// Returns the channel's newest mentions of a user. A message doesn't mention its own sender, nor users who have deleted it for themselves.
    ///
    /// The first query takes the newest, which are nearly always enough. Each further one continues below the last: a sender's
    /// own are skipped at once, however many, since each knows the previous one by another user (``otherMention(than:in:)``). A
    /// user who has deleted thousands of others' mentions for themselves may miss one before these.
    ///
    /// - Parameters:
    ///   - floor: The seq up to which messages are hidden from the user.
    ///   - since: The seq up to which mentions don't matter.
    ///   - mayBeDeleted: Whether any user may have deleted messages of the channel for themselves.
    func newestChannelMentions(
        for user: UserID, in channel: ChannelID, above floor: Seq, since: Seq, limit: Int, mayBeDeleted: Bool = true
    ) throws -> [ChannelMention] {
        let kept: SQL = mayBeDeleted ? OwnDeletion.excluding(seq: "channel_mentions.seq", of: user, in: channel) : "1 = 1"
        let matters: SQL = "sender_id <> \(user) AND seq > \(floor) AND \(kept)"
        // A message can't mention before it is sent: the search ends at the floor, however many mentions lie below it.
        let since = max(since, floor)
        let rowsAtOnce = max(limit, ChannelMention.rowsAtOnce)
        var (found, end, hasMore) = ([ChannelMention](), Seq.max, true)
        for look in 0..<ChannelMention.looksMax where hasMore && found.count < limit {
            let count = look == 0 ? limit : rowsAtOnce
            let sql: SQL = """
                SELECT \(ChannelMention.columns), other_mention_seq, CASE WHEN \(matters) THEN 1 ELSE 0 END FROM channel_mentions
                WHERE channel_id = \(channel) AND mention_seq > \(since) AND mention_seq < \(end) ORDER BY mention_seq DESC LIMIT \(count)
                """
            let newest = try rows(sql) { row in
                (mention: try ChannelMention(reading: &row), other: row.optionalInt64(), matters: row.bool())
            }
            found += newest.filter(\.matters).map(\.mention).prefix(limit - found.count)
            guard newest.count == count, let last = newest.last, let lastSeq = last.mention.mentionSeq else { break }
            end = last.mention.sender == user ? last.other.map { $0 + 1 } ?? lastSeq : lastSeq
            hasMore = end > since + 1
        }
        return found
    }

    /// Returns the place of the channel's newest mention by another user, whether or not it still exists; 0 for none.
    func otherMention(than sender: UserID, in channel: ChannelID) throws -> Seq {
        var end = Seq.max
        while true {
            let sql: SQL = """
                SELECT sender_id, mention_seq, other_mention_seq FROM channel_mentions
                WHERE channel_id = \(channel) AND mention_seq > 0 AND mention_seq < \(end) ORDER BY mention_seq DESC LIMIT 1
                """
            let found = try first(sql) { row in
                (sender: try row.value() as UserID, mentionSeq: row.int64(), other: row.optionalInt64())
            }
            guard let found else { return 0 }
            guard found.sender == sender else { return found.mentionSeq }
            // Whether that mention is still valid doesn't matter: there was none between it and the sender's own.
            if let other = found.other { return other }
            end = found.mentionSeq
        }
    }
}
