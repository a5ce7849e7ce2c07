import RoostAPI

/// Step 0003.
extension Migrations {
    /// The columns of channels, memberships and invitations of every kind; types, roles and idempotency keys.
    ///
    /// - `channel_heads` gets the deletion of its channel and the time of its newest message, and `members_by_user` carries the
    ///   columns that a list of channels sorts and counts by: a page out of 10,000 channels reads two narrow rows for each and
    ///   no attributes.
    /// - `name_key` is a display name as searches compare it; `name_grams` finds the names that contain three letters.
    /// - An invitation has a stamp for each stream that carries it: the invited user's, the inviter's and, if members get invitations, the channel's.
    @Sendable static func channelsOfEveryKind(_ dialect: Dialect) -> [SQL] {
        additions(dialect) + backfill + tables(dialect) + findingIndexes
    }

    /// New columns of existing tables, with their indexes.
    private static func additions(_ dialect: Dialect) -> [SQL] {
        [
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
    }

    /// The values of the new columns for existing channels.
    private static let backfill: [SQL] = [
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

    private static func tables(_ dialect: Dialect) -> [SQL] {
        [
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
    }

    /// The channels that non-members find, in the orders in which they are walked: those for everyone, those for the app's
    /// moderators, and deleted ones. So no walk passes channels that its caller may not know of.
    private static let findingIndexes: [SQL] = [
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

    /// Indexes existing names by their parts.
    @Sendable static func indexNames(_ transaction: any Transaction) throws {
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
