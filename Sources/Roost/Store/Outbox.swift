import Foundation
import GRDB
import Logging
import NIOConcurrencyHelpers
import RoostAPI

/// The operations that the server hasn't accepted yet, in a separate file: unlike the cache, it can't be fetched again.
///
/// A row is written before its operation is shown or sent, and deleted after its effect is in the cache. After a crash in between, a message is in
/// both files, and lists show it once (``MessageList``).
///
/// A row that can't be read, such as one with a field that only a newer version knows, stays for a version that can. Only this version continues without it.
final class Outbox: Sendable {
    let url: URL?
    let file: DatabaseFile
    /// The inode number of the opened file: no other file has it while this one is open.
    private let number: UInt64?
    private let connection: Leases<DatabaseQueue>
    private let gate: WriteGate
    /// Tracks which of the chats that have the file sends which message.
    let begun: BegunMessages
    /// The number of this chat among them.
    let chat: Int
    private let logger: Logger
    private let report: @Sendable (StorageProblem) -> Void
    /// The ids of the unreadable rows that were reported to the app.
    private let unreadable = NIOLockedValueBox<Set<Int64>>([])
    /// The decoded rows.
    let decoded = DecodedOperations()

    /// Opens the outbox. A damaged one is renamed and a new one created, with a line in the log.
    ///
    /// - Parameters:
    ///   - url: The file; nil for an outbox in memory.
    ///   - gate: Every write passes through it.
    ///   - begun: Shared by the chats that have the file.
    ///   - chat: The number of this chat.
    ///   - report: Called with problems of the file.
    init(
        url: URL?, gate: WriteGate = WriteGate(), begun: BegunMessages = BegunMessages(), chat: Int = 0, logger: Logger,
        report: @escaping @Sendable (StorageProblem) -> Void = { _ in }
    ) throws {
        self.url = url
        self.gate = gate
        self.begun = begun
        self.chat = chat
        self.logger = logger
        self.report = report
        file = DatabaseFile(
            url: url, isDurable: true, migrator: Self.migrator, prepare: Self.requireWhole, logger: logger,
            wasSetAside: { report(StorageProblem(.outboxSetAside, $0, $1)) })
        let (queue, number) = try Self.open(file)
        self.number = number
        connection = Leases(queue)
    }

    /// Held while a file is opened. If two chats of one process created it at the same time, each would make its tables; if both found it damaged,
    /// the second would set aside the new file of the first. The ``FolderLock`` keeps other processes out.
    private static let opening = NIOLock()

    /// Opens the file, and takes over files that were set aside for this version, while no other chat of this process does.
    ///
    /// - Returns: The database, and the file's inode number; nil in memory.
    private static func open(_ file: DatabaseFile) throws -> (DatabaseQueue, UInt64?) {
        guard let url = file.url else { return (try file.open(), nil) }
        return try opening.withLock {
            let queue = try file.open()
            let number = FolderLock.number(at: url.path)
            takeOver(file, into: queue)
            return (queue, number)
        }
    }

