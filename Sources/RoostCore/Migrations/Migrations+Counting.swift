/// The step for counting messages.
extension Migrations {
    /// - `messages.ordinal` numbers the messages that count; `counts` says whether a message is one of them. All earlier messages are.
    /// - `channel_heads.ordinal` is the ordinal of the newest of them, and never falls; `message_count` is the number of messages.
    @Sendable static func whatCounts(_ dialect: Dialect) -> [SQL] {
        [
            "ALTER TABLE messages ADD COLUMN counts BIGINT NOT NULL DEFAULT 1",
            "ALTER TABLE channel_heads ADD COLUMN ordinal BIGINT NOT NULL DEFAULT 0",
            "UPDATE channel_heads SET ordinal = message_count",
        ]
    }
}
