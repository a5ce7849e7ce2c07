/// The step for devices.
extension Migrations {
    /// One row per device of a user. Each sign-in after a sign-out has the next number; `signed_out` is the number of the last
    /// sign-in that was ended, with the number of that change of access as `revision`.
    @Sendable static func devices(_ dialect: Dialect) -> [SQL] {
        [
            """
            CREATE TABLE devices (
                user_id \(dialect.text) NOT NULL, device_id \(dialect.text) NOT NULL, name TEXT, platform TEXT, created_at BIGINT NOT NULL,
                last_used_at BIGINT NOT NULL, token_id TEXT, token_expires_at BIGINT, sign_in BIGINT NOT NULL, signed_out BIGINT NOT NULL,
                revision BIGINT NOT NULL, PRIMARY KEY (user_id, device_id)
            ) \(dialect.clusteredTable)
            """,
            "CREATE INDEX devices_by_revision ON devices (revision) WHERE revision > 0",
        ]
    }
}
