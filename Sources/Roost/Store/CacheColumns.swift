import Foundation
import GRDB
import RoostAPI

/// The names of the columns in which the cache keeps a model's fields.
///
/// The cache's columns have no types: a table is made of these names, and of what is searched beside them. So a new field needs nothing
/// here; the cache is fetched again, since the schema is another one.
struct CacheColumns: ExpressibleByStringInterpolation, CustomStringConvertible {
    let names: [String]

    init(stringLiteral value: String) {
        names = value.split(whereSeparator: { $0 == "," || $0.isWhitespace }).map(String.init)
    }

    /// The names with commas between.
    var description: String { names.joined(separator: ", ") }

    /// The same of a table that is joined.
    func of(_ table: String) -> String { names.map { "\(table).\($0)" }.joined(separator: ", ") }

    /// A placeholder for each.
    var placeholders: String { names.map { _ in "?" }.joined(separator: ", ") }

    /// Each with the new value of an upsert.
    var replaced: String { names.map { "\($0) = excluded.\($0)" }.joined(separator: ", ") }
}

/// A model that the cache keeps in columns.
protocol CachedModel {
    static var cacheColumns: CacheColumns { get }
    /// Reads the columns, from the reader's place on.
    init(cached row: inout CacheReader) throws
    /// Puts the values of the columns, in their order.
    func cache(in row: inout CacheWriter) throws
}

/// Reads the columns of a row from left to right.
struct CacheReader {
    private let row: Row
    private var index: Int

    init(_ row: Row, from index: Int = 0) {
        (self.row, self.index) = (row, index)
    }

    /// The next column, or the next several.
    mutating func value<Value: CacheColumn>() throws -> Value { try Value(cached: &self) }

    /// A model whose first column is never null, or nil where there is no such row.
    mutating func optional<Model: CachedModel>(_ model: Model.Type = Model.self) throws -> Model? {
        guard isNull else { return try Model(cached: &self) }
        skip(Model.self)
        return nil
    }

    mutating func skip<Model: CachedModel>(_ model: Model.Type) { index += Model.cacheColumns.names.count }

    var isNull: Bool { row.hasNull(atIndex: index) }

    /// Passes a column.
    mutating func skip() { index += 1 }

    /// The next column as SQLite has it.
    ///
    /// - Throws: ``DamagedRow`` if it is null.
    mutating func next<Value: DatabaseValueConvertible & StatementColumnConvertible>() throws -> Value {
        guard let value = row[index] as Value? else { throw DamagedRow() }
        index += 1
        return value
    }
}

/// Takes the values of a row from left to right.
struct CacheWriter {
    private(set) var values: [(any DatabaseValueConvertible)?] = []

    mutating func put(_ value: some CacheColumn) throws { values.append(try value.cached()) }
    mutating func put(_ model: some CachedModel) throws { try model.cache(in: &self) }
}

/// A row of the cache has something that this version never writes.
struct DamagedRow: Error {}

extension Database {
    /// Runs a statement with values. It is prepared once and kept.
    func run(_ sql: String, _ row: CacheWriter) throws { try run(sql, StatementArguments(row.values)) }

    /// The first model that a statement finds.
    func model<Model: CachedModel>(_ sql: String, _ arguments: StatementArguments) throws -> Model? {
        let rows = try Row.fetchCursor(try cachedStatement(sql: sql), arguments: arguments)
        return try rows.next().map { row in
            var reader = CacheReader(row)
            return try Model(cached: &reader)
        }
    }

    /// The models that a statement finds, whose columns are the model's alone.
    func models<Model: CachedModel>(_ sql: String, _ arguments: StatementArguments) throws -> [Model] {
        var models: [Model] = []
        let rows = try Row.fetchCursor(try cachedStatement(sql: sql), arguments: arguments)
        while let row = try rows.next() {
            var reader = CacheReader(row)
            models.append(try Model(cached: &reader))
        }
        return models
    }
}

