/// A row to insert.
public struct NewRow: Sendable {
    public let kind: Kind
    /// Its values, in the order of the kind's columns.
    public let values: [SQLValue]

    public init(_ kind: Kind, _ values: [SQLValue]) {
        self.kind = kind
        self.values = values
    }

    /// Creates a row whose values a body collects.
    init(_ kind: Kind, _ collect: (inout RowValues) throws -> Void) rethrows {
        var values = RowValues(capacity: kind.columnCount)
        try collect(&values)
        self.init(kind, values.values)
    }

    /// Rows of one table that are inserted alike. The text of the statement for a single row is built once: with a message's
    /// columns, building it took as long as collecting the values.
    public final class Kind: Sendable {
        /// The table, and its columns in the order of the values: `messages (channel_id, seq)`.
        fileprivate let table: SQL
        /// The handling of a row whose key is taken: `ON CONFLICT …`.
        fileprivate let ending: SQL
        fileprivate let columnCount: Int
        /// The statement for one row, with NULL for every value.
        private let single: SQL
        private let tableText: String

        public init(into table: SQL, _ ending: SQL) {
            self.table = table
            self.ending = ending
            tableText = table.text
            columnCount = tableText.utf8.count { $0 == UInt8(ascii: ",") } + 1
            let nothing = Array(repeating: SQLValue.null, count: columnCount)
            single = "INSERT INTO \(table) VALUES \(rows: [nothing]) \(ending)"
        }

        /// Creates a kind whose rows are skipped if their key is taken.
        ///
        /// - Parameter key: The columns of a unique index.
        public convenience init(into table: SQL, unlessTaken key: SQL) { self.init(into: table, "ON CONFLICT (\(key)) DO NOTHING") }

        /// Whether rows of both kinds go to the same table.
        public func sharesTable(with other: Kind) -> Bool { tableText == other.tableText }

        fileprivate func inserting(_ values: [SQLValue]) -> SQL { single.with(values) }
    }

    /// The statement that inserts the row.
    public var inserting: SQL { kind.inserting(values) }

    /// The statement that inserts rows of one kind, at least one.
    ///
    /// - Parameter failing: Whether a taken key fails the statement, whatever the kind says.
    public static func inserting(_ rows: some Collection<NewRow>, failing: Bool) -> SQL {
        guard let kind = rows.first?.kind else { return "" }
        return "INSERT INTO \(kind.table) VALUES \(rows: rows.map(\.values)) \(failing ? "" : kind.ending)"
    }
}

extension Collection {
    /// Splits rows into chunks of one statement each: few chunks, of few lengths, since each length is another statement to
    /// prepare. The longest stays far below PostgreSQL's 65,535 values per statement.
    public func cutForStatements() -> [SubSequence] {
        var parts: [SubSequence] = []
        var rest = self[...]
        for length in [64, 16, 4, 1] {
            while rest.count >= length {
                parts.append(rest.prefix(length))
                rest = rest.dropFirst(length)
            }
        }
        return parts
    }
}
