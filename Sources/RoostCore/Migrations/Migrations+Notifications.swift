/// The step for channels whose notifications users mute.
extension Migrations {
    /// `members_by_user` has all the columns that totals and lists need of a user's own row.
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
