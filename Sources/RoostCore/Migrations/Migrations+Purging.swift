/// The step for messages that are deleted for good.
extension Migrations {
    /// - `purged_messages` keeps the place of each, and the values that identify the message if its sender sends it again: none
    ///   of its content. The key finds those after a read position.
    /// - `channel_heads.purged_seq` is the last such place of a channel, 0 for none: a member who has read up to there needs no look-up.
    @Sendable static func purging(_ dialect: Dialect) -> [SQL] {
        [
            """
            CREATE TABLE purged_messages (
                channel_id \(dialect.text) NOT NULL, seq BIGINT NOT NULL, message_id BIGINT NOT NULL, change_seq BIGINT NOT NULL,
                ordinal BIGINT NOT NULL, counts BIGINT NOT NULL, sender_id \(dialect.text) NOT NULL, client_id \(dialect.text) NOT NULL,
                created_at BIGINT NOT NULL, purged_at BIGINT NOT NULL, PRIMARY KEY (channel_id, seq)
            ) \(dialect.clusteredTable)
            """,
            "CREATE UNIQUE INDEX purged_messages_by_client ON purged_messages (channel_id, sender_id, client_id)",
            "CREATE INDEX purged_messages_by_change ON purged_messages (channel_id, change_seq)",
            "ALTER TABLE channel_heads ADD COLUMN purged_seq BIGINT NOT NULL DEFAULT 0",
        ]
    }

    /// - `purged_counts` counts the counting messages of each block of 1,024 seqs (`stretch`) that were deleted for good: per sender, and
    ///   in total with an empty `sender_id`. So for a member who has read nothing of a long channel, the deleted ones are
    ///   counted by blocks.
    @Sendable static func purgedCounts(_ dialect: Dialect) -> [SQL] {
        [
            """
            CREATE TABLE purged_counts (
                channel_id \(dialect.text) NOT NULL, sender_id \(dialect.text) NOT NULL, stretch BIGINT NOT NULL, count BIGINT NOT NULL,
                PRIMARY KEY (channel_id, sender_id, stretch)
            ) \(dialect.clusteredTable)
            """,
            """
            INSERT INTO purged_counts (channel_id, sender_id, stretch, count)
            SELECT channel_id, sender_id, seq / 1024, COUNT(*) FROM purged_messages WHERE counts = 1 GROUP BY channel_id, sender_id, seq / 1024
            """,
            """
            INSERT INTO purged_counts (channel_id, sender_id, stretch, count)
            SELECT channel_id, '', stretch, SUM(count) FROM purged_counts GROUP BY channel_id, stretch
            """,
        ]
    }
}
