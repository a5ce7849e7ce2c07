import GRDB
import GRDBSQLite
import RoostAPI
import RoostCore

/// A transaction on one SQLite connection.
///
/// An operation that throws before it has written anything leaves nothing to undo, and rules check what can be refused before they write. So a
/// transaction first runs without savepoints: with a savepoint SQLite copies every page that the operation is the first to change. If an operation
/// throws after it has written, ``needsSavepoints`` records that this run can't be committed; it is run again, carefully: each operation has a savepoint
/// before it writes ([0014](docs/decisions/0014-operations-run-without-savepoints-first.md)).
///
/// GRDB opens the connections; SQLite's own functions bind values and read columns, and statements are kept.
final class SQLiteTransaction: WriteTransaction {
    private let database: GRDB.Database
    private let statements: PreparedStatements
    private let clock: @Sendable () -> Timestamp
    private let usesSavepoints: Bool
    private var operation: Operation?
    /// Whether an operation without a savepoint has to be undone. Nothing of this run is committed then.
    private(set) var needsSavepoints = false

    /// The current operation.
    private struct Operation {
        var hasWritten = false
        /// An operation that writes nothing doesn't need one.
        var hasSavepoint = false
    }

    /// Nil for a transaction that only reads.
    let batchMemory: BatchMemory?
    /// Nil for a transaction that writes.
    let readCache: (any ReadCache)?
    /// The changes of the operations so far, including those that were rolled back.
    private(set) var changes: [ChangeMark] = []

    /// - Parameter statements: The connection's statements.
    init(
        _ database: GRDB.Database, _ statements: PreparedStatements, readCache: (any ReadCache)? = nil,
        usesSavepoints: Bool = false, clock: @escaping @Sendable () -> Timestamp
    ) {
        self.database = database
        self.statements = statements
        self.usesSavepoints = usesSavepoints
        self.readCache = readCache
        batchMemory = readCache == nil ? BatchMemory() : nil
        self.clock = clock
    }

    func noteChange(of channel: ChannelID) { changes.append(ChangeMark(channel)) }

    /// `WITHOUT ROWID` keeps rows in the order of the primary key, and saves a second tree.
    let dialect = Dialect(text: "TEXT", clusteredTable: "WITHOUT ROWID", rowLock: nil)
    /// There is one writer, and so one generator.
    let idGenerator = IDGenerator.Number(0)

    func now() throws -> Timestamp { clock() }

    // MARK: Beginning and end

    func begin() throws { _ = try run("BEGIN IMMEDIATE") { _ in } }

    /// Sends deferred writes, and commits.
    func commit() throws {
        guard !needsSavepoints else { throw Self.rerunWithSavepoints }
        try writePending()
        _ = try run("COMMIT") { _ in }
    }

    func rollBack() throws { _ = try run("ROLLBACK") { _ in } }

    // MARK: Operations

    func attempt<T>(_ body: () throws -> T) throws -> T {
        operation = Operation()
        batchMemory?.beginOperation()
        defer { operation = nil }
        do {
            let result = try body()
            if operation?.hasSavepoint == true { _ = try run("RELEASE operation") { _ in } }
            return result
        } catch {
            // After a failure of the disk SQLite has rolled back the whole transaction: further statements would be committed one by one.
            guard sqlite3_get_autocommit(database.sqliteConnection) == 0 else {
                if let failure = error as? DatabaseFailure, failure.kind != .statement { throw failure }
                throw DatabaseFailure(message: "SQLite rolled the transaction back: \(error)", kind: .transaction)
            }
            try undo(operation ?? Operation())
            throw error
        }
    }

    /// Undoes the operation's writes. Throws if that fails the whole transaction.
    private func undo(_ operation: Operation) throws {
        if operation.hasSavepoint {
            _ = try run("ROLLBACK TO operation") { _ in }
            _ = try run("RELEASE operation") { _ in }
        } else if operation.hasWritten {
            needsSavepoints = true
            throw Self.rerunWithSavepoints
        }
        batchMemory?.undoOperation(isRolledBack: operation.hasSavepoint)
    }

    private static let rerunWithSavepoints = DatabaseFailure(
        message: "The transaction is run again, with savepoints.", kind: .transaction)

    // MARK: Statements

