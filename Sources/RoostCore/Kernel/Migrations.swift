import RoostAPI

/// The tables, step by step. A step that has shipped is never changed; a change is a new step.
///
/// - `users` and `channels` hold attributes; what changes with every message stands apart in `user_heads` and `channel_heads`, so that
///   sending doesn't rewrite 100 kB of metadata. The row of a head is also the lock that gives a stream its one order.
/// - Every row carries the seq of its newest change in the stream that it belongs to: `change_seq` in the channel's, `user_seq` in the
///   user's. That stamp is all that a client needs to catch up, so that there is no log of events.
/// - Times are Unix milliseconds, flags 0 or 1, JSON is text that no statement looks into.
public enum Migrations {
    public struct Step: Sendable {
        public let name: String
        /// The statements of the step, in the words of an engine.
        public let statements: @Sendable (Dialect) -> [SQL]
        /// What they can't do: filling what the rules compute.
        var fill: @Sendable (any Transaction) throws -> Void = { _ in }
    }

    public static let steps: [Step] = [
        Step(name: "0001 foundation", statements: foundation), Step(name: "0002 stays", statements: stays),
        Step(name: "0003 channels of every kind", statements: channelsOfEveryKind, fill: indexNames),
    ]

    /// Brings the tables up to date. Whoever calls it keeps others from doing so at the same time.
    ///
    /// - Throws: ``NewerDatabase`` when a newer version of Roost has been here.
    public static func apply(in transaction: any Transaction) throws {
        try transaction.execute("CREATE TABLE IF NOT EXISTS migrations (name TEXT NOT NULL PRIMARY KEY)")
        let done = Set(try transaction.rows("SELECT name FROM migrations") { $0.string() })
        let unknown = done.subtracting(steps.map(\.name)).sorted()
        guard unknown.isEmpty else { throw NewerDatabase(steps: unknown) }
        for step in steps where !done.contains(step.name) {
            for statement in step.statements(transaction.dialect) { try transaction.execute(statement) }
            try step.fill(transaction)
            try transaction.execute("INSERT INTO migrations (name) VALUES (\(step.name))")
        }
    }

