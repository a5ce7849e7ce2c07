import Foundation
import GRDB
import GRDBSQLite

/// Statements on the cache.
///
/// GRDB opens the connections, begins and ends transactions, and keeps the prepared statements. Values are bound and columns read by SQLite's
/// own functions, as in the server: writing rows through GRDB's arguments took a quarter of a first connection (decision 0085).
extension Database {
    /// Runs a statement with values. It is prepared once and kept.
    ///
    /// - Throws: `DatabaseError`.
    func run(_ sql: String, _ values: [any CacheColumn] = []) throws {
        try run(sql) { row in for value in values { try row.put(value) } }
    }

    /// The same with values that are bound one after another.
    func run(_ sql: String, _ bind: (inout CacheWriter) throws -> Void) throws {
        try step(sql, bind) { _ in true }
    }

    /// Calls back with each row that a statement returns.
    ///
    /// - Throws: `DatabaseError`, ``DamagedRow``, and the errors of the body; `CancellationError` if the task that reads or writes is cancelled.
    func each(_ sql: String, _ values: [any CacheColumn] = [], _ body: (inout CacheReader) throws -> Void) throws {
        try step(sql, { row in for value in values { try row.put(value) } }) { row in
            try body(&row)
            return true
        }
    }

    /// Returns the value read from the first row of a statement; nil if there is none.
    ///
    /// - Throws: The errors of ``each(_:_:_:)``.
    func first<Value>(
        _ sql: String, _ values: [any CacheColumn] = [], _ read: (inout CacheReader) throws -> Value
    ) throws -> Value? {
        var first: Value?
        try step(sql, { row in for value in values { try row.put(value) } }) { row in
            first = try read(&row)
            return false
        }
        return first
    }

    /// The first column of the first row.
    func value<Value: CacheColumn>(_ sql: String, _ values: [any CacheColumn] = []) throws -> Value? {
        try first(sql, values) { try $0.value() }
    }

    /// The first column of all rows.
    func values<Value: CacheColumn>(_ sql: String, _ values: [any CacheColumn] = []) throws -> [Value] {
        var found: [Value] = []
        try each(sql, values) { found.append(try $0.value()) }
        return found
    }

    /// The first column of the first row, which is JSON.
    func json<Value: Decodable>(_ sql: String, _ values: [any CacheColumn] = []) throws -> Value? {
        try first(sql, values) { try StoredJSON.decode(from: $0.value()) }
    }

    /// The first model that a statement finds.
    func model<Model: CachedModel>(_ sql: String, _ values: [any CacheColumn]) throws -> Model? {
        try first(sql, values) { try Model(cached: &$0) }
    }

    /// The models that a statement finds, whose columns are the model's alone.
    func models<Model: CachedModel>(_ sql: String, _ values: [any CacheColumn]) throws -> [Model] {
        var models: [Model] = []
        try each(sql, values) { models.append(try Model(cached: &$0)) }
        return models
    }

    /// Binds values, steps through the rows until the body returns false, and leaves the statement ready for its next use.
    private func step(
        _ sql: String, _ bind: (inout CacheWriter) throws -> Void, _ body: (inout CacheReader) throws -> Bool
    ) throws {
        let statement = try cachedStatement(sql: sql).sqliteStatement
        defer {
            sqlite3_reset(statement)
            sqlite3_clear_bindings(statement)
        }
        var values = CacheWriter(statement)
        try bind(&values)
        while true {
            switch sqlite3_step(statement) {
            case SQLITE_ROW:
                var row = CacheReader(statement)
                guard try body(&row) else { return }
            case SQLITE_DONE: return
            case let code:
                let error = DatabaseError(resultCode: ResultCode(rawValue: code), message: lastErrorMessage, sql: sql)
                // GRDB interrupts statements if their task is cancelled or the app is suspended. For its own statements it knows which, and throws a
                // `CancellationError` for a cancellation.
                if error.isInterruptionError { try execute(sql: "SELECT 1") }
                throw error
            }
        }
    }
}

/// Binds the values of a row to a statement from left to right.
struct CacheWriter {
    private let statement: SQLiteStatement
    /// The number of values so far.
    private(set) var count: Int32 = 0

