/// The step for drafts.
extension Migrations {
    /// A removed draft stays as a row without text, so the user's other devices learn of the removal. `drafts_by_change` finds
    /// missed changes, and lists drafts.
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
