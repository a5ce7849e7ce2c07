import Foundation
import RoostAPI

/// A place in an ordered list, handed out as an opaque text: base64url of a little JSON.
///
/// It holds the values by which the row at the place was sorted and its id, so that a page begins there whatever has moved since. It belongs to one
/// query: with other filters or another order the same values would be another place, and it is refused. It is no secret and isn't
/// signed: whoever makes one up begins at a place of their own choice in what they may see anyway.
struct Cursor: Hashable {
    /// Which rows it leads to. A page that came out empty leads back to the very row on which its cursor stood.
    enum Direction: String, Codable { case after, from, before, upTo }

    var direction: Direction
    var place: [SortKey]

    var isBackward: Bool { direction == .before || direction == .upTo }
    var includesPlace: Bool { direction == .from || direction == .upTo }

    /// What lies on the other side of the place.
    var turned: Cursor {
        let opposite: Direction =
            switch direction {
            case .after: .upTo
            case .from: .before
            case .before: .from
            case .upTo: .after
            }
        return Cursor(direction: opposite, place: place)
    }

    private struct Written: Codable {
        var q: String
        var d: Direction
        var k: [SortKey]
    }

    /// The name of a query: of all that decides which rows there are and in which order.
    ///
    /// - Parameter operation: without its limit and its cursor.
    static func name<O: RoostAPI.Operation>(of operation: O) throws -> String {
        let text = String(decoding: try JSONWriter.bytes(of: operation), as: UTF8.self)
        return String(Fingerprint.of("\(O.name) \(text)").prefix(16))
    }

    func text(query: String) throws -> String {
        Data(try JSONWriter.bytes(of: Written(q: query, d: direction, k: place))).base64EncodedString()
            .replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
            .replacingOccurrences(of: "=", with: "")
    }

    /// Reads what a client gave back; nil for the first page.
    ///
    /// - Parameter shape: of which kinds the values are that the query sorts by.
    init?(_ text: String?, query: String, shape: [SortKey.Kind]) throws(RoostError) {
        guard let text else { return nil }
        guard let written = Self.written(text), written.q == query, written.k.map(\.kind) == shape,
            written.k.allSatisfy(\.isStorable)
        else { throw .invalidArgument("cursor", "isn't a cursor of this query") }
        self.init(direction: written.d, place: written.k)
    }

    init(direction: Direction, place: [SortKey]) {
        self.direction = direction
        self.place = place
    }

    private static func written(_ text: String) -> Written? {
        var base64 = text.replacingOccurrences(of: "-", with: "+").replacingOccurrences(of: "_", with: "/")
        base64 += String(repeating: "=", count: (4 - base64.utf8.count % 4) % 4)
        guard let data = Data(base64Encoded: base64) else { return nil }
        return try? JSONDecoder().decode(Written.self, from: data)
    }
}

/// One of the values that a list is sorted by, compared as the databases compare it: numbers by size, texts by their bytes.
enum SortKey: Hashable, Comparable, Codable {
    case integer(Int64)
    case text(String)

    enum Kind { case integer, text }

    var kind: Kind {
        switch self {
        case .integer: .integer
        case .text: .text
        }
    }

    /// Whether every database takes it as a value.
    var isStorable: Bool {
        switch self {
        case .integer: true
        case .text(let text): !text.utf8.contains(0)
        }
    }

    init(_ kind: Kind, reading row: inout RowReader) {
        switch kind {
        case .integer: self = .integer(row.int64())
        case .text: self = .text(row.string())
        }
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let number = try? container.decode(Int64.self) {
            self = .integer(number)
        } else {
            self = .text(try container.decode(String.self))
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .integer(let number): try container.encode(number)
        case .text(let text): try container.encode(text)
        }
    }

    static func < (left: SortKey, right: SortKey) -> Bool {
        switch (left, right) {
        case (.integer(let left), .integer(let right)): left < right
        case (.text(let left), .text(let right)): left.utf8.lexicographicallyPrecedes(right.utf8)
        case (.integer, .text): true
        case (.text, .integer): false
        }
    }

    /// As the databases compare texts: Swift takes letters that are written with other code points for the same.
    static func == (left: SortKey, right: SortKey) -> Bool {
        switch (left, right) {
        case (.integer(let left), .integer(let right)): left == right
        case (.text(let left), .text(let right)): left.utf8.elementsEqual(right.utf8)
        default: false
        }
    }

    func hash(into hasher: inout Hasher) {
        switch self {
        case .integer(let number): hasher.combine(number)
        case .text(let text): for byte in text.utf8 { hasher.combine(byte) }
        }
    }

    fileprivate var sql: SQL {
        switch self {
        case .integer(let number): "\(number)"
        case .text(let text): "\(text)"
        }
    }
}

/// A stretch of an ordered list: from where, which way, and how many rows.
struct Stretch {
    /// Nil at the end at which the list begins.
    var start: [SortKey]?
    var includesStart = false
    var isDescending: Bool
    var count: Int

    /// What follows `WHERE …` for the rows that lie behind the start. The columns are those of the order, the id last.
    func condition(on columns: [SQL]) -> SQL {
        guard let start else { return "" }
        let (columns, values) = (columns.joined(by: ", "), start.map(\.sql).joined(by: ", "))
        return switch (isDescending, includesStart) {
        case (false, false): " AND (\(columns)) > (\(values))"
        case (false, true): " AND (\(columns)) >= (\(values))"
        case (true, false): " AND (\(columns)) < (\(values))"
        case (true, true): " AND (\(columns)) <= (\(values))"
        }
    }

    /// The order that a statement gives its rows.
    func order(by columns: [SQL]) -> SQL {
        columns.map { isDescending ? "\($0) DESC" : $0 }.joined(by: ", ")
    }

    /// Whether a row lies behind the start.
    func holds(_ place: [SortKey]) -> Bool {
        guard let start else { return true }
        if place == start { return includesStart }
        return precedes(start, place)
    }

    /// Whether one row comes before another on this way.
    func precedes(_ one: [SortKey], _ other: [SortKey]) -> Bool {
        isDescending ? other.lexicographicallyPrecedes(one) : one.lexicographicallyPrecedes(other)
    }
}

extension [SQL] {
    /// All of them, with a separator in between.
    func joined(by separator: SQL) -> SQL {
        guard let first else { return "" }
        return dropFirst().reduce(first) { "\($0)\(separator)\($1)" }
    }

    /// All conditions at once; true where there is none.
    var allOf: SQL { isEmpty ? "1 = 1" : joined(by: " AND ") }
}
