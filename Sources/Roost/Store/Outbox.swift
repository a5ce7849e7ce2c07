import Foundation
import GRDB
import Logging
import NIOConcurrencyHelpers
import RoostAPI

/// The messages that the server hasn't taken yet: a file of its own, because unlike the cache it can't be fetched again.
///
/// A row is written before its message is shown or sent, and deleted after the message is in the cache. A crash in between leaves a
/// message in both files, and lists show it once (``MessageList``).
final class Outbox: Sendable {
    let url: URL?
    private let opened: NIOLockedValueBox<DatabaseQueue>
    private let logger: Logger
    var queue: DatabaseQueue { opened.withLockedValue { $0 } }

    /// Opens the outbox; one that is damaged is renamed and a new one begun, with a line in the log.
    ///
    /// - Parameters:
    ///   - url: The file; nil for an outbox in memory.
    ///   - isShared: Whether it is in a directory that an app shares with its extensions.
    ///   - report: Called with what is wrong with the file.
    init(url: URL?, isShared: Bool = false, logger: Logger, report: @escaping @Sendable (StorageProblem) -> Void = { _ in }) throws
    {
        self.url = url
        self.logger = logger
        opened = NIOLockedValueBox(
            try DatabaseFile(
                url: url, isDurable: true, isShared: isShared, migrator: Self.migrator, logger: logger,
                wasSetAside: { report(StorageProblem(.outboxSetAside, $0, $1)) }
            ).open())
    }

    /// Lets go of the file. From here on the outbox is an empty one in memory.
    func letGo() throws {
        let empty = try DatabaseFile(url: nil, isDurable: true, migrator: Self.migrator, logger: logger).open()
        try opened.withLockedValue { queue in
            try queue.close()
            queue = empty
        }
    }

    /// Stores a message. An existing one with the same channel and client id stays unchanged, and is returned.
    func insert(_ operation: SendMessage, createdAt: Timestamp) async throws -> OutboxItem {
        try await queue.write { database in
            let arguments: StatementArguments = [
                operation.channel.rawValue, operation.clientId.rawValue, createdAt.milliseconds, try StoredJSON.encode(operation),
            ]
            try database.execute(
                sql: """
                    INSERT INTO outbox (channel_id, client_id, created_at, operation) VALUES (?, ?, ?, ?)
                    ON CONFLICT (channel_id, client_id) DO NOTHING
                    """, arguments: arguments)
            let inserted = try Self.items(
                database, "WHERE channel_id = ? AND client_id = ?", [operation.channel.rawValue, operation.clientId.rawValue])
            guard let item = inserted.first else { throw DatabaseError(message: "The outbox didn't keep a message.") }
            return item
        }
    }

    func apply(_ write: OutboxWrite) async throws {
        try await queue.write { database in
            switch write {
            case .remove(let key):
                try database.execute(
                    sql: "DELETE FROM outbox WHERE channel_id = ? AND client_id = ?",
                    arguments: [key.channel.rawValue, key.clientId.rawValue])
            case .fail(let key, let error):
                try Self.set(failure: try StoredJSON.encode(error), of: key, in: database)
            case .retry(let key):
                try Self.set(failure: nil, of: key, in: database)
            }
        }
    }

    /// Everything, in the order of sending.
    func items() async throws -> [OutboxItem] {
        try await queue.read { try Self.items($0, "", []) }
    }

    /// The messages of one channel, in the order of sending.
    func items(of channel: ChannelID) async throws -> [OutboxItem] {
        try await queue.read { try Self.items($0, "WHERE channel_id = ?", [channel.rawValue]) }
    }

    private static func set(failure: Data?, of key: MessageKey, in database: Database) throws {
        try database.execute(
            sql: "UPDATE outbox SET failure = ? WHERE channel_id = ? AND client_id = ?",
            arguments: [failure, key.channel.rawValue, key.clientId.rawValue])
    }

    private static func items(_ database: Database, _ clause: String, _ arguments: StatementArguments) throws -> [OutboxItem] {
        let sql = "SELECT number, created_at, operation, failure FROM outbox \(clause) ORDER BY number"
        return try Row.fetchAll(database, sql: sql, arguments: arguments).map { row in
            OutboxItem(
                number: row[0], operation: try StoredJSON.decode(from: row[2]), createdAt: Timestamp(milliseconds: row[1]),
                failure: try (row[3] as Data?).map { try StoredJSON.decode(from: $0) })
        }
    }

    private static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { database in
            try database.execute(
                sql: """
                    CREATE TABLE outbox (
                        number INTEGER PRIMARY KEY AUTOINCREMENT, channel_id TEXT NOT NULL, client_id TEXT NOT NULL,
                        created_at INTEGER NOT NULL, operation BLOB NOT NULL, failure BLOB, UNIQUE (channel_id, client_id)
                    );
                    """)
        }
        return migrator
    }
}
