public import RoostAPI

/// A statement in the dialect that SQLite and PostgreSQL share, with its values apart.
///
/// It is built by string interpolation, and an interpolated value can only become a placeholder:
///
///     let sql: SQL = "SELECT seq FROM channel_heads WHERE channel_id = \(channel)"
///
/// No initialiser takes a string that isn't a literal, so no value can become part of the text.
public struct SQL: ExpressibleByStringInterpolation, Sendable {
    /// The parts of the text, and the key by which a prepared statement is found.
    public private(set) var pieces: Pieces
    public private(set) var values: [SQLValue]

    public init(stringLiteral value: StaticString) {
        pieces = Pieces()
        pieces.append(value)
        values = []
    }

    /// The text, with `?` for each value.
    public var text: String { pieces.text }

    /// Whether the statement only reads. One that writes can return rows, too.
    public var isSelection: Bool { pieces.begins(with: "SELECT") }

    public init(stringInterpolation interpolation: Interpolation) {
        pieces = interpolation.pieces
        values = interpolation.values
    }

    /// Returns the same statement with the same number of other values.
    func with(_ values: [SQLValue]) -> SQL {
        var statement = self
        statement.values = values
        return statement
    }

    public struct Interpolation: StringInterpolationProtocol {
        fileprivate var pieces: Pieces
        fileprivate var values: [SQLValue] = []

        public init(literalCapacity: Int, interpolationCount: Int) {
            pieces = Pieces(capacity: 2 * interpolationCount + 1)
            values.reserveCapacity(interpolationCount)
        }

        public mutating func appendLiteral(_ literal: StaticString) { pieces.append(literal) }

        /// A piece of SQL that was itself built from literals: a list of columns, a shared condition.
        public mutating func appendInterpolation(_ fragment: SQL) {
            pieces.append(fragment.pieces)
            values += fragment.values
        }
        public mutating func appendInterpolation(_ value: Int64?) { append(value.map(SQLValue.integer)) }
        public mutating func appendInterpolation(_ value: Int?) { append(value.map { .integer(Int64($0)) }) }
        public mutating func appendInterpolation(_ value: Bool) { append(.integer(value ? 1 : 0)) }
        public mutating func appendInterpolation(_ value: String?) { append(value.map(SQLValue.text)) }
        public mutating func appendInterpolation(_ value: (some WireString)?) { append(value.map { .text($0.rawValue) }) }
        public mutating func appendInterpolation(_ value: MessageID?) { append(value.map { .integer($0.rawValue) }) }
        public mutating func appendInterpolation(_ value: Timestamp?) { append(value.map { .integer($0.milliseconds) }) }
        public mutating func appendInterpolation<E: WireEnumeration>(_ value: E) { append(.text(value.rawValue)) }
        /// The values of an `IN (…)`, at least one.
        ///
        /// The last is repeated up to a power of two, so lists of any length need a dozen prepared statements and not a thousand.
        public mutating func appendInterpolation(list values: some Collection<String>) {
            append(list: values.lazy.map(SQLValue.text))
        }
        public mutating func appendInterpolation(list values: some Collection<Int64>) {
            append(list: values.lazy.map(SQLValue.integer))
        }

        private mutating func append(list values: some Collection<SQLValue>) {
            var count = 1
            while count < values.count { count *= 2 }
            var last: SQLValue?
            var iterator = values.makeIterator()
            for _ in 0..<count {
                last = iterator.next() ?? last
                self.values.append(last ?? .null)
            }
            pieces.appendValues(count)
        }

        /// The values of several rows, each in parentheses.
        mutating func appendInterpolation(rows: [[SQLValue]]) {
            for (index, row) in rows.enumerated() {
                pieces.append(index == 0 ? "(" : ", (")
                append(row)
                pieces.append(")")
            }
        }

        /// The values of a row, in the order of its columns, separated by commas.
        mutating func appendInterpolation(row: some BoundRow) throws {
            var bound = RowValues()
            try row.bind(to: &bound)
            append(bound.values)
        }

        private mutating func append(_ values: [SQLValue]) {
            pieces.appendValues(values.count)
            self.values += values
        }

        private mutating func append(_ value: SQLValue?) {
            pieces.appendValues(1)
            values.append(value ?? .null)
        }
    }

    /// The literals that make up a statement's text. They are only joined for a statement that isn't prepared yet: joining and
    /// hashing them took as long as running some of the statements.
    ///
    /// Equal ones have the same text. Two with the same text can differ: in the addresses of their literals, or in how they were put together.
    public struct Pieces: Hashable, Sendable {
        private var pieces: [Piece] = []
        /// A mix of the literals' addresses and the numbers of values: hashing each piece would take longer.
        private var mix: UInt = 0

        fileprivate init(capacity: Int = 1) { pieces.reserveCapacity(capacity) }

        fileprivate mutating func append(_ literal: StaticString) {
            guard literal.utf8CodeUnitCount > 0 else { return }
            pieces.append(.literal(literal))
            mix(UInt(bitPattern: literal.utf8Start))
        }
        fileprivate mutating func append(_ other: Pieces) {
            pieces += other.pieces
            mix(other.mix)
        }
        fileprivate mutating func appendValues(_ count: Int) {
            pieces.append(.values(count))
            mix(UInt(count))
        }
        private mutating func mix(_ part: UInt) { mix = (mix << 7 | mix >> (UInt.bitWidth - 7)) &+ part }

        public static func == (one: Pieces, other: Pieces) -> Bool { one.mix == other.mix && one.pieces == other.pieces }

        public func hash(into hasher: inout Hasher) { hasher.combine(mix) }

        /// The text, with `?` for each value.
        public var text: String {
            pieces.reduce(into: "") { text, piece in
                switch piece {
                case .literal(let literal): text += literal.description
                case .values(let count): text += repeatElement("?", count: count).joined(separator: ", ")
                }
            }
        }

        fileprivate func begins(with word: StaticString) -> Bool {
            guard case .literal(let first)? = pieces.first, first.utf8CodeUnitCount >= word.utf8CodeUnitCount else { return false }
            return first.withUTF8Buffer { first in word.withUTF8Buffer { first.starts(with: $0) } }
        }

        private enum Piece: Equatable, Sendable {
            case literal(StaticString)
            /// This many values, separated by commas.
            case values(Int)

            static func == (one: Piece, other: Piece) -> Bool {
                switch (one, other) {
                case (.literal(let one), .literal(let other)):
                    one.utf8Start == other.utf8Start && one.utf8CodeUnitCount == other.utf8CodeUnitCount
                case (.values(let one), .values(let other)): one == other
                default: false
                }
            }
        }
    }
}

/// A value bound to a placeholder.
public enum SQLValue: Hashable, Sendable {
    case null
    case integer(Int64)
    case text(String)
}
