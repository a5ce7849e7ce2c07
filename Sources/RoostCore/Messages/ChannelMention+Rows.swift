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

    /// The newest of those that hold. One before them matters only once all of these were taken back.
    package static func fresh(
        in channel: ChannelID, above floor: Seq, beside rows: Rows, in transaction: any Transaction
    ) throws -> [ChannelMention] {
        let sql: SQL = """
            SELECT \(columns) FROM channel_mentions WHERE channel_id = \(channel) AND mention_seq > 0 AND seq > \(floor)
            ORDER BY mention_seq DESC LIMIT \(Limits.freshMentions)
            """
        return try transaction.rows(sql) { try ChannelMention(reading: &$0) }
    }

    package static func purge(about message: Seq, in channel: ChannelID, _ transaction: any Transaction) throws {
        try transaction.perform("DELETE FROM channel_mentions WHERE channel_id = \(channel) AND seq = \(message)")
    }
}
