import RoostAPI

/// What other features keep about a member, in the member's row.
extension Transaction {
    /// Writes the position in the user's own stream at which a membership was told again.
    func stampMember(_ user: UserID, in channel: ChannelID, _ userSeq: Seq) throws {
        try perform("UPDATE members SET user_seq = \(userSeq) WHERE channel_id = \(channel) AND user_id = \(user)")
    }

    /// Writes that a member has sent the newest message, which is never unread for them.
    func writeSent(_ seq: Seq, counts: Bool, by user: UserID, in channel: ChannelID) throws {
        try perform(
            """
            UPDATE members SET read_count = read_count + \(counts ? 1 : 0), last_sent_seq = \(seq)
            WHERE channel_id = \(channel) AND user_id = \(user)
            """)
    }

    /// Writes how far a member has read.
    ///
    /// - Parameter count: The column `read_count`, which isn't the count in the row where messages were deleted for good.
    func writeReading(_ row: Membership, count: Int, of user: UserID, in channel: ChannelID) throws {
        try perform(
            """
            UPDATE members
            SET read_seq = \(row.readSeq), read_count = \(count), last_read_at = \(row.lastReadAt), user_seq = \(row.userSeq)
            WHERE channel_id = \(channel) AND user_id = \(user)
            """)
    }

    /// Writes whether a member has hidden the channel, and up to where its history is.
    func writeHiding(_ row: Membership, of user: UserID, in channel: ChannelID, userSeq: Seq) throws {
        try perform(
            """
            UPDATE members
            SET hidden = \(row.hiddenState), hidden_count = \(row.hiddenOrdinal), history_floor = \(row.historyFloor),
                read_count = CASE WHEN read_seq < \(row.readSeq) THEN \(row.readCount) ELSE read_count END,
                read_seq = \(row.readSeq), user_seq = \(userSeq)
            WHERE channel_id = \(channel) AND user_id = \(user)
            """)
    }
}
