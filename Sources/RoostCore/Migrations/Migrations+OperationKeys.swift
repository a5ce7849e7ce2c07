/// The step for the keys that identify repeated calls.
extension Migrations {
    /// A user's key with the fingerprint of the call made with it. `operation_keys_by_age` finds the expired ones.
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