    /// Its rows are read only once: damage has to be found first.
    private static func requireWhole(_ database: Database) throws {
        let problem = try String.fetchOne(database, sql: "PRAGMA quick_check(1)")
        guard problem == "ok" else { throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: problem) }
    }

    /// Releases the file. From here on the outbox is an empty one in memory.
    ///
    /// - Throws: `DatabaseError` if the file can't be closed.
    func detachFile() async throws {
        let empty = try DatabaseFile(url: nil, isDurable: true, migrator: Self.migrator, logger: logger).open()
        let former = await connection.replace(with: empty)
        do {
            try await Blocking.perform { try former.close() }
        } catch {
            _ = await connection.replace(with: former)
            throw error
        }
        decoded.forgetAll()
    }

    func read<Value: Sendable>(_ query: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        try await connection.use { try await $0.read(query) }
    }

    /// Applies writes in one transaction.
    ///
    /// - Parameter other: The number of the writing chat, if it isn't this one.
    /// - Returns: The state of the operations in the file.
    /// - Throws: ``Deleted`` if an operation would be kept in a file that doesn't exist after a restart.
    @discardableResult
    func apply(_ writes: [OutboxWrite], by other: Int? = nil) async throws -> WrittenOutbox {
        let chat = other ?? self.chat
        let keeps = writes.contains { write in
            switch write {
            case .put, .change(_, _, .some): true
            default: false
            }
        }
        let takesBack = writes.contains { if case .change(_, _, nil) = $0 { true } else { false } }
        let written: WrittenOutbox = try await gate.pass {
            try await connection.use {
                try await $0.write { [url, number] database in
                    let isDeleted = keeps || takesBack ? url.map { FolderLock.number(at: $0.path) != number } ?? false : false
                    if keeps, isDeleted { throw Deleted() }
                    var outcome = WrittenOutbox()
                    for write in writes {
                        // Operations that this chat knows may be missing in a deleted file, and no other chat sends from there.
                        if isDeleted, case .change(let id, let channel, nil) = write {
                            try self.apply(.remove(id, of: channel), by: chat, in: database, &outcome)
                        } else {
                            try self.apply(write, by: chat, in: database, &outcome)
                        }
                    }
                    return outcome
                }
            }
        }
        let removed = writes.compactMap(\.removed)
        decoded.forget(removed)
        begun.end(removed.filter { !written.gone.contains($0) })
        return written
    }

    /// The file was deleted or replaced while it was open: what is written is lost with this process.
    struct Deleted: Error, CustomStringConvertible {
        var description: String { "The file was deleted while it was open. A new chat begins with a new one." }
    }

    /// An operation as stored in the file; nil if it isn't there or can't be read.
    private func item(_ id: Int64, in database: Database) throws -> OutboxItem? {
        let statement = try database.cachedStatement(sql: "\(Self.selectionOfItems) WHERE id = ?")
        return try Row.fetchOne(statement, arguments: [id]).flatMap { try? item(id, $0) }
    }

    /// Whether an operation is in the file and no chat has sent it, or the server has refused it since.
    private static func isUnsent(_ id: Int64, in database: Database) throws -> Bool {
        let sql = "SELECT EXISTS (SELECT 1 FROM operations WHERE id = ? AND (first_sent_at IS NULL OR failure IS NOT NULL))"
        return try Bool.fetchOne(database.cachedStatement(sql: sql), arguments: [id]) ?? false
    }

    private func apply(_ write: OutboxWrite, by chat: Int, in database: Database, _ written: inout WrittenOutbox) throws {
        switch write {
        case .put(let item): try put(item, by: chat, in: database, &written)
        case .update(let item, let hasContent): try Self.update(item, content: hasContent, in: database)
        case .sending(let id, _, let time, let server):
            var row = try item(id, in: database)
            // After a refusal it is a new attempt. Otherwise the first of two chats that send it sets the time.
            try database.cachedStatement(
                sql: """
                    UPDATE operations
                    SET first_sent_at = CASE WHEN failure IS NULL THEN COALESCE(first_sent_at, ?1) ELSE ?1 END, server = ?2,
                        failure = NULL, is_waiting = 0
                    WHERE id = ?3
                    """
            ).execute(arguments: [time.milliseconds, server, id])
            if let row, row.message != nil, !begun.begin(id, by: chat, isUnsent: row.isUnsent) { written.taken.insert(id) }
            row?.beginSending(at: time, to: server)
            written.rows[id] = row
        case .change(let id, _, let item):
            let isUnsent =
                if item == nil {
                    try Self.removeWithChanges(id, ifUnsent: true, in: database)
                } else {
                    try Self.isUnsent(id, in: database)
                }
            guard isUnsent else {
                written.gone.insert(id)
                written.inFlight[id] = try self.item(id, in: database)
                return
            }
            if let item { try put(item, by: chat, in: database, &written) }
        case .remove(let id, _): try Self.removeWithChanges(id, in: database)
        case .done(let id, _): try Self.remove(id, in: database)
        case .arrived(let id, let key, let message):
            try resolveChanges(of: key, as: message, in: database)
            try Self.remove(id, in: database)
        case .server(let server):
            // As in `SavedOutbox.noteServer(_:)`: operations without a server would be sent to the next one after a restart.
            try database.execute(
                sql: "UPDATE operations SET server = (SELECT COALESCE(server, ?) FROM outbox_state) WHERE server IS NULL",
                arguments: [server])
            try database.execute(sql: "UPDATE outbox_state SET server = ?", arguments: [server])
        }
    }

    private func put(_ item: OutboxItem, by chat: Int, in database: Database, _ written: inout WrittenOutbox) throws {
        // Another chat has sent the message that this changes, or discarded it.
        if case .sent(let client)? = item.operation.changed.first, let channel = item.channel,
            try !Self.holdsMessage(MessageKey(channel: channel, clientId: client), in: database)
        {
            written.gone.insert(item.id)
            return
        }
        let (name, fields, client) = try item.operation.columns()
        // Another chat of the same files counts separately. A new row comes after all existing ones, whichever chat added them.
        try database.cachedStatement(
            sql: """
                INSERT OR REPLACE INTO operations (\(Self.columns))
                VALUES (
                    ?1,
                    COALESCE(
                        (SELECT number FROM operations WHERE id = ?1),
                        MAX(?2, 1 + MIN((SELECT MAX(number) FROM operations), 9223372036854775806)),
                        ?2),
                    ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
                """
        ).execute(arguments: [
            item.id, item.number, item.channel?.rawValue, name, client?.rawValue, item.createdAt.milliseconds,
            item.firstSentAt?.milliseconds, item.server, fields, try item.failure.map { try StoredJSON.encode($0) },
            item.isWaiting, item.concealedSeq, item.epoch,
        ])
        // It is sent as soon as it is stored.
        if item.message != nil, !item.isUnsent { begun.begin(item.id, by: chat, isUnsent: true) }
    }

    private static func update(_ item: OutboxItem, content hasContent: Bool, in database: Database) throws {
        try database.cachedStatement(
            sql: "UPDATE operations SET first_sent_at = ?1, server = ?2, failure = ?3, is_waiting = ?4 WHERE id = ?5"
        ).execute(arguments: [
            item.firstSentAt?.milliseconds, item.server, try item.failure.map { try StoredJSON.encode($0) }, item.isWaiting,
            item.id,
        ])
        guard hasContent else { return }
        let (_, fields, client) = try item.operation.columns()
        try database.cachedStatement(
            sql: "UPDATE operations SET operation = ?1, client_id = ?2, concealed_seq = ?3, epoch = ?4 WHERE id = ?5"
        ).execute(arguments: [fields, client?.rawValue, item.concealedSeq, item.epoch, item.id])
    }

    private static func remove(_ id: Int64, in database: Database) throws {
        try database.cachedStatement(sql: "DELETE FROM operations WHERE id = ?").execute(arguments: [id])
    }

    /// All operations in the order of sending, and the server that the device last knew.
    func saved() async throws -> SavedOutbox {
        let (rows, server, lastNumber) = try await read { database in
            (
                try self.rows(database, "ORDER BY number, id", []),
                try String.fetchOne(database, sql: "SELECT server FROM outbox_state"),
                try Int64.fetchOne(database, sql: "SELECT MAX(number) FROM operations") ?? 0
            )
        }
        return SavedOutbox(items: readable(rows), server: server, lastNumber: lastNumber)
    }

    /// All operations, in the order of sending.
    func items() async throws -> [OutboxItem] { try await saved().items }

    /// The newest operations of one channel, in the order of sending.
    func items(of channel: ChannelID, limit: Int = 300) async throws -> [OutboxItem] {
        try await saved(of: channel, limit: limit).items
    }

    /// The same, and the server that the device last knew.
    func saved(of channel: ChannelID, limit: Int = 300) async throws -> SavedOutbox {
        let (rows, server) = try await read { database in
            (
                try self.rows(database, "WHERE channel_id = ? ORDER BY number DESC, id DESC LIMIT ?", [channel.rawValue, limit]),
                try String.fetchOne(database, sql: "SELECT server FROM outbox_state")
            )
        }
        return SavedOutbox(items: readable(rows).reversed(), server: server)
    }

    /// The oldest operations, and the number of all that can be read, as far as they were read.
    func oldest(limit: Int) async throws -> (items: [OutboxItem], count: Int) {
        let (rows, all) = try await read { database -> (ReadRows, Int?) in
            let rows = try self.rows(database, "ORDER BY number, id LIMIT ?", [limit])
            // If these are all, there is nothing left to count.
            guard rows.items.count + rows.failures.count == limit else { return (rows, nil) }
            return (rows, try Int.fetchOne(database, sql: "SELECT COUNT(*) FROM operations"))
        }
        let items = readable(rows)
        guard let all else { return (items, items.count) }
        return (items, max(0, all - unreadable.withLockedValue { $0.count }))
    }

    /// Whether readable operations are meant for a server other than this one.
    func holdsOperations(notFor server: String) async throws -> Bool {
        // The app can't decide about operations that it can't be shown.
        let ids = unreadable.withLockedValue { $0.map { String($0) } }
        let except = "[" + ids.joined(separator: ",") + "]"
        return try await read { database in
            let sql = """
                SELECT EXISTS (SELECT 1 FROM operations WHERE server < ?1 AND id NOT IN (SELECT value FROM json_each(?2)))
                    OR EXISTS (SELECT 1 FROM operations WHERE server > ?1 AND id NOT IN (SELECT value FROM json_each(?2)))
                """
            return try Bool.fetchOne(database, sql: sql, arguments: [server, except]) ?? false
        }
    }

    /// The number of operations, including unreadable ones.
    func count() async throws -> Int {
        try await read { try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM operations") ?? 0 }
    }

    // MARK: Rows

    /// All columns of a row, in the order in which rows are written.
    static let columns = """
        id, number, channel_id, name, client_id, created_at, first_sent_at, server, operation, failure, is_waiting, concealed_seq, epoch
        """

    /// The result of reading rows.
    private struct ReadRows: Sendable {
        var items: [OutboxItem] = []
        /// Why the others can't be read, by id.
        var failures: [Int64: any Error] = [:]
    }

    private func rows(_ database: Database, _ clause: String, _ arguments: StatementArguments) throws -> ReadRows {
        var rows = ReadRows()
        for row in try Row.fetchAll(database, sql: "\(Self.selectionOfItems) \(clause)", arguments: arguments) {
            let id: Int64 = row[0]
            do {
                rows.items.append(try item(id, row))
            } catch {
                rows.failures[id] = error
            }
        }
        return rows
    }

    /// The columns that ``item(_:_:)`` reads.
    static let selectionOfItems = """
        SELECT id, number, name, client_id, created_at, first_sent_at, server, operation, failure, is_waiting,
               concealed_seq, epoch
        FROM operations
        """

    func item(_ id: Int64, _ row: Row) throws -> OutboxItem {
        let columns = DecodedOperations.Columns(
            name: try row.decode(atIndex: 2), client: try row.decode(atIndex: 3), fields: try row.decode(atIndex: 7),
            failure: try row.decode(atIndex: 8))
        let content = try decoded.content(of: id, columns)
        let (createdAt, firstSentAt): (Int64, Int64?) = (try row.decode(atIndex: 4), try row.decode(atIndex: 5))
        return OutboxItem(
            id: id, number: try row.decode(atIndex: 1), operation: content.operation, createdAt: Timestamp(milliseconds: createdAt),
            firstSentAt: firstSentAt.map(Timestamp.init(milliseconds:)), server: try row.decode(atIndex: 6),
            failure: content.failure, isWaiting: try row.decode(atIndex: 9),
            concealedSeq: try row.decode(atIndex: 10), epoch: try row.decode(atIndex: 11))
    }

    /// Returns the readable rows. The others are reported to the app once.
    private func readable(_ rows: ReadRows) -> [OutboxItem] {
        let new = unreadable.withLockedValue { known in
            defer { known.formUnion(rows.failures.keys) }
            return rows.failures.filter { !known.contains($0.key) }
        }
        if let first = new.min(by: { $0.key < $1.key }) {
            let problem = StorageProblem(.operationsNotRead, url, UnreadableRows(count: new.count, reason: first.value))
            logger.error("The outbox can't be read completely.", metadata: ["problem": "\(problem)"])
            report(problem)
        }
        return rows.items
    }

    private struct UnreadableRows: Error, CustomStringConvertible {
        var count: Int
        var reason: any Error
        var description: String { "\(count) operations can't be read, and stay for a version that can: \(reason)" }
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
        // Whether a message of the former version was ever sent is unknown: it may have been.
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
        migrator.registerMigration("4") { database in
            try database.execute(
                sql: """
                    ALTER TABLE operations ADD COLUMN epoch TEXT;
                    CREATE INDEX operations_by_changed ON operations (channel_id, client_id)
                        WHERE client_id IS NOT NULL AND name <> 'message.send';
                    """)
        }
        return migrator
    }
}

