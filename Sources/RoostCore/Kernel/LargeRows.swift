/// The rows of a table whose contents can be so large that a page in bytes has far fewer of them than its limit.
struct LargeRows {
    /// The table's name in the columns, or its alias.
    let table: SQL
    /// The columns that are read: by the same names, a statement around the selection has them too.
    let columns: SQL
    /// The bytes of a row's content in PostgreSQL, which knows them without reading the content: never more than its `contentSizeBytes`.
    let sizeBytes: SQL
}

extension Transaction {
    /// Runs a statement whose rows can be large, and hands them to the body until it returns false.
    ///
    /// SQLite steps no further then. PostgreSQL sends all rows before the body gets the first, so there the statement ends by itself,
    /// with the row after those that together have more than `sizeBytesMax` bytes: a body that takes at least one row always gets
    /// the one for which it has no room, and so knows that there are more. At most `sizeBytesMax` bytes and two rows are fetched.
    ///
    /// - Parameters:
    ///   - selection: The statement: `SELECT … FROM … WHERE … ORDER BY … LIMIT …`, with the columns and the order of the other parameters.
    ///   - sizeBytesMax: The bytes of content for which the body has room. It takes the first row even if that has more.
    func eachWhile(
        _ selection: SQL, of rows: LargeRows, orderedBy order: SQL, sizeBytesMax: Int, _ body: (inout RowReader) throws -> Bool
    ) throws {
        let sql = dialect.fetchesWholeResults ? selection.ending(after: sizeBytesMax, of: rows, orderedBy: order) : selection
        do {
            try each(sql) { row in
                guard try body(&row) else { throw EnoughRows() }
            }
        } catch is EnoughRows {}
    }
}

/// Ends a statement that has more rows.
private struct EnoughRows: Error {}

extension SQL {
    /// Returns the selection up to the row after those that together have more than this many bytes. The server stores the length of a
    /// long text beside it, so it neither reads nor sends the contents of the rows beyond.
    fileprivate func ending(after sizeBytesMax: Int, of rows: LargeRows, orderedBy order: SQL) -> SQL {
        """
        SELECT \(rows.columns) FROM (
            SELECT \(rows.table).*, SUM(\(rows.sizeBytes)) OVER (
                ORDER BY \(order) ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING
            ) AS bytes_before
            FROM (\(self)) AS \(rows.table)
        ) AS \(rows.table)
        WHERE COALESCE(bytes_before, 0) <= \(sizeBytesMax) ORDER BY \(order)
        """
    }
}
