package import RoostAPI

extension ChannelMention {
    init(of message: Message, from seq: Seq?) {
        self.init(seq: message.seq, changeSeq: message.changeSeq, mentionSeq: seq, sender: message.sender)
    }

    // derived: columns, sender as sender_id
    static let columns: SQL = "seq, change_seq, mention_seq, sender_id"

    /// How many are read at once where the newest don't mention a user, and how often: a bound of what a look for one costs.
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

    /// Where the stretch has the end of a mention, the newest that are left come with it, as with the event of that end
    /// (``Transaction/newestChannelMentions(in:above:)``).
    ///
    /// They come with the first end: a page may be cut before the last one, which may be undone before the next page is fetched.
    package static func changed(in stretch: ChannelStretch) throws -> ChangedRows<ChannelMention> {
        let transaction = stretch.transaction
        let (found, upTo) = try rows(in: stretch)
        // A message that is deleted for good leaves no row that says whether it mentioned the channel.
        let purged = stretch.hasPurges ? try transaction.oldestPurge(in: stretch.channel, after: stretch.after) : nil
        let taken = found.first { $0.row.mentionSeq == nil }?.stamp
        guard let end = [taken, purged].compactMap(\.self).min() else { return ChangedRows(found, upTo: upTo) }
        let left = try transaction.newestChannelMentions(in: stretch.channel, above: stretch.floor)
        // What is left may have been sent after the end, on a later page: it comes with the end all the same.
        let others = found.filter { $0.stamp < end || !left.contains($0.row) }
        let missing = left.filter { mention in !others.contains { $0.row == mention } }
        return ChangedRows(others + missing.map { (stamp: end, row: $0) }, upTo: upTo)
    }

    /// Returns the rows of a stretch in the order of their changes, and up to where that is all of them; nil if it is.
    ///
    /// A message that was never changed is found where it was sent, the others by an index of theirs alone. The first search passes the others, which is
    /// why each is bounded by itself.
    private static func rows(
        in stretch: ChannelStretch
    ) throws -> (found: [(stamp: Seq, row: ChannelMention)], upTo: Seq?) {
        let (transaction, channel) = (stretch.transaction, stretch.channel)
        let sent: SQL = """
            SELECT \(columns) FROM channel_mentions WHERE channel_id = \(channel) AND seq > \(max(stretch.after, stretch.floor))
            ORDER BY seq LIMIT \(stretch.limit + 1)
            """
        let changed: SQL = """
            SELECT \(columns) FROM channel_mentions
            WHERE channel_id = \(channel) AND change_seq > \(stretch.after) AND change_seq > seq AND seq > \(stretch.floor)
            ORDER BY change_seq LIMIT \(stretch.limit + 1)
            """
        let passed = try transaction.rows(sent) { try ChannelMention(reading: &$0) }
        let others = try transaction.rows(changed) { try ChannelMention(reading: &$0) }
        let ends = [
            passed.count > stretch.limit ? passed.last?.seq : nil,
            others.count > stretch.limit ? others[stretch.limit - 1].changeSeq : nil,
        ]
        let found = (passed.filter { $0.changeSeq == $0.seq } + others).map { (stamp: $0.changeSeq, row: $0) }
        return (found.sorted { $0.stamp < $1.stamp }, ends.compactMap(\.self).min())
    }

    /// The newest of those that hold. If there are more than that, the newest that can be unread instead: however many are the follower's own,
    /// one before them by somebody else matters. An older one comes once all of these were taken back.
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
    /// Returns the channel's newest mention that holds, and the newest one by another sender.
    ///
    /// The newest that mentions a user is one of the two, whoever the user is. So they come to all who follow the channel when a mention ends,
    /// which may have been the newest that somebody knew of.
    func newestChannelMentions(in channel: ChannelID, above floor: Seq = 0) throws -> [ChannelMention] {
        let sql: SQL = """
            SELECT \(ChannelMention.columns) FROM channel_mentions
            WHERE channel_id = \(channel) AND mention_seq > \(floor) AND seq > \(floor) ORDER BY mention_seq DESC LIMIT 1
            """
        guard let newest = try first(sql, { try ChannelMention(reading: &$0) }) else { return [] }
        let other = try newestChannelMention(for: newest.sender, in: channel, above: floor, since: 0, mayBeDeleted: false)
        return [newest, other].compactMap(\.self)
    }

    /// Returns the channel's newest mention that mentions a user.
    func newestChannelMention(
        for user: UserID, in channel: ChannelID, above floor: Seq, since: Seq, mayBeDeleted: Bool = true
    ) throws -> ChannelMention? {
        try newestChannelMentions(for: user, in: channel, above: floor, since: since, limit: 1, mayBeDeleted: mayBeDeleted).first
    }

    /// Returns the channel's newest mentions that mention a user: whoever sent one isn't mentioned, nor whoever has deleted it for themselves.
    ///
    /// The first look takes the newest, which are nearly always enough. Each further one goes on behind the last: a sender's own are skipped at once, however many,
    /// since each knows the one before it of somebody else (``otherMention(than:in:)``). Whoever has deleted thousands of others' for themselves may miss one before these.
    ///
    /// - Parameters:
    ///   - floor: The seq up to which messages are hidden from the user.
    ///   - since: The seq up to which mentions don't matter.
    ///   - mayBeDeleted: Whether anybody may have deleted messages of the channel for themselves.
    func newestChannelMentions(
        for user: UserID, in channel: ChannelID, above floor: Seq, since: Seq, limit: Int, mayBeDeleted: Bool = true
    ) throws -> [ChannelMention] {
        let kept: SQL = mayBeDeleted ? OwnDeletion.excluding(seq: "channel_mentions.seq", of: user, in: channel) : "1 = 1"
        let matters: SQL = "sender_id <> \(user) AND seq > \(floor) AND \(kept)"
        // No message mentions before it is there: at the floor the look ends, however many mentions lie below it.
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

    /// Returns where the channel's newest mention by somebody else is, or was; 0 for none.
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
            // Whether that mention still holds doesn't matter: between it and the sender's own there was none.
            if let other = found.other { return other }
            end = found.mentionSeq
        }
    }
}
