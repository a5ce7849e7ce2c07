/// The step for memberships of deleted channels.
extension Migrations {
    /// `members.is_channel_deleted` marks memberships of deleted channels, so a scan of a user's channels skips them. It is set
    /// some time after the deletion (``EffectKind/markMemberships``), so `channel_heads.is_deleted` decides.
    @Sendable static func deletedMemberships(_ dialect: Dialect) -> [SQL] {
        [
            "ALTER TABLE members ADD COLUMN is_channel_deleted BIGINT NOT NULL DEFAULT 0",
            """
            UPDATE members SET is_channel_deleted = 1
            WHERE state = 'member' AND channel_id IN (SELECT channel_id FROM channel_heads WHERE is_deleted = 1)
            """,
            "DROP INDEX members_by_user",
            """
            CREATE INDEX members_by_user ON members (
                user_id, state, is_channel_deleted, channel_id, read_count, hidden, hidden_count, notifications_muted_until)
            """,
        ]
    }
}
