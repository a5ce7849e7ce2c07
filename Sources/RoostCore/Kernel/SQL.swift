public import RoostAPI

/// A statement in the dialect that SQLite and PostgreSQL share, with its values apart.
///
/// It is built by string interpolation, and an interpolated value can only become a placeholder:
///
///     let sql: SQL = "SELECT seq FROM channel_heads WHERE channel_id = \(channel)"
///
/// No initialiser takes a string that isn't a literal, so that no value can become part of the text.
public struct SQL: ExpressibleByStringInterpolation, Sendable {
    /// The text, with `?` for each value.
    public private(set) var text: String
    public private(set) var values: [SQLValue]

    public init(stringLiteral value: StaticString) {
        text = value.description
        values = []
    }

    public init(stringInterpolation interpolation: Interpolation) {
        text = interpolation.text
        values = interpolation.values
    }

    /// Returns the same statement with other values, as many.
    func with(_ values: [SQLValue]) -> SQL {
        var statement = self
        statement.values = values
        return statement
    }

    public struct Interpolation: StringInterpolationProtocol {
        fileprivate var text = ""
        fileprivate var values: [SQLValue] = []

        public init(literalCapacity: Int, interpolationCount: Int) {
            text.reserveCapacity(literalCapacity + interpolationCount)
            values.reserveCapacity(interpolationCount)
        }

        public mutating func appendLiteral(_ literal: StaticString) {
            text += literal.description
        }

        /// A piece of SQL that was itself built from literals: a list of columns, a shared condition.
        public mutating func appendInterpolation(_ fragment: SQL) {
            text += fragment.text
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
        /// The last is repeated up to a power of two, so that lists of any length need a dozen prepared statements and not a thousand.
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
            for index in 0..<count {
                last = iterator.next() ?? last
                if index > 0 { text += ", " }
                append(last)
            }
        }

        /// The values of several rows, each in parentheses.
        mutating func appendInterpolation(rows: [[SQLValue]]) {
            for (index, row) in rows.enumerated() {
                text += index == 0 ? "(" : ", ("
                append(row)
                text += ")"
            }
        }

        /// The values of a row, in the order of its columns, with commas between.
        mutating func appendInterpolation(row: some BoundRow) throws {
            var bound = RowValues()
            try row.bind(to: &bound)
            append(bound.values)
        }

        private mutating func append(_ values: [SQLValue]) {
            for index in values.indices { text += index == 0 ? "?" : ", ?" }
            self.values += values
        }

        private mutating func append(_ value: SQLValue?) {
            text += "?"
            values.append(value ?? .null)
        }
    }
}

/// A value bound to a placeholder.
public enum SQLValue: Hashable, Sendable {
    case null
    case integer(Int64)
    case text(String)
}
