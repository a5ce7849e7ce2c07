/// A value that a list is sorted by, compared as the databases compare it: numbers by size, texts by their bytes.
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

    /// Whether every database accepts it as a value.
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

    /// Compares texts like the databases do: in Swift, canonically equivalent texts are equal.
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

    var sql: SQL {
        switch self {
        case .integer(let number): "\(number)"
        case .text(let text): "\(text)"
        }
    }
}
