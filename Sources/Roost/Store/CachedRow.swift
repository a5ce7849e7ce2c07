import Foundation
import GRDB
import RoostAPI

/// A kind of row as the cache keeps it.
///
/// A kind's conformance is in its feature's folder. By default a kind is kept in a table of the common shape: by channel and key, newer rows
/// replacing older ones, without rows about messages that are concealed from the user or permanently deleted.
protocol CachedRow: StreamRow {
    /// The statements that create the kind's tables and indexes.
    static var schema: String { get }

    /// Saves rows of a stream, replacing older ones.
    static func save(_ rows: [Self], of stream: StreamID, as user: UserID, in database: Database) throws

    /// Forgets the rows of a channel that starts over or is no longer followed.
    static func forget(_ channel: ChannelID, as user: UserID, in database: Database) throws

    /// Deletes rows about messages of a channel that are concealed from the user or permanently deleted.
    static func forget(messages: ClosedRange<Seq>, in channel: ChannelID, _ database: Database) throws

    /// Notes what live objects must reread after rows of the kind were written: by default only the stream's channel.
    static func note(_ rows: [Self], of stream: StreamID, in change: inout StoreChange)
}

extension CachedRow {
    static var schema: String {
        """
        CREATE TABLE \(kind) (
            channel_id TEXT NOT NULL, key TEXT NOT NULL, stamp INTEGER NOT NULL, about_message INTEGER, json BLOB NOT NULL,
            PRIMARY KEY (channel_id, key)
        ) WITHOUT ROWID;
        """
    }

    static func save(_ rows: [Self], of stream: StreamID, as user: UserID, in database: Database) throws {
        guard case .channel(let channel) = stream else { return }
        for row in rows {
            try database.run(
                """
                INSERT INTO \(kind) (channel_id, key, stamp, about_message, json)
                SELECT ?1, ?2, ?3, ?4, ?5
                WHERE ?4 IS NULL
                      OR (?4 > COALESCE((SELECT history_floor FROM memberships WHERE channel_id = ?1 AND is_member = 1), 0)
                          AND NOT EXISTS (SELECT 1 FROM purged WHERE channel_id = ?1 AND seq = ?4))
                ON CONFLICT (channel_id, key) DO UPDATE
                SET stamp = excluded.stamp, about_message = excluded.about_message, json = excluded.json
                WHERE excluded.stamp >= stamp
                """, [channel.rawValue, row.key, row.stamp, row.aboutMessage, try StoredJSON.encode(row)])
        }
    }

    static func forget(_ channel: ChannelID, as user: UserID, in database: Database) throws {
        try database.run("DELETE FROM \(kind) WHERE channel_id = ?", [channel.rawValue])
    }

    static func forget(messages: ClosedRange<Seq>, in channel: ChannelID, _ database: Database) throws {
        try database.run(
            "DELETE FROM \(kind) WHERE channel_id = ? AND about_message BETWEEN ? AND ?",
            [channel.rawValue, messages.lowerBound, messages.upperBound])
    }

    static func note(_ rows: [Self], of stream: StreamID, in change: inout StoreChange) {}

    /// The cached rows of a channel, by their keys.
    static func cached(in channel: ChannelID, _ database: Database) throws -> [Self] {
        let rows: [Data] = try database.values("SELECT json FROM \(kind) WHERE channel_id = ? ORDER BY key", [channel])
        return try rows.map { try StoredJSON.decode(from: $0) }
    }
}

/// The kinds of rows as the cache keeps them, in the order of ``RowKinds``.
struct CachedRowKinds: Sendable {
    let kinds: RowKinds
    let all: [any CachedRow.Type]

    /// A kind without a conformance is left out; a test checks that there is none.
    init(_ kinds: RowKinds) {
        self.kinds = kinds
        all = kinds.all.compactMap { $0 as? any CachedRow.Type }
    }

    static let standard = CachedRowKinds(.standard)

    /// The statements that create the tables of all kinds.
    var schema: String { all.map { $0.schema }.joined(separator: "\n") }

    func save(_ rows: Rows, of stream: StreamID, as user: UserID, in database: Database) throws {
        func save<Row: CachedRow>(_ kind: Row.Type) throws {
            if let rows = rows[kind] { try kind.save(rows, of: stream, as: user, in: database) }
        }
        for kind in all { try save(kind) }
        for membership in rows.memberships ?? [] where membership.historyFloor > 0 {
            try forget(messages: 0...membership.historyFloor, in: membership.channelId, database)
        }
        guard case .channel(let channel) = stream else { return }
        for seq in rows.purgedMessages { try forget(messages: seq...seq, in: channel, database) }
    }

    func forget(messages: ClosedRange<Seq>, in channel: ChannelID, _ database: Database) throws {
        for kind in all { try kind.forget(messages: messages, in: channel, database) }
    }

    func forget(_ channel: ChannelID, as user: UserID, in database: Database) throws {
        for kind in all { try kind.forget(channel, as: user, in: database) }
    }

    func note(_ rows: Rows, of stream: StreamID, in change: inout StoreChange) {
        func note<Row: CachedRow>(_ kind: Row.Type) {
            if let rows = rows[kind] { kind.note(rows, of: stream, in: &change) }
        }
        for kind in all { note(kind) }
    }
}
