import RoostAPI

/// Step 0005.
extension Migrations {
    /// The subjects without access: deactivated users, users whose older tokens are revoked, and single tokens.
    ///
    /// Each change takes the next number of `access_head`. A node that knows the changes up to one number finds the later ones by an index.
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

    /// Shuts out nodes of the previous version, which would write messages and heads without the columns of the following steps.
    ///
    /// With several writers every transaction reads this table first. Renaming it waits for transactions in progress, since
    /// they have read it, and makes every later one of such a node fail: the node refuses all operations. A later step that the
    /// previous version can't write beside must rename the table again before any other step: holding other locks by then, it
    /// could deadlock.
    ///
    /// No later step has done so yet: a node of a build that has this step isn't shut out by those after it, and must be stopped before the upgrade.
    @Sendable static func oneVersion(_ dialect: Dialect) -> [SQL] { ["ALTER TABLE access_head RENAME TO access_revisions"] }
}