    /// The database has tables that this version doesn't know.
    public struct NewerDatabase: Error, CustomStringConvertible {
        public let steps: [String]
        public var description: String {
            "The database was written by a newer version of Roost (\(steps.joined(separator: ", "))). Start that one."
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

    /// Where a member's present stay began, in the channel's stream and in the user's: who followed the channel before begins anew there.
    @Sendable private static func stays(_ dialect: Dialect) -> [SQL] {
        [
            "ALTER TABLE members ADD COLUMN joined_seq BIGINT NOT NULL DEFAULT 0",
            "ALTER TABLE members ADD COLUMN joined_user_seq BIGINT NOT NULL DEFAULT 0",
            "UPDATE members SET joined_seq = change_seq",
        ]
    }

    /// What channels, memberships and invitations of every kind need; types, roles and idempotency keys.
    ///
    /// - `channel_heads` learns whether its channel is deleted and when its newest message came, and `members_by_user` carries what a list of
    ///   channels sorts and counts by: so that a page out of 10,000 channels reads two narrow rows for each and no attributes.
    /// - `name_key` is a display name as searches compare it; `name_grams` finds the names that hold three letters.
    /// - The stamps of an invitation are those of the streams that tell of it: the invited's, the inviter's and, where members hear of
    ///   it, the channel's.
    @Sendable private static func channelsOfEveryKind(_ dialect: Dialect) -> [SQL] {
        let additions: [SQL] = [
            "ALTER TABLE channels ADD COLUMN cover_url TEXT",
            "ALTER TABLE channels ADD COLUMN custom_type \(dialect.text)",
            "ALTER TABLE channels ADD COLUMN data TEXT",
            "ALTER TABLE channels ADD COLUMN metadata_version BIGINT NOT NULL DEFAULT 0",
            "ALTER TABLE channels ADD COLUMN metadata_updated_by TEXT",
            "ALTER TABLE channels ADD COLUMN is_ephemeral BIGINT NOT NULL DEFAULT 0",
            "ALTER TABLE channels ADD COLUMN discovery \(dialect.text) NOT NULL DEFAULT 'everyone'",
            "ALTER TABLE channels ADD COLUMN joining \(dialect.text) NOT NULL DEFAULT 'everyone'",
            "ALTER TABLE channels ADD COLUMN policy TEXT",
            "ALTER TABLE channels ADD COLUMN is_frozen BIGINT NOT NULL DEFAULT 0",
            "ALTER TABLE channels ADD COLUMN rate_limit_window BIGINT",
            "ALTER TABLE channels ADD COLUMN distinct_key \(dialect.text)",
            "ALTER TABLE channels ADD COLUMN name_key \(dialect.text) NOT NULL DEFAULT ''",
            "CREATE UNIQUE INDEX channels_by_distinct ON channels (distinct_key) WHERE distinct_key IS NOT NULL",
            "CREATE INDEX channels_by_type ON channels (type, created_at, channel_id)",
            "CREATE INDEX channels_by_custom_type ON channels (custom_type, created_at, channel_id) WHERE custom_type IS NOT NULL",
            "CREATE INDEX channels_by_creator ON channels (created_by, created_at, channel_id)",
            "ALTER TABLE channel_heads ADD COLUMN is_deleted BIGINT NOT NULL DEFAULT 0",
            "ALTER TABLE channel_heads ADD COLUMN last_message_at BIGINT",
            "ALTER TABLE channel_heads ADD COLUMN list_at BIGINT NOT NULL DEFAULT 0",
            "ALTER TABLE channel_heads ADD COLUMN discovery \(dialect.text) NOT NULL DEFAULT 'everyone'",
            "ALTER TABLE users ADD COLUMN auto_accept BIGINT NOT NULL DEFAULT 1",
            "ALTER TABLE users ADD COLUMN name_key \(dialect.text) NOT NULL DEFAULT ''",
            "ALTER TABLE members ADD COLUMN history_floor BIGINT NOT NULL DEFAULT 0",
            "ALTER TABLE members ADD COLUMN hidden \(dialect.text) NOT NULL DEFAULT 'unhidden'",
            "ALTER TABLE members ADD COLUMN hidden_count BIGINT NOT NULL DEFAULT 0",
            "ALTER TABLE members ADD COLUMN muted_until BIGINT",
            "ALTER TABLE members ADD COLUMN banned_until BIGINT",
            "DROP INDEX members_by_user",
            "CREATE INDEX members_by_user ON members (user_id, state, channel_id, read_count, hidden, hidden_count)",
            "CREATE INDEX members_by_joining ON members (channel_id, state, joined_seq, user_id)",
            "CREATE INDEX members_by_role ON members (channel_id, role, joined_seq, user_id) WHERE role <> 'member'",
            "CREATE INDEX members_muted ON members (channel_id, joined_seq, user_id) WHERE muted_until IS NOT NULL",
            "CREATE INDEX members_banned ON members (channel_id, joined_seq, user_id) WHERE banned_until IS NOT NULL",
            "CREATE INDEX members_by_role_and_id ON members (channel_id, role, user_id) WHERE role <> 'member'",
            "CREATE INDEX members_muted_by_id ON members (channel_id, user_id) WHERE muted_until IS NOT NULL",
            "CREATE INDEX members_banned_by_id ON members (channel_id, user_id) WHERE banned_until IS NOT NULL",
        ]
        let takingOver: [SQL] = [
            """
            UPDATE channel_heads
            SET is_deleted = (SELECT CASE WHEN c.deleted_at IS NULL THEN 0 ELSE 1 END FROM channels c
                              WHERE c.channel_id = channel_heads.channel_id),
                last_message_at = (SELECT MAX(m.created_at) FROM messages m WHERE m.channel_id = channel_heads.channel_id),
                list_at = COALESCE(
                    (SELECT MAX(m.created_at) FROM messages m WHERE m.channel_id = channel_heads.channel_id),
                    (SELECT c.created_at FROM channels c WHERE c.channel_id = channel_heads.channel_id))
            """
        ]
        let tables: [SQL] = [
            """
            CREATE TABLE channel_tags (
                tag \(dialect.text) NOT NULL, channel_id \(dialect.text) NOT NULL, PRIMARY KEY (tag, channel_id)
            ) \(dialect.clusteredTable)
            """,
            """
            CREATE TABLE name_grams (
                kind \(dialect.text) NOT NULL, gram \(dialect.text) NOT NULL, id \(dialect.text) NOT NULL, PRIMARY KEY (kind, gram, id)
            ) \(dialect.clusteredTable)
            """,
            """
            CREATE TABLE invitations (
                channel_id \(dialect.text) NOT NULL, user_id \(dialect.text) NOT NULL, inviter_id \(dialect.text) NOT NULL, welcome TEXT,
                role \(dialect.text) NOT NULL, state \(dialect.text) NOT NULL, invited_at BIGINT NOT NULL, invited_seq BIGINT NOT NULL, ended_at BIGINT,
                revision BIGINT NOT NULL, channel_seq BIGINT NOT NULL, user_seq BIGINT NOT NULL, inviter_seq BIGINT NOT NULL,
                PRIMARY KEY (channel_id, user_id, inviter_id)
            ) \(dialect.clusteredTable)
            """,
            "CREATE UNIQUE INDEX invitations_open ON invitations (channel_id, user_id) WHERE state = 'pending'",
            "CREATE INDEX invitations_pending ON invitations (channel_id, state, invited_seq, user_id)",
            "CREATE INDEX invitations_by_user ON invitations (user_id, state, invited_at, channel_id)",
            "CREATE INDEX invitations_by_change ON invitations (channel_id, channel_seq)",
            "CREATE INDEX invitations_by_user_seq ON invitations (user_id, user_seq)",
            "CREATE INDEX invitations_by_inviter_seq ON invitations (inviter_id, inviter_seq)",
            "CREATE TABLE channel_types (type \(dialect.text) NOT NULL PRIMARY KEY, policy TEXT NOT NULL)",
            "CREATE TABLE roles (role \(dialect.text) NOT NULL PRIMARY KEY, definition TEXT NOT NULL)",
            """
            CREATE TABLE idempotency_keys (
                user_id \(dialect.text) NOT NULL, request_key \(dialect.text) NOT NULL, request \(dialect.text) NOT NULL,
                channel_id \(dialect.text) NOT NULL, created_at BIGINT NOT NULL, PRIMARY KEY (user_id, request_key)
            ) \(dialect.clusteredTable)
            """,
            "CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at)",
        ]
        return additions + takingOver + tables + shelves
    }

    /// The channels that somebody finds who isn't a member, in the orders in which they are looked through: those for everyone, those for who
    /// keeps order, and the deleted ones. So nobody walks past channels that they may not know of.
    private static let shelves: [SQL] = [
        """
        CREATE INDEX channels_by_creation ON channels (created_at, channel_id)
        WHERE deleted_at IS NULL AND discovery = 'everyone'
        """,
        """
        CREATE INDEX channels_by_name ON channels (name_key, channel_id)
        WHERE deleted_at IS NULL AND discovery = 'everyone'
        """,
        """
        CREATE INDEX channel_heads_by_activity ON channel_heads (last_activity, channel_id)
        WHERE is_deleted = 0 AND discovery = 'everyone'
        """,
        """
        CREATE INDEX channels_kept_by_creation ON channels (created_at, channel_id)
        WHERE deleted_at IS NULL AND discovery <> 'everyone' AND discovery <> 'membersOnly'
        """,
        """
        CREATE INDEX channels_kept_by_name ON channels (name_key, channel_id)
        WHERE deleted_at IS NULL AND discovery <> 'everyone' AND discovery <> 'membersOnly'
        """,
        """
        CREATE INDEX channel_heads_kept_by_activity ON channel_heads (last_activity, channel_id)
        WHERE is_deleted = 0 AND discovery <> 'everyone' AND discovery <> 'membersOnly'
        """,
        """
        CREATE INDEX channels_deleted_by_creation ON channels (created_at, channel_id)
        WHERE deleted_at IS NOT NULL AND discovery <> 'membersOnly'
        """,
        """
        CREATE INDEX channels_deleted_by_name ON channels (name_key, channel_id)
        WHERE deleted_at IS NOT NULL AND discovery <> 'membersOnly'
        """,
        """
        CREATE INDEX channel_heads_deleted_by_activity ON channel_heads (last_activity, channel_id)
        WHERE is_deleted = 1 AND discovery <> 'membersOnly'
        """,
    ]

    /// Has the names that are there found by their parts.
    @Sendable private static func indexNames(_ transaction: any Transaction) throws {
        let users: [(UserID, String)] = try transaction.rows(
            "SELECT user_id, display_name FROM users WHERE display_name IS NOT NULL ORDER BY user_id"
        ) { ($0.identifier(), $0.string()) }
        for (user, name) in users {
            try transaction.perform("UPDATE users SET name_key = \(NameSearch.key(of: name)) WHERE user_id = \(user)")
            try transaction.indexName(.user, id: user.rawValue, before: nil, after: name)
        }
        let channels: [(ChannelID, String?, String)] = try transaction.rows(
            "SELECT channel_id, display_name, tags FROM channels ORDER BY channel_id"
        ) { ($0.identifier(), $0.optionalString(), $0.string()) }
        for (channel, name, tags) in channels {
            try transaction.perform("UPDATE channels SET name_key = \(NameSearch.key(of: name)) WHERE channel_id = \(channel)")
            try transaction.indexName(.channel, id: channel.rawValue, before: nil, after: name)
            try transaction.indexTags(of: channel, before: [], after: StoredJSON.decode([String].self, from: tags))
        }
    }
}
