import RoostAPI

/// The step 0005.
extension Migrations {
    /// The subjects without access: deactivated users, users whose older tokens are revoked, and single tokens.
    ///
    /// Each change takes the next number of `access_head`. A node that knows the changes up to one number finds those after it by an index.
    @Sendable static func access(_ dialect: Dialect) -> [SQL] {
        [
            "ALTER TABLE users ADD COLUMN deactivated_at BIGINT",
            "ALTER TABLE users ADD COLUMN tokens_valid_from BIGINT",
            "ALTER TABLE users ADD COLUMN access_revision BIGINT NOT NULL DEFAULT 0",
            "CREATE INDEX users_by_access ON users (access_revision) WHERE access_revision > 0",
            """
            CREATE TABLE revoked_tokens (
                token_id \(dialect.text) NOT NULL PRIMARY KEY, expires_at BIGINT NOT NULL, revision BIGINT NOT NULL
            ) \(dialect.clusteredTable)
            """,
            "CREATE INDEX revoked_tokens_by_revision ON revoked_tokens (revision)",
            "CREATE INDEX revoked_tokens_by_end ON revoked_tokens (expires_at)",
            "CREATE TABLE access_head (id BIGINT NOT NULL PRIMARY KEY, revision BIGINT NOT NULL)",
        ]
    }

    /// Shuts out the nodes of the former version, which would write messages and heads without the columns of the steps after this one.
    ///
    /// With several writers every transaction reads this table before anything else. Renaming it waits for those under way, since they
    /// have read it, and has every later one of such a node fail: it refuses all operations. A later step that the version before
    /// it can't write beside renames the table again, as the first of its steps: holding other locks by then, it could deadlock.
    @Sendable static func oneVersion(_ dialect: Dialect) -> [SQL] { ["ALTER TABLE access_head RENAME TO access_revisions"] }
}
