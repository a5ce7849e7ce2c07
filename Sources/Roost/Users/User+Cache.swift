import Foundation
import GRDB
import RoostAPI

/// The user's own profile, which is kept whole. What lists show of it is among that of all users.
extension User: CachedRow {
    static let schema = """
        CREATE TABLE users (\(UserSummary.cacheColumns), PRIMARY KEY (user_id)) WITHOUT ROWID;
        CREATE TABLE profile (user_id TEXT PRIMARY KEY NOT NULL, version INTEGER NOT NULL, json BLOB NOT NULL) WITHOUT ROWID;
        """

    static func save(_ rows: [User], of stream: StreamID, as user: UserID, in database: Database) throws {
        for user in rows {
            try database.run(
                """
                INSERT INTO profile (user_id, version, json) VALUES (?, ?, ?)
                ON CONFLICT (user_id) DO UPDATE SET version = excluded.version, json = excluded.json
                WHERE excluded.version >= version
                """, [user.userId.rawValue, user.version, try StoredJSON.encode(user)])
        }
        _ = try database.save(rows.map(\.summary))
    }

    // A user belongs to no channel.
    static func forget(_ channel: ChannelID, as user: UserID, in database: Database) throws {}
    static func forget(messages: ClosedRange<Seq>, in channel: ChannelID, _ database: Database) throws {}

    static func note(_ rows: [User], of stream: StreamID, in change: inout StoreChange) {
        change.users.formUnion(rows.map(\.userId))
    }
}

extension UserSummary: CachedModel {
    // derived: cache columns
    static let cacheColumns: CacheColumns = "user_id, display_name, avatar_file_id, status, version"

    // derived: init(cached:)
    init(cached row: inout CacheReader) throws {
        try self.init(
            userId: row.value(), displayName: row.value(), avatarFileId: row.value(), status: row.value(), version: row.value())
    }

    // derived: cache(in:)
    func cache(in row: inout CacheWriter) throws {
        try row.put(userId)
        try row.put(displayName)
        try row.put(avatarFileId)
        try row.put(status)
        try row.put(version)
    }
}

/// The user's own.
extension Preferences: CachedRow {
    static let schema = "CREATE TABLE preferences (id INTEGER PRIMARY KEY CHECK (id = 1), json BLOB NOT NULL);"

    static func save(_ rows: [Preferences], of stream: StreamID, as user: UserID, in database: Database) throws {
        for preferences in rows {
            try database.run("INSERT OR REPLACE INTO preferences (id, json) VALUES (1, ?)", [try StoredJSON.encode(preferences)])
        }
    }

    static func forget(_ channel: ChannelID, as user: UserID, in database: Database) throws {}
    static func forget(messages: ClosedRange<Seq>, in channel: ChannelID, _ database: Database) throws {}

    static func note(_ rows: [Preferences], of stream: StreamID, in change: inout StoreChange) { change.isOwn = true }
}

extension Database {
    /// The user's own profile; nil before it came.
    func profile(of id: UserID) throws -> User? {
        try json("SELECT json FROM profile WHERE user_id = ?", [id])
    }

    /// What lists show of a user: the id alone of one who isn't known here.
    func summary(of id: UserID) throws -> UserSummary {
        try model(Self.queryOfUser, [id.rawValue]) ?? UserSummary(userId: id)
    }

    private static let queryOfUser = "SELECT \(UserSummary.cacheColumns) FROM users WHERE user_id = ?"

    /// Saves what lists show of users, where it is newer than what is there.
    ///
    /// - Returns: The users of whom something else is shown now.
    func save(_ users: [UserSummary]) throws -> [UserID] {
        try users.compactMap { user in
            try run(Self.upsertOfUser) { try $0.put(user) }
            return changesCount > 0 ? user.userId : nil
        }
    }

    private static let upsertOfUser = """
        INSERT INTO users (\(UserSummary.cacheColumns)) VALUES (\(UserSummary.cacheColumns.placeholders))
        ON CONFLICT (user_id) DO UPDATE SET \(UserSummary.cacheColumns.replaced) WHERE excluded.version > version
        """

    /// Returns the user's preferences, as they will be with what is on its way; the defaults if none are known.
    func preferences() throws -> Preferences {
        let stored: Preferences = try json("SELECT json FROM preferences") ?? Preferences()
        return try overlay(of: nil)?.preferences.map(stored.applying) ?? stored
    }
}

extension UpdatePreferences {
    /// This update with what a later one replaces.
    func followed(by later: UpdatePreferences) -> UpdatePreferences {
        UpdatePreferences(
            autoAcceptInvitations: later.autoAcceptInvitations ?? autoAcceptInvitations,
            sharesTyping: later.sharesTyping ?? sharesTyping,
            sharesReading: later.sharesReading ?? sharesReading,
            sharesDelivery: later.sharesDelivery ?? sharesDelivery, sharesPresence: later.sharesPresence ?? sharesPresence)
    }
}