// MARK: Values

/// A value in one column of the cache.
protocol CacheColumn {
    init(cached row: inout CacheReader) throws
    func cached() throws -> (any DatabaseValueConvertible)?
}

extension Int: CacheColumn {
    init(cached row: inout CacheReader) throws { self = try row.next() }
    func cached() -> (any DatabaseValueConvertible)? { self }
}

extension Int64: CacheColumn {
    init(cached row: inout CacheReader) throws { self = try row.next() }
    func cached() -> (any DatabaseValueConvertible)? { self }
}

extension Bool: CacheColumn {
    init(cached row: inout CacheReader) throws { self = try row.next() }
    func cached() -> (any DatabaseValueConvertible)? { self }
}

extension String: CacheColumn {
    init(cached row: inout CacheReader) throws { self = try row.next() }
    func cached() -> (any DatabaseValueConvertible)? { self }
}

extension Data: CacheColumn {
    init(cached row: inout CacheReader) throws { self = try row.next() }
    func cached() -> (any DatabaseValueConvertible)? { self }
}

extension Timestamp: CacheColumn {
    init(cached row: inout CacheReader) throws { self.init(milliseconds: try row.next()) }
    func cached() -> (any DatabaseValueConvertible)? { milliseconds }
}

extension MessageID: CacheColumn {
    init(cached row: inout CacheReader) throws { self.init(rawValue: try row.next()) }
    func cached() -> (any DatabaseValueConvertible)? { rawValue }
}

extension CacheColumn where Self: WireString {
    init(cached row: inout CacheReader) throws { self.init(rawValue: try row.next()) }
    func cached() -> (any DatabaseValueConvertible)? { rawValue }
}

extension ChannelID: CacheColumn {}
extension UserID: CacheColumn {}
extension ClientID: CacheColumn {}
extension ChannelRole: CacheColumn {}
extension ChannelType: CacheColumn {}

extension CacheColumn where Self: WireEnumeration {
    init(cached row: inout CacheReader) throws {
        guard let value = Self(rawValue: try row.next()) else { throw DamagedRow() }
        self = value
    }
    func cached() -> (any DatabaseValueConvertible)? { rawValue }
}

extension MembershipState: CacheColumn {}
extension HiddenState: CacheColumn {}
extension InvitationState: CacheColumn {}
extension MessageKind: CacheColumn {}
extension PushOption: CacheColumn {}

/// A value that stays JSON.
protocol JSONCacheColumn: CacheColumn, Codable {}

extension JSONCacheColumn {
    init(cached row: inout CacheReader) throws { self = try StoredJSON.decode(Self.self, from: row.next()) }
    func cached() throws -> (any DatabaseValueConvertible)? { try StoredJSON.encode(self) }
}

extension JSONValue: JSONCacheColumn {}
extension PolicyChanges: JSONCacheColumn {}

/// A value that lists of are cached in a column, as JSON.
protocol ListedInCacheColumn: Codable {}

extension String: ListedInCacheColumn {}
extension Mentionee: ListedInCacheColumn {}

extension [String: [String]]: JSONCacheColumn, CacheColumn {}

/// A list. Most are empty, and read without a decoder.
extension Array: CacheColumn where Element: ListedInCacheColumn {
    init(cached row: inout CacheReader) throws {
        let json: Data = try row.next()
        self = json == Self.empty ? [] : try StoredJSON.decode(Self.self, from: json)
    }
    func cached() throws -> (any DatabaseValueConvertible)? { isEmpty ? Self.empty : try StoredJSON.encode(self) }

    private static var empty: Data { Data("[]".utf8) }
}

extension Optional: CacheColumn where Wrapped: CacheColumn {
    init(cached row: inout CacheReader) throws {
        if row.isNull {
            row.skip()
            self = nil
        } else {
            self = try Wrapped(cached: &row)
        }
    }
    func cached() throws -> (any DatabaseValueConvertible)? { try self?.cached() }
}
