import Foundation
import GRDB
import RoostAPI

extension User: CachedRow {
    static let schema =
        "CREATE TABLE users (user_id TEXT PRIMARY KEY NOT NULL, version INTEGER NOT NULL, json BLOB NOT NULL) WITHOUT ROWID;"

    static func save(_ rows: [User], of stream: StreamID, as user: UserID, in database: Database) throws {
        for user in rows {
            try database.run(
                """
                INSERT INTO users (user_id, version, json) VALUES (?, ?, ?)
                ON CONFLICT (user_id) DO UPDATE SET version = excluded.version, json = excluded.json
                WHERE excluded.version >= version
                """, [user.userId.rawValue, user.version, try StoredJSON.encode(user)])
        }
    }

    // A user belongs to no channel.
    static func forget(_ channel: ChannelID, as user: UserID, in database: Database) throws {}
    static func forget(messages: ClosedRange<Seq>, in channel: ChannelID, _ database: Database) throws {}
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
    func user(_ id: UserID) throws -> User? {
        let statement = try cachedStatement(sql: "SELECT json FROM users WHERE user_id = ?")
        return try Data.fetchOne(statement, arguments: [id.rawValue]).map { try StoredJSON.decode(from: $0) }
    }

    /// Returns the user's preferences, as they will be with what is on its way; the defaults if none are known.
    func preferences() throws -> Preferences {
        let statement = try cachedStatement(sql: "SELECT json FROM preferences")
        let stored = try Data.fetchOne(statement).map { try StoredJSON.decode(Preferences.self, from: $0) } ?? Preferences()
        return try overlay(of: nil)?.preferences?.applied(to: stored) ?? stored
    }
}

extension UpdatePreferences {
    /// This update with what a later one replaces.
    func followed(by later: UpdatePreferences) -> UpdatePreferences {
        UpdatePreferences(autoAcceptInvitations: later.autoAcceptInvitations ?? autoAcceptInvitations)
    }

    func applied(to preferences: Preferences) -> Preferences {
        Preferences(autoAcceptInvitations: autoAcceptInvitations ?? preferences.autoAcceptInvitations)
    }
}
