/// A row to insert.
public struct NewRow: Sendable {
    /// The table, and its columns in the order of the values: `messages (channel_id, seq)`.
    public let table: SQL
    /// The values, with commas between.
    public let values: SQL

    public init(into table: SQL, _ values: SQL) {
        self.table = table
        self.values = values
    }

    /// The statement that inserts rows of one table, at least one.
    ///
    /// - Parameter ending: What becomes of rows whose key is taken: `ON CONFLICT …`. Without it they fail the statement.
    public static func inserting(_ rows: some Collection<NewRow>, _ ending: SQL = "") -> SQL {
        "INSERT INTO \(rows.first?.table ?? "") VALUES \(rows: rows) \(ending)"
    }
}
