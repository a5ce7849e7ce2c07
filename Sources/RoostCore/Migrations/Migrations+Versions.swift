/// The step for names and versions.
extension Migrations {
    /// - `channel_names` holds every name of a channel: its id, and `type:id`. The primary key keeps two channels from having
    ///   the same name, whichever nodes create them.
    /// - `version` counts the changes of a profile: a clock can't decide which of two is newer.
    @Sendable static func namesAndVersions(_ dialect: Dialect) -> [SQL] {
        [
            """
            CREATE TABLE channel_names (
                name \(dialect.text) NOT NULL PRIMARY KEY, channel_id \(dialect.text) NOT NULL
            ) \(dialect.clusteredTable)
            """,
            "INSERT INTO channel_names (name, channel_id) SELECT channel_id, channel_id FROM channels",
            // If two channels already share a name, the one whose id it is keeps it.
            """
            INSERT INTO channel_names (name, channel_id) SELECT type || ':' || channel_id, channel_id FROM channels WHERE 1 = 1
            ON CONFLICT (name) DO NOTHING
            """,
            "ALTER TABLE users ADD COLUMN version BIGINT NOT NULL DEFAULT 1",
        ]
    }
}
