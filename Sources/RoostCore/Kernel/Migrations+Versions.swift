/// The step of names and versions.
extension Migrations {
    /// - `channel_names` holds every name that a channel answers to: its id, and `type:id`. The primary key is what keeps two channels from
    ///   answering to one name, whichever nodes create them.
    /// - `version` counts the changes of a profile: which of two is newer mustn't be read from a clock.
    @Sendable static func namesAndVersions(_ dialect: Dialect) -> [SQL] {
        [
            """
            CREATE TABLE channel_names (
                name \(dialect.text) NOT NULL PRIMARY KEY, channel_id \(dialect.text) NOT NULL
            ) \(dialect.clusteredTable)
            """,
            "INSERT INTO channel_names (name, channel_id) SELECT channel_id, channel_id FROM channels",
            // Where two channels answer to one name already, it stays that of the one whose id it is.
            """
            INSERT INTO channel_names (name, channel_id) SELECT type || ':' || channel_id, channel_id FROM channels WHERE 1 = 1
            ON CONFLICT (name) DO NOTHING
            """,
            "ALTER TABLE users ADD COLUMN version BIGINT NOT NULL DEFAULT 1",
        ]
    }
}
