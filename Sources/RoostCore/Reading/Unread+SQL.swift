import RoostAPI

/// Read counts in statements. A member's stored count doesn't include messages deleted for good after the read position: they
/// are added when it is read, so deleting one writes nothing per member. A test keeps the two in step.
extension Unread {
    /// Returns a membership's read count, from a row of `members` that the statement reads anyway. Only for members: a former
    /// member's count stays as it was.
    ///
    /// - Parameters:
    ///   - members: The table's name in the statement.
    ///   - purgedSeq: The last seq of the channel at which a message was deleted for good.
    static func readCount(of members: SQL, purgedSeq: SQL) -> SQL {
        """
        \(members).read_count + CASE WHEN \(purgedSeq) > \(members).read_seq AND \(members).state = 'member'
        THEN \(purged(after: "\(members).read_seq", of: members)) ELSE 0 END
        """
    }

    /// The read position that others see. They don't learn of a later mark as unread.
    static func receiptSeq(of members: SQL) -> SQL {
        "CASE WHEN \(members).receipt_seq > \(members).read_seq THEN \(members).receipt_seq ELSE \(members).read_seq END"
    }

    /// The read count that goes with ``receiptSeq(of:)``, like ``readCount(of:purgedSeq:)``.
    static func receiptCount(of members: SQL, purgedSeq: SQL) -> SQL {
        """
        CASE WHEN \(members).receipt_seq <= \(members).read_seq THEN \(readCount(of: members, purgedSeq: purgedSeq))
        ELSE \(members).receipt_count + \(purged(after: "\(members).receipt_seq", of: members)) END
        """
    }

    /// A member's unread count in a channel, from an index of `members` (`m`) without read positions: the row itself is only
    /// looked up if messages of the channel (`h`) were deleted for good.
    static let count: SQL = "(h.ordinal - m.read_count - CASE WHEN h.purged_seq = 0 THEN 0 ELSE \(purgedAfterOwnPosition) END)"

    private static let purgedAfterOwnPosition: SQL = """
        (SELECT \(purged(after: "r.read_seq", of: "r")) FROM members r WHERE r.channel_id = m.channel_id AND r.user_id = m.user_id)
        """

    /// Returns the number of others' counting messages deleted for good after a place.
    private static func purged(after seq: SQL, of members: SQL) -> SQL {
        let channel: SQL = "\(members).channel_id"
        return "(\(purged(after: seq, in: channel)) - \(purged(after: seq, in: channel, by: "\(members).user_id")))"
    }

    /// Returns the number of counting messages deleted for good after a place: those of its block one by one, and those of
    /// later blocks by their counts.
    ///
    /// - Parameter sender: The sender whose messages count; nil for all.
    static func purged(after seq: SQL, in channel: SQL, by sender: SQL? = nil) -> SQL {
        let isSenders: SQL = if let sender { "AND p.sender_id = \(sender)" } else { "" }
        let everybody: SQL = "''"
        return """
            ((SELECT COUNT(*) FROM purged_messages p
              WHERE p.channel_id = \(channel) AND p.seq > \(seq) AND p.seq < (\(seq) / \(purgeBlockLength) + 1) * \(purgeBlockLength)
                    AND p.counts = 1 \(isSenders))
             + (SELECT COALESCE(SUM(n.count), 0) FROM purged_counts n
                WHERE n.channel_id = \(channel) AND n.sender_id = \(sender ?? everybody) AND n.stretch > \(seq) / \(purgeBlockLength)))
            """
    }

    /// The number of seqs per block, whose messages deleted for good are counted together in a row of `purged_counts`.
    static let purgeBlockLength: SQL = "1024"
    /// The same number outside of statements; the blocks of `sent_counts` are as long.
    static let blockLength: Seq = 1024
}
