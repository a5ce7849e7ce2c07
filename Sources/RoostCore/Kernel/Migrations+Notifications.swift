/// The step of channels that users mute for themselves.
extension Migrations {
    /// `members_by_user` has all that totals and lists ask of a user's own row.
    @Sendable static func mutedNotifications(_ dialect: Dialect) -> [SQL] {
        [
            "ALTER TABLE members ADD COLUMN notifications_muted_until BIGINT",
            "DROP INDEX members_by_user",
            """
            CREATE INDEX members_by_user
            ON members (user_id, state, channel_id, read_count, hidden, hidden_count, notifications_muted_until)
            """,
        ]
    }
}