    fileprivate init(_ statement: SQLiteStatement) { self.statement = statement }

    mutating func put(_ value: some CacheColumn) throws { try value.bind(to: &self) }
    mutating func put(_ model: some CachedModel) throws { try model.cache(in: &self) }

    mutating func bindNull() throws { try bind { sqlite3_bind_null($0, $1) } }
    mutating func bind(_ value: Int64) throws { try bind { sqlite3_bind_int64($0, $1, value) } }

    mutating func bind(_ value: String) throws {
        var value = value
        try value.withUTF8 { bytes in
            try bytes.withMemoryRebound(to: CChar.self) { characters in
                try bind { statement, index in
                    // SQLite treats text without an address as null.
                    guard let start = characters.baseAddress else { return sqlite3_bind_text(statement, index, "", 0, Self.copied) }
                    return sqlite3_bind_text(statement, index, start, Int32(clamping: characters.count), Self.copied)
                }
            }
        }
    }

    mutating func bind(_ bytes: [UInt8]) throws {
        try bytes.withUnsafeBytes { bytes in
            try bind { statement, index in
                guard let start = bytes.baseAddress, !bytes.isEmpty else { return sqlite3_bind_zeroblob(statement, index, 0) }
                return sqlite3_bind_blob(statement, index, start, Int32(clamping: bytes.count), Self.copied)
            }
        }
    }

    /// SQLite makes its own copy (SQLITE_TRANSIENT), so a pointer needn't outlive the call.
    private static var copied: sqlite3_destructor_type { unsafeBitCast(-1, to: sqlite3_destructor_type.self) }

    private mutating func bind(_ bind: (SQLiteStatement, Int32) -> Int32) throws {
        count += 1
        let code = bind(statement, count)
        guard code == SQLITE_OK else { throw DatabaseError(resultCode: ResultCode(rawValue: code)) }
    }
}

/// Reads the columns of a statement's row from left to right.
struct CacheReader {
    private let statement: SQLiteStatement
    private var index: Int32 = 0

    fileprivate init(_ statement: SQLiteStatement) { self.statement = statement }

    /// The next column, or the next several.
    mutating func value<Value: CacheColumn>() throws -> Value { try Value(cached: &self) }

    /// A model whose first column is never null, or nil if there is no such row.
    mutating func optional<Model: CachedModel>(_ model: Model.Type = Model.self) throws -> Model? {
        guard isNull else { return try Model(cached: &self) }
        skip(Model.self)
        return nil
    }

    mutating func skip<Model: CachedModel>(_ model: Model.Type) { index += Int32(Model.cacheColumns.names.count) }

    var isNull: Bool { sqlite3_column_type(statement, index) == SQLITE_NULL }

    /// Skips a column.
    mutating func skip() { index += 1 }

    /// The next column as a whole number.
    ///
    /// - Throws: ``DamagedRow`` if it has another type.
    mutating func integer() throws -> Int64 {
        try expect(SQLITE_INTEGER)
        defer { index += 1 }
        return sqlite3_column_int64(statement, index)
    }

    /// The next column as text.
    ///
    /// - Throws: ``DamagedRow`` if it has another type.
    mutating func text() throws -> String {
        try expect(SQLITE_TEXT)
        defer { index += 1 }
        guard let start = sqlite3_column_text(statement, index) else { throw DamagedRow() }
        let bytes = UnsafeBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, index)))
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The next column as bytes.
    ///
    /// - Throws: ``DamagedRow`` if it has another type.
    mutating func bytes() throws -> Data {
        try expect(SQLITE_BLOB)
        defer { index += 1 }
        // SQLite returns no address for an empty blob.
        guard let start = sqlite3_column_blob(statement, index) else { return Data() }
        return Data(bytes: start, count: Int(sqlite3_column_bytes(statement, index)))
    }

    private func expect(_ type: Int32) throws {
        guard sqlite3_column_type(statement, index) == type else { throw DamagedRow() }
    }
}

/// A row of the cache contains something that this version never writes.
struct DamagedRow: Error {}
