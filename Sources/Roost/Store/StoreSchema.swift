import GRDB

extension Store {
    /// The schema. Models are kept as JSON; beside it stand only the columns that are searched, sorted or changed on their own.
    ///
    /// A cache is never carried over to another schema: it is dropped, and fetched again.
    static var schema: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { _ in }
        for earlier in ["2", "3", "4"] { migrator.registerMigration(earlier) { _ in } }
        // "3" folds more letters in the keys by which names are found and sorted; "4" has the versions of profiles; "5" knows of messages that
        // the user wasn't given.
        migrator.registerMigration("5") { database in
            let tables = [
                "state", "positions", "channels", "channel_attributes", "memberships", "capabilities", "messages", "members",
                "invitations", "users", "preferences",
            ]
            for table in tables { try database.execute(sql: "DROP TABLE IF EXISTS \(table)") }
            try database.execute(sql: streams + channels + rows)
        }
        return migrator
    }

    private static let streams = """
        CREATE TABLE state (id INTEGER PRIMARY KEY CHECK (id = 1), epoch TEXT, user_cursor INTEGER NOT NULL);
        INSERT INTO state (id, user_cursor) VALUES (1, 0);
        CREATE TABLE positions (
            channel_id TEXT PRIMARY KEY NOT NULL, cursor INTEGER NOT NULL, window_start INTEGER NOT NULL,
            message_count INTEGER, has_hole INTEGER NOT NULL
        ) WITHOUT ROWID;
        """

    /// A list of channels reads every row of `channels` and the index of `memberships`: both are narrow, and the JSON stands
    /// elsewhere.
    private static let channels = """
        CREATE TABLE channels (
            channel_id TEXT PRIMARY KEY NOT NULL, seq INTEGER NOT NULL, member_count INTEGER NOT NULL,
            message_count INTEGER NOT NULL, last_activity INTEGER NOT NULL, last_message_at INTEGER, list_at INTEGER NOT NULL,
            created_at INTEGER NOT NULL, created_by TEXT, type TEXT NOT NULL, custom_type TEXT, name_key TEXT NOT NULL,
            tags TEXT NOT NULL, is_public INTEGER NOT NULL, is_frozen INTEGER NOT NULL, is_deleted INTEGER NOT NULL
        ) WITHOUT ROWID;
        CREATE TABLE channel_attributes (channel_id TEXT PRIMARY KEY NOT NULL, json BLOB NOT NULL) WITHOUT ROWID;
        CREATE TABLE memberships (
            channel_id TEXT PRIMARY KEY NOT NULL, is_member INTEGER NOT NULL, read_count INTEGER NOT NULL, hidden TEXT NOT NULL,
            hidden_message_count INTEGER NOT NULL, history_floor INTEGER NOT NULL, json BLOB NOT NULL
        ) WITHOUT ROWID;
        CREATE INDEX memberships_listed ON memberships (is_member, channel_id, read_count, hidden, hidden_message_count);
        CREATE TABLE capabilities (channel_id TEXT PRIMARY KEY NOT NULL, json BLOB NOT NULL) WITHOUT ROWID;
        """

    private static let rows = """
        CREATE TABLE messages (
            channel_id TEXT NOT NULL, seq INTEGER NOT NULL, change_seq INTEGER NOT NULL, json BLOB NOT NULL,
            PRIMARY KEY (channel_id, seq)
        ) WITHOUT ROWID;
        CREATE TABLE members (
            channel_id TEXT NOT NULL, user_id TEXT NOT NULL, change_seq INTEGER NOT NULL, json BLOB NOT NULL,
            PRIMARY KEY (channel_id, user_id)
        ) WITHOUT ROWID;
        CREATE INDEX members_changed ON members (channel_id, change_seq);
        CREATE TABLE invitations (
            channel_id TEXT NOT NULL, user_id TEXT NOT NULL, inviter TEXT NOT NULL, revision INTEGER NOT NULL,
            is_waiting INTEGER NOT NULL, invited_at INTEGER NOT NULL, json BLOB NOT NULL,
            PRIMARY KEY (channel_id, user_id, inviter)
        ) WITHOUT ROWID;
        CREATE INDEX invitations_waiting ON invitations (is_waiting, invited_at, channel_id);
        CREATE TABLE users (user_id TEXT PRIMARY KEY NOT NULL, version INTEGER NOT NULL, json BLOB NOT NULL) WITHOUT ROWID;
        CREATE TABLE preferences (id INTEGER PRIMARY KEY CHECK (id = 1), json BLOB NOT NULL);
        """
}
