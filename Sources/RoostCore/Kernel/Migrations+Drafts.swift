/// The step of what users have begun to write.
extension Migrations {
    /// A draft that was removed stays as a row without a text, so that the user's other devices learn of it. `drafts_by_change` finds what they missed, and
    /// lists drafts.
    @Sendable static func drafts(_ dialect: Dialect) -> [SQL] {
        [
            """
            CREATE TABLE drafts (
                user_id \(dialect.text) NOT NULL, channel_id \(dialect.text) NOT NULL, text TEXT NOT NULL, metadata TEXT,
                updated_at BIGINT NOT NULL, user_seq BIGINT NOT NULL, PRIMARY KEY (user_id, channel_id)
            ) \(dialect.clusteredTable)
            """,
            "CREATE INDEX drafts_by_change ON drafts (user_id, user_seq)",
        ]
    }
}
