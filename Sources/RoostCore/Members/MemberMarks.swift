import RoostAPI

/// The data of other features in a member's row.
extension Transaction {
    /// Writes the position in the user's own stream at which a membership was sent again.
    func stampMember(_ user: UserID, in channel: ChannelID, _ userSeq: Seq) throws {
        try write(
            "UPDATE members SET user_seq = \(userSeq) WHERE channel_id = \(channel) AND user_id = \(user)", toMember: user,
            of: channel)
    }

    /// Writes a member's read position.
    ///
    /// - Parameter count: The value for the column `read_count`, which differs from the row's count if messages were deleted for good.
    func writeReading(_ row: Membership, count: Int, of user: UserID, in channel: ChannelID) throws {
        try write(
            """
            UPDATE members
            SET read_seq = \(row.readSeq), read_count = \(count), user_seq = \(row.userSeq), last_read_at = \(row.lastReadAt)
            WHERE channel_id = \(channel) AND user_id = \(user)
            """, toMember: user, of: channel)
    }

    /// Writes the position up to which messages have reached a member's devices.
    ///
    /// - Returns: The read position that others saw before the member marked something as unread; nil if the position hasn't moved forward.
    func noteDelivery(upTo seq: Seq, at time: Timestamp, of user: UserID, in channel: ChannelID) throws -> Seq? {
        try bypassingBatchMemory {
            let sql: SQL = """
                UPDATE members SET delivered_seq = \(seq), delivered_at = \(time)
                WHERE channel_id = \(channel) AND user_id = \(user) AND delivered_seq < \(seq) AND receipt_seq < \(seq)
                RETURNING receipt_seq
                """
            return try first(sql) { $0.int64() }
        }
    }

    /// Stores the read position that others see, before the member marks something as unread again.
    func keepReceipt(of user: UserID, in channel: ChannelID) throws {
        try write(
            """
            UPDATE members SET receipt_seq = read_seq, receipt_count = read_count
            WHERE channel_id = \(channel) AND user_id = \(user) AND receipt_seq < read_seq
            """, toMember: user, of: channel)
    }

    /// Returns the seq up to which messages were hidden from a member when they joined; nil if that was before it was stored.
    func joinedFloor(of user: UserID, in channel: ChannelID) throws -> Seq? {
        try bypassingBatchMemory {
            try first("SELECT joined_floor FROM members WHERE channel_id = \(channel) AND user_id = \(user)") { $0.optionalInt64() }
                ?? nil
        }
    }

    /// Writes whether a member has hidden the channel or muted it, the start of their history, and their newest mention after it.
    func writeHiding(_ row: Membership, readCount: Int, of user: UserID, in channel: ChannelID, userSeq: Seq) throws {
        try write(
            """
            UPDATE members
            SET hidden = \(row.hiddenState), hidden_count = \(row.hiddenOrdinal), history_floor = \(row.historyFloor),
                notifications_muted_until = \(row.notificationsMutedUntil),
                mention_seq = \(row.mentionSeq), mention_message = \(row.mentionMessage),
                read_count = CASE WHEN read_seq < \(row.readSeq) THEN \(readCount) ELSE read_count END,
                read_seq = \(row.readSeq), last_read_at = \(row.lastReadAt), user_seq = \(userSeq)
            WHERE channel_id = \(channel) AND user_id = \(user)
            """, toMember: user, of: channel)
    }
}

extension SQL {
    /// Records messages that a member has sent. They are never unread for the member, nor in the read position that others see.
    ///
    /// - Parameter count: How many of them count.
    static func sent(upTo seq: Seq, count: Int, by user: UserID, in channel: ChannelID) -> SQL {
        """
        UPDATE members SET read_count = read_count + \(count), receipt_count = receipt_count + \(count), last_sent_seq = \(seq)
        WHERE channel_id = \(channel) AND user_id = \(user)
        """
    }

    /// Writes the newest mention of a member.
    static func mentioned(_ mention: NewestMention, _ user: UserID, in channel: ChannelID) -> SQL {
        """
        UPDATE members
        SET mention_seq = \(mention.seq), mention_message = \(mention.message), user_seq = \(mention.userSeq)
        WHERE channel_id = \(channel) AND user_id = \(user)
        """
    }
}
