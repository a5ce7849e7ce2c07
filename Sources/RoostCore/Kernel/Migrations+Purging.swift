/// The step of messages that are deleted for good.
extension Migrations {
    /// - `purged_messages` keeps the place of each, and what identifies the message when its sender sends it again: none of its content.
    ///   The key finds those after a read position.
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
}
