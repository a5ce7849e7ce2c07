/// A part of an ordered list that one statement reads: its start, direction and number of rows.
struct KeysetPage {
    /// Nil for the end from which the list starts.
    var start: [SortKey]?
    var includesStart = false
    var isDescending: Bool
    var count: Int

    /// Returns the `WHERE` condition for the rows after the start. The columns are those of the order, with the id last.
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

    /// The `ORDER BY` terms of a statement.
    func order(by columns: [SQL]) -> SQL {
        columns.map { isDescending ? "\($0) DESC" : $0 }.joined(by: ", ")
    }

    /// Returns whether a row is after the start.
    func holds(_ place: [SortKey]) -> Bool {
        guard let start else { return true }
        if place == start { return includesStart }
        return precedes(start, place)
    }

    /// Returns whether one row comes before another in this direction.
    func precedes(_ one: [SortKey], _ other: [SortKey]) -> Bool {
        isDescending ? other.lexicographicallyPrecedes(one) : one.lexicographicallyPrecedes(other)
    }
}

extension [SQL] {
    /// Joins the fragments with a separator.
    func joined(by separator: SQL) -> SQL {
        guard let first else { return "" }
        return dropFirst().reduce(first) { "\($0)\(separator)\($1)" }
    }

    /// All conditions combined with `AND`; true if there are none.
    var allOf: SQL { isEmpty ? "1 = 1" : joined(by: " AND ") }
}
