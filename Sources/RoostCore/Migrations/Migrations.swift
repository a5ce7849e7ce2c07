/// The tables, step by step. A step that has shipped is never changed; a change is a new step.
///
/// - `users` and `channels` hold attributes; the values that change with every message are kept separately in `user_heads` and
///   `channel_heads`, so sending doesn't rewrite 100 kB of metadata. A head's row is also the lock that gives a stream its
///   single order.
/// - Every row carries the seq of its newest change in the stream that it belongs to: `change_seq` in the channel's, `user_seq`
///   in the user's. That stamp is all that a client needs to catch up, so there is no log of events.
/// - Times are Unix milliseconds, flags 0 or 1, JSON is text that no statement parses.
/// - A new rule of a policy, a new value of one, such as an audience, and a new permission that roles can grant need a step too, although no column
///   changes: one that shuts out former nodes, as ``oneVersion(_:)`` does, and that a former version refuses to start on. Such a version writes policies
///   without the rules that it doesn't know, and can't read the values.
public enum Migrations {
    public struct Step: Sendable {
        public let name: String
        /// The statements of the step, in an engine's dialect.
        public let statements: @Sendable (Dialect) -> [SQL]
        /// Fills in values that the rules compute and statements can't.
        var fill: @Sendable (any Transaction) throws -> Void = { _ in }
    }

    public static let steps: [Step] = [
        Step(name: "0001 foundation", statements: foundation), Step(name: "0002 stays", statements: membershipPeriods),
        Step(name: "0003 channels of every kind", statements: channelsOfEveryKind, fill: indexNames),
        Step(name: "0004 letters and emptied channels", statements: emptiedChannels, fill: foldLetters),
        Step(name: "0005 access", statements: access),
        Step(name: "0006 names and versions", statements: namesAndVersions),
        Step(name: "0007 skeletons of names", statements: nameSkeletons, fill: fillSkeletons),
        Step(name: "0008 effects", statements: effects),
        // Before the steps after which nodes of the previous version must not write.
        Step(name: "0012 one version at a time", statements: oneVersion),
        Step(name: "0009 what counts", statements: whatCounts),
        Step(name: "0010 purged messages", statements: purging),
        Step(name: "0011 names of permissions", statements: permissionNames),
        Step(name: "0013 kinds of rows", statements: rowKinds),
        Step(name: "0014 operation keys", statements: operationKeys),
        Step(name: "0015 messages of every kind", statements: messagesOfEveryKind),
        Step(name: "0016 earlier versions", statements: messageVersions),
        Step(name: "0017 own deletions", statements: ownDeletions),
        Step(name: "0018 sharing", statements: sharing),
        Step(name: "0019 drafts", statements: drafts),
        Step(name: "0020 devices", statements: devices),
        Step(name: "0021 sharing presence", statements: sharingPresence),
        Step(name: "0022 status", statements: status),
        Step(name: "0023 muted notifications", statements: mutedNotifications),
        Step(name: "0024 last active", statements: lastActive),
        Step(name: "0025 mentions by others", statements: mentionsByOthers),
        Step(name: "0026 receipts", statements: receipts),
        Step(name: "0027 delivery", statements: delivery),
        Step(name: "0028 purged counts", statements: purgedCounts),
        Step(name: "0029 floors of joining", statements: joiningFloors),
        Step(name: "0030 memberships of deleted channels", statements: deletedMemberships),
        Step(name: "0031 names by letters", statements: { _ in [] }, fill: indexLetters),
        Step(name: "0032 changed mentions of channels", statements: changedMentions),
        Step(name: "0033 rows that move", statements: movedRows),
        Step(name: "0034 sent counts", statements: sentCounts),
        Step(name: "0035 composed names", statements: { _ in [] }, fill: composeNames),
    ]

    /// Brings the tables up to date. The caller must prevent concurrent calls.
    ///
    /// - Throws: ``NewerDatabase`` if a newer version of Roost has used the database.
    public static func apply(in transaction: any Transaction) throws {
        try transaction.execute("CREATE TABLE IF NOT EXISTS migrations (name TEXT NOT NULL PRIMARY KEY)")
        let done = try made(in: transaction)
        for step in steps where !done.contains(step.name) {
            for statement in step.statements(transaction.dialect) { try transaction.execute(statement) }
            try step.fill(transaction)
            try transaction.execute("INSERT INTO migrations (name) VALUES (\(step.name))")
        }
    }

