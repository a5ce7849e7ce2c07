/// The step for the kinds of rows in a channel.
extension Migrations {
    /// `channel_heads.row_kinds` has a bit for each kind of rows that the channel's stream has or has had, among the kinds that
    /// use a bit. A kind whose bit isn't set takes no look-up. Invitations are the first.
    @Sendable static func rowKinds(_ dialect: Dialect) -> [SQL] {
        [
            "ALTER TABLE channel_heads ADD COLUMN row_kinds BIGINT NOT NULL DEFAULT 0",
            """
            UPDATE channel_heads SET row_kinds = 1
            WHERE channel_id IN (SELECT channel_id FROM invitations WHERE channel_seq > 0)
            """,
        ]
    }
}