    @discardableResult
    func execute(_ sql: RoostCore.SQL) throws -> Int {
        try prepare(writing: true)
        // A failed statement has changed nothing: SQLite undoes it by itself.
        let count = try run(sql) { _ in }
        if count > 0 { operation?.hasWritten = true }
        return count
    }

    func perform(_ sql: RoostCore.SQL) throws { try execute(sql) }

    func each(_ sql: RoostCore.SQL, _ body: (inout RowReader) throws -> Void) throws {
        // A statement that returns rows may also write (RETURNING).
        let isWriting = !sql.isSelection
        try prepare(writing: isWriting)
        if isWriting { operation?.hasWritten = true }
        _ = try run(sql, body)
    }

    /// Sends deferred writes before a statement, and in a careful run sets the operation's savepoint if it is about to write.
    private func prepare(writing isWriting: Bool) throws {
        guard let batchMemory else { return }
        if usesSavepoints {
            // Deferred writes of earlier operations stay whatever the outcome of this one, so they are sent before its savepoint if this one has
            // added none.
            if !batchMemory.isBypassed, !batchMemory.hasOperationWritten { try writePending() }
            if operation?.hasSavepoint == false, isWriting || batchMemory.hasOperationWritten {
                _ = try run("SAVEPOINT operation") { _ in }
                operation?.hasSavepoint = true
            }
        }
        guard !batchMemory.isBypassed else { return }
        try writePending()
        if isWriting { batchMemory.forget() }
    }

    private func writePending() throws {
        guard let batchMemory else { return }
        do {
            let pending = try batchMemory.takePendingWrites(isInside: operation?.hasSavepoint == true)
            if !pending.isEmpty, batchMemory.hasOperationWritten { operation?.hasWritten = true }
            for sql in pending { _ = try run(sql) { _ in } }
        } catch {
            // It belongs to finished operations, so it can't be undone with the current one.
            guard let failure = error as? DatabaseFailure, failure.kind != .statement else {
                throw DatabaseFailure(message: "A batch's deferred writes failed: \(error)", kind: .transaction)
            }
            throw failure
        }
    }

    /// Binds the values, steps through all rows, and resets the statement for the next use.
    private func run(_ sql: RoostCore.SQL, _ body: (inout RowReader) throws -> Void) throws -> Int {
        let prepared = try statements.statement(sql.pieces, on: database.sqliteConnection)
        let statement = prepared.pointer
        let textsBefore = statements.texts.end
        defer {
            sqlite3_reset(statement)
            sqlite3_clear_bindings(statement)
            statements.texts.removeAll(from: textsBefore)
            withExtendedLifetime(prepared) {}
        }
        for (index, value) in sql.values.enumerated() {
            guard bind(value, to: statement, at: Int32(index) + 1) == SQLITE_OK else { throw failure() }
        }
        var reader: RowReader?
        while true {
            switch sqlite3_step(statement) {
            case SQLITE_ROW:
                var row = reader ?? RowReader(SQLiteRow(statement: statement))
                row.rewind()
                try body(&row)
                reader = row
            case SQLITE_DONE:
                return Int(sqlite3_changes(database.sqliteConnection))
            default:
                throw failure()
            }
        }
    }

    private func bind(_ value: SQLValue, to statement: OpaquePointer, at index: Int32) -> Int32 {
        switch value {
        case .null: return sqlite3_bind_null(statement, index)
        case .integer(let value): return sqlite3_bind_int64(statement, index, value)
        case .text(let value): return statements.texts.bind(value, to: statement, at: index)
        }
    }

    private func failure() -> DatabaseFailure {
        let connection = database.sqliteConnection
        let message = sqlite3_errmsg(connection).map { String(cString: $0) } ?? ""
        return DatabaseFailure(sqliteCode: sqlite3_extended_errcode(connection), message: message)
    }
}

/// The current row of a statement.
private final class SQLiteRow: RoostCore.Row {
    private let statement: OpaquePointer

    init(statement: OpaquePointer) { self.statement = statement }

    func isNull(_ column: Int32) -> Bool { sqlite3_column_type(statement, column) == SQLITE_NULL }
    func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(statement, column) }
    func text(_ column: Int32) -> String {
        guard let start = sqlite3_column_text(statement, column) else { return "" }
        let bytes = UnsafeBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, column)))
        return String(decoding: bytes, as: UTF8.self)
    }
}
