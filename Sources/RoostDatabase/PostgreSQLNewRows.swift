#if Cluster
import RoostCore

/// New rows of a transaction that wait until a statement, or the commit, needs them to be there. So the rows of a batch go to the server in few
/// statements.
struct PostgreSQLNewRows {
    /// Rows of one table, with one end of the statement.
    private struct Group {
        let table: SQL
        let ending: SQL
        var rows: [NewRow]
        /// How many of them the operation under way found.
        var countBefore = 0
    }

    private var groups: [Group] = []
    private var names: Set<String> = []
    private var namesOfOperation: [String] = []
    private var count = 0

    /// The rows that wait at most.
    static let countMax = 256
    /// How many rows a statement has. A statement is prepared for each, and the largest stays far below the server's 65,535 values.
    static let rowsPerStatement = [64, 16, 4, 1]

    var isEmpty: Bool { groups.isEmpty }
    var hasRowsOfOperation: Bool { groups.contains { $0.rows.count > $0.countBefore } }

    /// Whether those that are here have to be sent before a row is added.
    ///
    /// Rows of one table keep their order, and so are of one statement; and no statement meets a row twice, which the server refuses for those
    /// that replace rows.
    func haveToGo(before row: NewRow, named name: String?, _ ending: SQL) -> Bool {
        if count >= Self.countMax || name.map(names.contains) ?? false { return true }
        return groups.contains { $0.table.text == row.table.text && $0.ending.text != ending.text }
    }

    mutating func add(_ row: NewRow, named name: String?, _ ending: SQL) {
        if let index = groups.firstIndex(where: { $0.table.text == row.table.text }) {
            groups[index].rows.append(row)
        } else {
            groups.append(Group(table: row.table, ending: ending, rows: [row]))
        }
        if let name {
            names.insert(name)
            namesOfOperation.append(name)
        }
        count += 1
    }

    mutating func beginOperation() {
        namesOfOperation.removeAll(keepingCapacity: true)
        for index in groups.indices { groups[index].countBefore = groups[index].rows.count }
    }

    /// Drops what the operation under way has added.
    mutating func undoOperation() {
        names.subtract(namesOfOperation)
        namesOfOperation.removeAll(keepingCapacity: true)
        for index in groups.indices {
            let added = groups[index].rows.count - groups[index].countBefore
            groups[index].rows.removeLast(added)
            count -= added
        }
        groups.removeAll { $0.rows.isEmpty }
    }

    /// Returns the statements that insert the rows, and forgets these.
    mutating func take() -> [SQL] {
        var statements: [SQL] = []
        for group in groups {
            var rest = group.rows[...]
            for size in Self.rowsPerStatement {
                while rest.count >= size {
                    statements.append(NewRow.inserting(rest.prefix(size), group.ending))
                    rest = rest.dropFirst(size)
                }
            }
        }
        groups.removeAll(keepingCapacity: true)
        names.removeAll(keepingCapacity: true)
        namesOfOperation.removeAll(keepingCapacity: true)
        count = 0
        return statements
    }
}
#endif
