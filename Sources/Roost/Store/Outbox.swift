import Foundation
import GRDB
import Logging
import NIOConcurrencyHelpers
import RoostAPI

/// The operations that the server hasn't taken yet: a file of its own, because unlike the cache it can't be fetched again.
///
/// A row is written before its operation is shown or sent, and deleted after what it did is in the cache. A crash in between leaves a
/// message in both files, and lists show it once (``MessageList``).
final class Outbox: Sendable {
    let url: URL?
    private let connection: Leases<DatabaseQueue>
    private let logger: Logger

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
        connection = Leases(
            try DatabaseFile(
                url: url, isDurable: true, isShared: isShared, migrator: Self.migrator, prepare: Self.requireWhole, logger: logger,
                wasSetAside: { report(StorageProblem(.outboxSetAside, $0, $1)) }
            ).open())
    }

    /// Its rows are read only once: damage has to be known before.
    private static func requireWhole(_ database: Database) throws {
        let problem = try String.fetchOne(database, sql: "PRAGMA quick_check(1)")
        guard problem == "ok" else { throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: problem) }
    }

    /// Lets go of the file. From here on the outbox is an empty one in memory.
    ///
    /// - Throws: `DatabaseError` if the file can't be closed.
    func letGo() async throws {
        let empty = try DatabaseFile(url: nil, isDurable: true, migrator: Self.migrator, logger: logger).open()
        let former = await connection.replace(with: empty)
        do {
            try await Blocking.perform { try former.close() }
        } catch {
            _ = await connection.replace(with: former)
            throw error
        }
    }

    func read<Value: Sendable>(_ query: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        try await connection.use { try await $0.read(query) }
    }

    /// Applies writes in one transaction.
    func apply(_ writes: [OutboxWrite]) async throws {
        try await connection.use {
            try await $0.write { database in for write in writes { try Self.apply(write, in: database) } }
        }
    }

    private static func apply(_ write: OutboxWrite, in database: Database) throws {
        switch write {
        case .put(let item):
            let (name, fields, client) = try item.operation.columns()
            try database.cachedStatement(
                sql: """
                    INSERT OR REPLACE INTO operations
                        (id, number, channel_id, name, client_id, created_at, first_sent_at, server, operation, failure, is_waiting,
                         concealed_seq)
                    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                    """
            ).execute(arguments: [
                item.id, item.number, item.channel?.rawValue, name, client?.rawValue, item.createdAt.milliseconds,
                item.firstSentAt?.milliseconds, item.server, fields, try item.failure.map { try StoredJSON.encode($0) },
                item.isWaiting, item.concealedSeq,
            ])
        case .remove(let id, _):
            try database.cachedStatement(sql: "DELETE FROM operations WHERE id = ?").execute(arguments: [id])
        case .server(let server):
            try database.execute(sql: "UPDATE outbox_state SET server = ?", arguments: [server])
        }
    }

    /// Everything, in the order of sending, and the server that the device knew last.
    func saved() async throws -> SavedOutbox {
        try await read { database in
            SavedOutbox(
                items: try Self.items(database, "ORDER BY number", []),
                server: try String.fetchOne(database, sql: "SELECT server FROM outbox_state"))
        }
    }

    /// Everything, in the order of sending.
    func items() async throws -> [OutboxItem] { try await saved().items }

    /// The newest operations of one channel, in the order of sending.
    func items(of channel: ChannelID, limit: Int = 300) async throws -> [OutboxItem] {
        try await read {
            try Self.items($0, "WHERE channel_id = ? ORDER BY number DESC LIMIT ?", [channel.rawValue, limit]).reversed()
        }
    }

    /// The oldest operations of all.
    func items(limit: Int) async throws -> [OutboxItem] {
        try await read { try Self.items($0, "ORDER BY number LIMIT ?", [limit]) }
    }

    /// Whether some are meant for another server than this one.
    func holdsOperations(notFor server: String) async throws -> Bool {
        try await read { database in
            let sql = """
                SELECT EXISTS (SELECT 1 FROM operations WHERE server < ?1) OR EXISTS (SELECT 1 FROM operations WHERE server > ?1)
                """
            return try Bool.fetchOne(database, sql: sql, arguments: [server]) ?? false
        }
    }

    func count() async throws -> Int {
        try await read { try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM operations") ?? 0 }
    }

    private static func items(_ database: Database, _ clause: String, _ arguments: StatementArguments) throws -> [OutboxItem] {
        let sql = """
            SELECT id, number, name, client_id, created_at, first_sent_at, server, operation, failure, is_waiting,
                   concealed_seq
            FROM operations \(clause)
            """
        return try Row.fetchAll(database, sql: sql, arguments: arguments).map { row in
            OutboxItem(
                id: row[0], number: row[1],
                operation: try OutboxOperation(
                    row[2], (row[3] as String?).map(ClientID.init(rawValue:)), row[7]), createdAt: Timestamp(milliseconds: row[4]),
                firstSentAt: (row[5] as Int64?).map(Timestamp.init(milliseconds:)), server: row[6],
                failure: try (row[8] as Data?).map { try StoredJSON.decode(from: $0) }, isWaiting: row[9],
                concealedSeq: row[10])
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
        // Whether a message of the former version was ever sent isn't known: it may have been.
        migrator.registerMigration("2") { database in
            try database.execute(
                sql: """
                    CREATE TABLE operations (
                        id INTEGER PRIMARY KEY, number INTEGER NOT NULL, channel_id TEXT, name TEXT NOT NULL, client_id TEXT,
                        created_at INTEGER NOT NULL, first_sent_at INTEGER, server TEXT, operation BLOB NOT NULL, failure BLOB,
                        is_waiting INTEGER NOT NULL
                    );
                    CREATE INDEX operations_by_channel ON operations (channel_id, number);
                    CREATE INDEX operations_in_order ON operations (number);
                    CREATE UNIQUE INDEX operations_by_message ON operations (channel_id, client_id) WHERE name = 'message.send';
                    INSERT INTO operations (id, number, channel_id, name, client_id, created_at, first_sent_at, operation, failure, is_waiting)
                    SELECT number, number, channel_id, 'message.send', client_id, created_at, created_at, operation, failure, 0 FROM outbox;
                    DROP TABLE outbox;
                    CREATE TABLE outbox_state (id INTEGER PRIMARY KEY CHECK (id = 1), server TEXT);
                    INSERT INTO outbox_state (id) VALUES (1);
                    """)
        }
        migrator.registerMigration("3") { database in
            try database.execute(
                sql: """
                    ALTER TABLE operations ADD COLUMN concealed_seq INTEGER;
                    CREATE INDEX operations_by_server ON operations (server);
                    """)
        }
        return migrator
    }
}

/// An outbox as it is on disk.
struct SavedOutbox: Hashable, Sendable {
    var items: [OutboxItem] = []
    var server: String?
}

extension OutboxOperation {
    fileprivate func columns() throws -> (name: String, fields: Data, client: ClientID?) {
        func fields<Fields: RoostAPI.Operation>(_ operation: Fields) throws -> (String, Data) {
            (Fields.name, try StoredJSON.encode(operation))
        }
        let (name, json) = try fields(operation)
        let client: ClientID? =
            switch self {
            case .send(let message): message.clientId
            case .edit(_, let client), .delete(_, let client): client
            default: nil
            }
        return (name, json, client)
    }

    fileprivate init(_ name: String, _ client: ClientID?, _ fields: Data) throws {
        switch name {
        case SendMessage.name: self = .send(try StoredJSON.decode(from: fields))
        case EditMessage.name: self = .edit(try StoredJSON.decode(from: fields), of: client)
        case DeleteMessage.name: self = .delete(try StoredJSON.decode(from: fields), of: client)
        case DeleteMessages.name: self = .deleteMany(try StoredJSON.decode(from: fields))
        case DeleteMessagesForMe.name: self = .deleteForMe(try StoredJSON.decode(from: fields))
        case PurgeMessage.name: self = .purge(try StoredJSON.decode(from: fields))
        case UndeleteMessage.name: self = .undelete(try StoredJSON.decode(from: fields))
        case UpdateMetaArrays.name: self = .metaArrays(try StoredJSON.decode(from: fields))
        case MarkRead.name: self = .read(try StoredJSON.decode(from: fields))
        case MarkUnread.name: self = .unread(try StoredJSON.decode(from: fields))
        case HideChannel.name: self = .hide(try StoredJSON.decode(from: fields))
        case UnhideChannel.name: self = .unhide(try StoredJSON.decode(from: fields))
        case MuteNotifications.name: self = .mute(try StoredJSON.decode(from: fields))
        case UnmuteNotifications.name: self = .unmute(try StoredJSON.decode(from: fields))
        case ResetHistory.name: self = .reset(try StoredJSON.decode(from: fields))
        case LeaveChannel.name: self = .leave(try StoredJSON.decode(from: fields))
        case SetDraft.name: self = .draft(try StoredJSON.decode(from: fields))
        case UpdatePreferences.name: self = .preferences(try StoredJSON.decode(from: fields))
        default: throw DatabaseError(message: "The outbox holds an operation \(name).")
        }
    }
}