    /// Returns the steps already applied to a database that has a table of them.
    ///
    /// - Throws: ``NewerDatabase`` if a newer version of Roost has used the database.
    @discardableResult
    public static func made(in transaction: any Transaction) throws -> Set<String> {
        let done = Set(try transaction.rows("SELECT name FROM migrations") { $0.string() })
        let unknown = done.subtracting(steps.map(\.name)).sorted()
        guard unknown.isEmpty else { throw NewerDatabase(steps: unknown) }
        return done
    }

    /// The database has steps that this version doesn't know.
    public struct NewerDatabase: Error, CustomStringConvertible {
        public let steps: [String]
        public var description: String {
            "The database was written by a newer version of Roost (\(steps.joined(separator: ", "))). Start that version."
        }
    }

    @Sendable private static func foundation(_ dialect: Dialect) -> [SQL] {
        [
            "CREATE TABLE settings (name \(dialect.text) NOT NULL PRIMARY KEY, value TEXT NOT NULL)",
            """
            CREATE TABLE users (
                user_id \(dialect.text) NOT NULL PRIMARY KEY, display_name TEXT, avatar_file_id TEXT, metadata TEXT,
                user_seq BIGINT NOT NULL, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL
            )
            """,
            "CREATE TABLE user_heads (user_id \(dialect.text) NOT NULL PRIMARY KEY, seq BIGINT NOT NULL) \(dialect.clusteredTable)",
            """
            CREATE TABLE channels (
                channel_id \(dialect.text) NOT NULL PRIMARY KEY, type \(dialect.text) NOT NULL, is_distinct BIGINT NOT NULL, display_name TEXT,
                avatar_file_id TEXT, metadata TEXT, tags TEXT NOT NULL, muted_until BIGINT, rate_limit BIGINT,
                rate_limited_until BIGINT, created_by TEXT, change_seq BIGINT NOT NULL, created_at BIGINT NOT NULL,
                updated_at BIGINT NOT NULL, deleted_at BIGINT
            )
            """,
            """
            CREATE TABLE channel_heads (
                channel_id \(dialect.text) NOT NULL PRIMARY KEY, seq BIGINT NOT NULL, member_count BIGINT NOT NULL,
                message_count BIGINT NOT NULL, last_activity BIGINT NOT NULL
            ) \(dialect.clusteredTable)
            """,
            """
            CREATE TABLE members (
                channel_id \(dialect.text) NOT NULL, user_id \(dialect.text) NOT NULL, role \(dialect.text) NOT NULL, state \(dialect.text) NOT NULL,
                joined_at BIGINT NOT NULL, change_seq BIGINT NOT NULL, user_seq BIGINT NOT NULL, read_seq BIGINT NOT NULL,
                read_count BIGINT NOT NULL, last_read_at BIGINT, last_sent_seq BIGINT NOT NULL,
                PRIMARY KEY (channel_id, user_id)
            ) \(dialect.clusteredTable)
            """,
            "CREATE INDEX members_by_user ON members (user_id, state, channel_id)",
            "CREATE INDEX members_by_user_seq ON members (user_id, user_seq)",
            "CREATE INDEX members_by_change ON members (channel_id, change_seq)",
            """
            CREATE TABLE messages (
                channel_id \(dialect.text) NOT NULL, seq BIGINT NOT NULL, message_id BIGINT NOT NULL, change_seq BIGINT NOT NULL,
                ordinal BIGINT NOT NULL, sender_id \(dialect.text) NOT NULL, client_id \(dialect.text) NOT NULL, text TEXT NOT NULL, custom_type TEXT,
                data TEXT, metadata TEXT, tags TEXT, parent_id BIGINT, created_at BIGINT NOT NULL, edited_at BIGINT,
                deleted_at BIGINT, PRIMARY KEY (channel_id, seq)
            ) \(dialect.clusteredTable)
            """,
            "CREATE UNIQUE INDEX messages_by_id ON messages (channel_id, message_id)",
            "CREATE UNIQUE INDEX messages_by_client ON messages (channel_id, sender_id, client_id)",
            "CREATE INDEX messages_by_change ON messages (channel_id, change_seq) WHERE change_seq > seq",
        ]
    }

    /// The positions at which a member's current membership began, in the channel's stream and in the user's: a client whose
    /// position is older fetches the channel again.
    @Sendable private static func membershipPeriods(_ dialect: Dialect) -> [SQL] {
        [
            "ALTER TABLE members ADD COLUMN joined_seq BIGINT NOT NULL DEFAULT 0",
            "ALTER TABLE members ADD COLUMN joined_user_seq BIGINT NOT NULL DEFAULT 0",
            "UPDATE members SET joined_seq = change_seq",
        ]
    }
}
