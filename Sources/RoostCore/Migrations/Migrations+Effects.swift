/// The step for effects.
extension Migrations {
    /// - The primary key allows one effect per kind and key; `effects_by_due` finds those of a kind in the order in which they are due.
    /// - A dead one isn't in that index, and stays until it is requested again.
    @Sendable static func effects(_ dialect: Dialect) -> [SQL] {
        [
            """
            CREATE TABLE effects (
                kind \(dialect.text) NOT NULL, effect_key \(dialect.text) NOT NULL, payload TEXT NOT NULL, due_at BIGINT NOT NULL,
                revision BIGINT NOT NULL, attempts BIGINT NOT NULL, failure TEXT, dead_at BIGINT, PRIMARY KEY (kind, effect_key)
            ) \(dialect.clusteredTable)
            """,
            "CREATE INDEX effects_by_due ON effects (kind, due_at) WHERE dead_at IS NULL",
            "CREATE INDEX effects_dead ON effects (dead_at) WHERE dead_at IS NOT NULL",
            // Existing idempotency keys get an effect that deletes them, too.
            """
            INSERT INTO effects (kind, effect_key, payload, due_at, revision, attempts)
            SELECT \(EffectKind.Name.expireIdempotencyKeys.rawValue), '', '', 0, 0, 0
            WHERE EXISTS (SELECT 1 FROM idempotency_keys)
            """,
        ]
    }
}
