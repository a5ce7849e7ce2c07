import RoostAPI

/// What statements make of read counts. A member's stored one knows nothing of messages that were deleted for good after the read position: they
/// are added where it is read, so that deleting one writes nothing per member. A test holds the two together.
extension Unread {
    /// A membership's read count, of a row of `members` that the statement reads anyway. A member's alone: what left stays as it was.
    ///
    /// - Parameters:
    ///   - members: what the table is called in the statement.
    ///   - purgedSeq: the last place of the channel at which a message was deleted for good.
    static func readCount(of members: SQL, purgedSeq: SQL) -> SQL {
        """
        \(members).read_count + CASE WHEN \(purgedSeq) > \(members).read_seq AND \(members).state = 'member'
        THEN \(purged(after: "\(members).read_seq", of: members)) ELSE 0 END
        """
    }

    /// What of a channel is unread for a member, along an index of `members` (`m`) that holds no read positions: the row itself is looked up only
    /// where the channel (`h`) has messages that were deleted for good.
    static let count: SQL = "(h.ordinal - m.read_count - CASE WHEN h.purged_seq = 0 THEN 0 ELSE \(purgedAfterOwnPosition) END)"

    private static let purgedAfterOwnPosition = purged(
        after: "(SELECT r.read_seq FROM members r WHERE r.channel_id = m.channel_id AND r.user_id = m.user_id)", of: "m")

    /// How many messages of others that count were deleted for good after a place.
    private static func purged(after seq: SQL, of members: SQL) -> SQL {
        """
        (SELECT COUNT(*) FROM purged_messages p
         WHERE p.channel_id = \(members).channel_id AND p.seq > \(seq) AND p.counts = 1 AND p.sender_id <> \(members).user_id)
        """
    }
}
