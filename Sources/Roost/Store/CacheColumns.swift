import Foundation
import RoostAPI

/// The names of the columns in which the cache keeps a model's fields.
///
/// The cache's columns have no types: a table consists of these names and of additional columns to search by. A new field needs nothing here: it
/// changes the schema, so the cache is fetched again, as do a field of a model kept as JSON and a value of an enumeration (``Store/schema(_:)``).
struct CacheColumns: ExpressibleByStringInterpolation, CustomStringConvertible {
    let names: [String]

    init(stringLiteral value: String) {
        names = value.split(whereSeparator: { $0 == "," || $0.isWhitespace }).map(String.init)
    }

    /// The names, separated by commas.
    var description: String { names.joined(separator: ", ") }

    /// The same for a joined table.
    func of(_ table: String) -> String { names.map { "\(table).\($0)" }.joined(separator: ", ") }

    /// A placeholder for each name.
    var placeholders: String { names.map { _ in "?" }.joined(separator: ", ") }

    /// Each name, set to the new value of an upsert.
    var replaced: String { names.map { "\($0) = excluded.\($0)" }.joined(separator: ", ") }
}

/// A model that the cache keeps in columns.
protocol CachedModel {
    static var cacheColumns: CacheColumns { get }
    /// Reads the columns, from the reader's position on.
    init(cached row: inout CacheReader) throws
    /// Writes the values of the columns, in their order.
    func cache(in row: inout CacheWriter) throws
}

// MARK: Values

/// A value in one column of the cache.
protocol CacheColumn: Sendable {
    init(cached row: inout CacheReader) throws
    func bind(to row: inout CacheWriter) throws
}

extension Int: CacheColumn {
    init(cached row: inout CacheReader) throws {
        guard let value = Int(exactly: try row.integer()) else { throw DamagedRow() }
        self = value
    }
    func bind(to row: inout CacheWriter) throws { try row.bind(Int64(self)) }
}

extension Int64: CacheColumn {
    init(cached row: inout CacheReader) throws { self = try row.integer() }
    func bind(to row: inout CacheWriter) throws { try row.bind(self) }
}

extension Bool: CacheColumn {
    init(cached row: inout CacheReader) throws { self = try row.integer() != 0 }
    func bind(to row: inout CacheWriter) throws { try row.bind(Int64(self ? 1 : 0)) }
}

extension String: CacheColumn {
    init(cached row: inout CacheReader) throws { self = try row.text() }
    func bind(to row: inout CacheWriter) throws { try row.bind(self) }
}

extension Data: CacheColumn {
    init(cached row: inout CacheReader) throws { self = try row.bytes() }
    func bind(to row: inout CacheWriter) throws { try row.bind([UInt8](self)) }
}

extension Timestamp: CacheColumn {
    init(cached row: inout CacheReader) throws { self.init(milliseconds: try row.value()) }
    func bind(to row: inout CacheWriter) throws { try milliseconds.bind(to: &row) }
}

extension MessageID: CacheColumn {
    init(cached row: inout CacheReader) throws { self.init(rawValue: try row.value()) }
    func bind(to row: inout CacheWriter) throws { try rawValue.bind(to: &row) }
}

extension CacheColumn where Self: WireString {
    init(cached row: inout CacheReader) throws { self.init(rawValue: try row.value()) }
    func bind(to row: inout CacheWriter) throws { try rawValue.bind(to: &row) }
}

extension ChannelID: CacheColumn {}
extension UserID: CacheColumn {}
extension ClientID: CacheColumn {}
extension ChannelRole: CacheColumn {}
extension ChannelType: CacheColumn {}

extension CacheColumn where Self: WireEnumeration {
    init(cached row: inout CacheReader) throws {
        guard let value = Self(rawValue: try row.value()) else { throw DamagedRow() }
        self = value
    }
    func bind(to row: inout CacheWriter) throws { try rawValue.bind(to: &row) }
}

extension MembershipState: CacheColumn {}
extension HiddenState: CacheColumn {}
extension InvitationState: CacheColumn {}
extension MessageKind: CacheColumn {}
extension PushOption: CacheColumn {}
extension AppRole: CacheColumn {}

/// A value stored as JSON.
protocol JSONCacheColumn: CacheColumn, Codable {}

extension JSONCacheColumn {
    init(cached row: inout CacheReader) throws { self = try StoredJSON.decodeAnswer(Self.self, from: row.value()) }
    func bind(to row: inout CacheWriter) throws { try row.bind(JSONWriter.bytes(of: self)) }
}

extension JSONValue: JSONCacheColumn {}
extension PolicyChanges: JSONCacheColumn {}

/// An element of lists that are cached in a column, as JSON.
protocol ListedInCacheColumn: Codable, Sendable {}

extension String: ListedInCacheColumn {}
extension Mentionee: ListedInCacheColumn {}

extension [String: [String]]: JSONCacheColumn, CacheColumn {}

/// A list. Most are empty and read without a decoder.
extension Array: CacheColumn where Element: ListedInCacheColumn {
    init(cached row: inout CacheReader) throws {
        let json: Data = try row.value()
        self = json.elementsEqual("[]".utf8) ? [] : try StoredJSON.decode(Self.self, from: json)
    }
    func bind(to row: inout CacheWriter) throws { try row.bind(isEmpty ? [UInt8]("[]".utf8) : JSONWriter.bytes(of: self)) }
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
    func bind(to row: inout CacheWriter) throws {
        if let self { try self.bind(to: &row) } else { try row.bindNull() }
    }
}
