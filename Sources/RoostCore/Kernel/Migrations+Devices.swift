/// The step of devices.
extension Migrations {
    /// One row for each of a user's devices. Each time it signs in after it was signed out, the sign-in has the next number; `signed_out` is that of
    /// the last one that was ended, with the number of that change of access as `revision`.
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
