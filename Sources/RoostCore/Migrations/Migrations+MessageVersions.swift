/// The step for the contents of messages before they were edited or deleted.
extension Migrations {
    /// `message_versions_by_end` finds the expired ones.
    @Sendable static func messageVersions(_ dialect: Dialect) -> [SQL] {
        [
            """
            CREATE TABLE message_versions (
                channel_id \(dialect.text) NOT NULL, seq BIGINT NOT NULL, change_seq BIGINT NOT NULL, kept_until BIGINT NOT NULL,
                text TEXT NOT NULL, kind \(dialect.text) NOT NULL, custom_type TEXT, data TEXT, metadata TEXT, tags TEXT,
                parent_id BIGINT, mentionees TEXT, meta_arrays TEXT, push_option \(dialect.text) NOT NULL, target_languages TEXT,
                is_silent BIGINT NOT NULL, edited_at BIGINT, replaced_at BIGINT NOT NULL, replaced_by \(dialect.text) NOT NULL,
                is_deletion BIGINT NOT NULL, PRIMARY KEY (channel_id, seq, change_seq)
            ) \(dialect.clusteredTable)
            """,
            "CREATE INDEX message_versions_by_end ON message_versions (kept_until)",
        ]
    }
}
