/// The step for messages that users delete for themselves.
extension Migrations {
    /// `own_deletions_by_change` finds what a user's devices missed, `own_deletions_by_message` the rows to delete with a
    /// message that is deleted for good.
    @Sendable static func ownDeletions(_ dialect: Dialect) -> [SQL] {
        [
            """
            CREATE TABLE own_deletions (
                user_id \(dialect.text) NOT NULL, channel_id \(dialect.text) NOT NULL, seq BIGINT NOT NULL, deleted_at BIGINT NOT NULL,
                user_seq BIGINT NOT NULL, PRIMARY KEY (user_id, channel_id, seq)
            ) \(dialect.clusteredTable)
            """,
            "CREATE INDEX own_deletions_by_change ON own_deletions (user_id, user_seq)",
            "CREATE INDEX own_deletions_by_message ON own_deletions (channel_id, seq)",
        ]
    }
}
