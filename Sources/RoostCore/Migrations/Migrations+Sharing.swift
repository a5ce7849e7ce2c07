/// The steps for what users share about themselves.
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

    /// Separate from `users`, whose rows may be large and are locked by others: this changes for every user who goes offline.
    @Sendable static func lastActive(_ dialect: Dialect) -> [SQL] {
        [
            """
            CREATE TABLE user_activity (user_id \(dialect.text) NOT NULL PRIMARY KEY, active_at BIGINT NOT NULL) \(dialect.clusteredTable)
            """
        ]
    }

    /// A member's shared read position, before they marked something as unread again.
    @Sendable static func receipts(_ dialect: Dialect) -> [SQL] {
        [
            "ALTER TABLE members ADD COLUMN receipt_seq BIGINT NOT NULL DEFAULT 0",
            "ALTER TABLE members ADD COLUMN receipt_count BIGINT NOT NULL DEFAULT 0",
        ]
    }

    /// The position up to which messages have reached a member's devices, where that is shared.
    @Sendable static func delivery(_ dialect: Dialect) -> [SQL] {
        [
            "ALTER TABLE members ADD COLUMN delivered_seq BIGINT NOT NULL DEFAULT 0",
            "ALTER TABLE members ADD COLUMN delivered_at BIGINT",
            "ALTER TABLE users ADD COLUMN shares_delivery BIGINT NOT NULL DEFAULT 1",
        ]
    }

    /// The part of a member's floor set on joining, which others may know: the rest was hidden by the member. Unknown for existing members.
    @Sendable static func joiningFloors(_ dialect: Dialect) -> [SQL] { ["ALTER TABLE members ADD COLUMN joined_floor BIGINT"] }

    @Sendable static func status(_ dialect: Dialect) -> [SQL] { ["ALTER TABLE users ADD COLUMN status TEXT"] }
}
