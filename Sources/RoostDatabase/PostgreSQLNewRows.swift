#if Cluster
import RoostCore

/// A transaction's new rows that are held back until a statement, or the commit, needs them, so the rows of a batch are sent to the server in few
/// statements.
struct PostgreSQLNewRows {
    /// Rows of one kind.
    private struct Group {
        let kind: NewRow.Kind
        /// Whether a taken key fails the statement, whatever the rows' kind says.
        let isFailing: Bool
        var rows: [NewRow]
        /// The number of rows before the current operation.
        var countBefore = 0
    }

    private var groups: [Group] = []
    private var names: Set<String> = []
    private var namesOfOperation: [String] = []
    private var count = 0

    /// The maximum number of rows held back.
    static let countMax = 256

    var isEmpty: Bool { groups.isEmpty }
    var hasRowsOfOperation: Bool { groups.contains { $0.rows.count > $0.countBefore } }

    /// Whether the rows held back have to be sent before a row is added.
    ///
    /// Rows of one table keep their order, and so share a statement. No statement contains a row twice, which the server refuses for statements that
    /// replace rows.
    ///
    /// - Parameter name: Its key; nil for a row that fails if its key is taken.
    func haveToGo(before row: NewRow, named name: String?) -> Bool {
        if count >= Self.countMax || name.map(names.contains) ?? false { return true }
        return groups.contains { $0.kind.sharesTable(with: row.kind) && !($0.kind === row.kind && $0.isFailing == (name == nil)) }
    }

    mutating func add(_ row: NewRow, named name: String?) {
        if let index = groups.firstIndex(where: { $0.kind === row.kind }) {
            groups[index].rows.append(row)
        } else {
            groups.append(Group(kind: row.kind, isFailing: name == nil, rows: [row]))
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

    /// Drops the rows that the current operation has added.
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

    /// Returns the statements that insert the rows, and forgets the rows.
    mutating func take() -> [SQL] {
        var statements: [SQL] = []
        for group in groups {
            statements += group.rows.cutForStatements().map { NewRow.inserting($0, failing: group.isFailing) }
        }
        groups.removeAll(keepingCapacity: true)
        names.removeAll(keepingCapacity: true)
        namesOfOperation.removeAll(keepingCapacity: true)
        count = 0
        return statements
    }
}
#endif