/// An outbox as stored on disk.
struct SavedOutbox: Hashable, Sendable {
    var items: [OutboxItem] = []
    var server: String?
    /// The highest number of all rows, including unreadable ones: later operations get a higher one.
    var lastNumber: Int64 = 0
    /// The messages that other chats of this process have begun to send.
    var others: Set<Int64> = []

    /// From here on operations are sent to a server. Those requested before any was known are for the first one that was met.
    mutating func noteServer(_ name: String) {
        for index in items.indices where items[index].server == nil { items[index].server = server ?? name }
        server = name
    }

    /// Makes changes of a message that has arrived name it by its id.
    mutating func resolve(_ key: MessageKey, _ message: MessageID) {
        for index in items.indices
        where items[index].channel == key.channel && items[index].operation.changed == [.sent(key.clientId)] {
            items[index].operation = items[index].operation.resolved(message)
        }
    }
}

extension OutboxOperation {
    func columns() throws -> (name: String, fields: Data, client: ClientID?) {
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

    init(_ name: String, _ client: ClientID?, _ fields: Data) throws {
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
        default: throw UnknownOperation(name: name)
        }
    }
}

/// An operation that another version of this package has put into the outbox.
private struct UnknownOperation: Error, CustomStringConvertible {
    var name: String
    var description: String { "This version has no operation \(name) in its outbox." }
}
