/// The step for messages of every kind, and for mentions.
extension Migrations {
    /// - The parts that messages can have since this step are in columns that most rows leave empty.
    /// - `mentions` has a row for each user whom a message mentions by name; `members.mention_seq` is the newest `mention_seq`
    ///   of a member's rows. `mentions_by_position` finds it again after one of them is gone.
    /// - `channel_mentions` has a row for each message that mentions, or did, its whole channel.
    @Sendable static func messagesOfEveryKind(_ dialect: Dialect) -> [SQL] {
        [
            "ALTER TABLE messages ADD COLUMN kind \(dialect.text) NOT NULL DEFAULT 'text'",
            "ALTER TABLE messages ADD COLUMN mentionees TEXT",
            "ALTER TABLE messages ADD COLUMN meta_arrays TEXT",
            "ALTER TABLE messages ADD COLUMN push_option \(dialect.text) NOT NULL DEFAULT 'default'",
            "ALTER TABLE messages ADD COLUMN target_languages TEXT",
            "ALTER TABLE messages ADD COLUMN is_silent BIGINT NOT NULL DEFAULT 0",
            "ALTER TABLE members ADD COLUMN mention_seq BIGINT NOT NULL DEFAULT 0",
            "ALTER TABLE members ADD COLUMN mention_message BIGINT",
            """
            CREATE TABLE mentions (
                user_id \(dialect.text) NOT NULL, message_id BIGINT NOT NULL, channel_id \(dialect.text) NOT NULL, seq BIGINT NOT NULL,
                mention_seq BIGINT NOT NULL, PRIMARY KEY (user_id, message_id, channel_id)
            ) \(dialect.clusteredTable)
            """,
            "CREATE INDEX mentions_by_position ON mentions (user_id, channel_id, mention_seq)",
            """
            CREATE TABLE channel_mentions (
                channel_id \(dialect.text) NOT NULL, seq BIGINT NOT NULL, change_seq BIGINT NOT NULL, mention_seq BIGINT,
                sender_id \(dialect.text) NOT NULL, PRIMARY KEY (channel_id, seq)
            ) \(dialect.clusteredTable)
            """,
            "CREATE INDEX channel_mentions_by_change ON channel_mentions (channel_id, change_seq)",
            "CREATE INDEX channel_mentions_by_position ON channel_mentions (channel_id, mention_seq) WHERE mention_seq IS NOT NULL",
        ]
    }

    /// For a channel mention, the place of the previous one by another sender; unknown for mentions of earlier versions.
    @Sendable static func mentionsByOthers(_ dialect: Dialect) -> [SQL] {
        ["ALTER TABLE channel_mentions ADD COLUMN other_mention_seq BIGINT"]
    }

    /// Indexes only the changed channel mentions; the others are found by their message. So a new one writes one B-tree less.
    @Sendable static func changedMentions(_ dialect: Dialect) -> [SQL] {
        [
            "DROP INDEX channel_mentions_by_change",
            "CREATE INDEX channel_mentions_by_change ON channel_mentions (channel_id, change_seq) WHERE change_seq > seq",
        ]
    }
}
