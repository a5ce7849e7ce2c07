/// The step of keys by which repeated calls are known.
extension Migrations {
    /// A key of a user with the fingerprint of the call that was made with it. `operation_keys_by_age` finds those that have expired.
    @Sendable static func operationKeys(_ dialect: Dialect) -> [SQL] {
        [
            """
            CREATE TABLE operation_keys (
                user_id \(dialect.text) NOT NULL, operation_key \(dialect.text) NOT NULL, request \(dialect.text) NOT NULL,
                made_at BIGINT NOT NULL, PRIMARY KEY (user_id, operation_key)
            ) \(dialect.clusteredTable)
            """,
            "CREATE INDEX operation_keys_by_age ON operation_keys (made_at)",
        ]
    }
}
