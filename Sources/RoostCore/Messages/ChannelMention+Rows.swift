package import RoostAPI

extension ChannelMention {
    init(of message: Message, from seq: Seq?) {
        self.init(seq: message.seq, changeSeq: message.changeSeq, mentionSeq: seq, sender: message.sender)
    }

    // derived: columns, sender as sender_id
    static let columns: SQL = "seq, change_seq, mention_seq, sender_id"

    // derived: init(reading:)
    init(reading row: inout RowReader) throws {
        try self.init(seq: row.value(), changeSeq: row.value(), mentionSeq: row.value(), sender: row.value())
    }
}

extension ChannelMention: StoredRow {
    package static var headBit: Int64? { 1 << 1 }
    package static var permission: Permission? { .historyRead }

    package static func changed(in stretch: ChannelStretch) throws -> ChangedRows<ChannelMention> {
        let sql: SQL = """
            SELECT \(columns) FROM channel_mentions
            WHERE channel_id = \(stretch.channel) AND change_seq > \(stretch.after) AND seq > \(stretch.floor)
            ORDER BY change_seq LIMIT \(stretch.limit + 1)
            """
        let found = try stretch.transaction.rows(sql) { try ChannelMention(reading: &$0) }.map { (stamp: $0.changeSeq, row: $0) }
        return ChangedRows(found, upTo: found.count > stretch.limit ? found[stretch.limit - 1].stamp : nil)
    }

    /// The newest of those that hold, and the newest of these that may be unread. One before them matters only once all of these were taken back.
    package static func fresh(
        in channel: ChannelID, for user: UserID, above floor: Seq, messages: Int, beside rows: Rows, in transaction: any Transaction
    ) throws -> [ChannelMention] {
        let sql: SQL = """
            SELECT \(columns) FROM channel_mentions WHERE channel_id = \(channel) AND mention_seq > 0 AND seq > \(floor)
            ORDER BY mention_seq DESC LIMIT \(Limits.freshMentions)
            """
        let newest = try transaction.rows(sql) { try ChannelMention(reading: &$0) }
        guard newest.count == Limits.freshMentions else { return newest }
        let counting = try transaction.newestChannelMention(for: user, in: channel, above: floor, since: 0)
        return newest + (counting.map { newest.contains($0) ? [] : [$0] } ?? [])
    }

    package static func purge(about message: Seq, in channel: ChannelID, _ transaction: any Transaction) throws {
        try transaction.perform("DELETE FROM channel_mentions WHERE channel_id = \(channel) AND seq = \(message)")
    }
}

extension Transaction {
    /// Returns the channel's newest mention that mentions a user: whoever sent it isn't mentioned, nor whoever has deleted it for themselves.
    ///
    /// A sender's own are passed by at once, however many they are: each knows the one before it of somebody else (``otherMention(than:in:)``).
    ///
    /// - Parameters:
    ///   - floor: The seq up to which messages are hidden from the user.
    ///   - since: The seq up to which mentions don't matter.
    func newestChannelMention(
        for user: UserID, in channel: ChannelID, above floor: Seq, since: Seq, mayBeDeleted: Bool = true
    ) throws -> ChannelMention? {
        let deleted: SQL = mayBeDeleted ? OwnDeletion.excluding(seq: "channel_mentions.seq", of: user, in: channel) : "1 = 1"
        var end = Seq.max
        while true {
            let sql: SQL = """
                SELECT \(ChannelMention.columns), other_mention_seq, CASE WHEN \(deleted) THEN 0 ELSE 1 END FROM channel_mentions
                WHERE channel_id = \(channel) AND mention_seq > \(since) AND mention_seq < \(end) ORDER BY mention_seq DESC LIMIT 1
                """
            let found = try first(sql) { row in
                (mention: try ChannelMention(reading: &row), other: row.optionalInt64(), isDeleted: row.bool())
            }
            guard let found, let mentionSeq = found.mention.mentionSeq else { return nil }
            if found.mention.sender == user {
                end = found.other.map { $0 + 1 } ?? mentionSeq
            } else if found.mention.seq <= floor || found.isDeleted {
                end = mentionSeq
            } else {
                return found.mention
            }
        }
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
