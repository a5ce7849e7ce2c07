/// The steps of what users let others know of them.
extension Migrations {
    @Sendable static func sharing(_ dialect: Dialect) -> [SQL] {
        [
            "ALTER TABLE users ADD COLUMN shares_typing BIGINT NOT NULL DEFAULT 1",
            "ALTER TABLE users ADD COLUMN shares_reading BIGINT NOT NULL DEFAULT 1",
        ]
    }

    @Sendable static func sharingPresence(_ dialect: Dialect) -> [SQL] {
        ["ALTER TABLE users ADD COLUMN shares_presence BIGINT NOT NULL DEFAULT 1"]
    }

    @Sendable static func status(_ dialect: Dialect) -> [SQL] { ["ALTER TABLE users ADD COLUMN status TEXT"] }
}
