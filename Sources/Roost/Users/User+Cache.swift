import Foundation
import GRDB
import RoostAPI

/// The user's own profile. The cache keeps only its summary, beside those of other users.
extension User: CachedRow {
    static let schema = "CREATE TABLE users (\(UserSummary.cacheColumns), PRIMARY KEY (user_id)) WITHOUT ROWID;"

    static func save(_ rows: [User], of stream: StreamID, as user: UserID, in database: Database) throws {
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

/// The user's own preferences.
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
    /// A user's summary; only the id if the user isn't known on this device.
    func summary(of id: UserID) throws -> UserSummary {
        try model(Self.queryOfUser, [id.rawValue]) ?? UserSummary(userId: id)
    }

    private static let queryOfUser = "SELECT \(UserSummary.cacheColumns) FROM users WHERE user_id = ?"

    /// Saves summaries that are newer than the stored ones.
    ///
    /// - Returns: The users whose summaries have changed.
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

    /// Returns the user's preferences, including pending changes; the defaults if none are known.
    func preferences() throws -> Preferences {
        let stored: Preferences = try json("SELECT json FROM preferences") ?? Preferences()
        return try overlay(of: nil)?.preferences.map(stored.applying) ?? stored
    }
}

extension UpdatePreferences {
    /// This update merged with a later one.
    func followed(by later: UpdatePreferences) -> UpdatePreferences {
        UpdatePreferences(
            autoAcceptInvitations: later.autoAcceptInvitations ?? autoAcceptInvitations,
            sharesTyping: later.sharesTyping ?? sharesTyping,
            sharesReading: later.sharesReading ?? sharesReading,
            sharesDelivery: later.sharesDelivery ?? sharesDelivery, sharesPresence: later.sharesPresence ?? sharesPresence)
    }
}
