import GRDBSQLite
import RoostCore

/// A connection's prepared statements by their texts, of which it keeps the most recently used.
///
/// Most texts recur with each operation. Those of a list depend on its filters, in more combinations than there is memory for, and clients choose
/// them. So there are two halves: used statements move into the recent half, and when that is full it becomes the former one, whose statements end.
struct RecentStatements<Statement> {
    /// The maximum number of statements in a half.
    let halfMax: Int
    private var recent: [SQL.Pieces: Statement] = [:]
    private var former: [SQL.Pieces: Statement] = [:]

    init(halfMax: Int) { self.halfMax = halfMax }

    /// Returns the statement of a text, which is made if there is none.
    ///
    /// - Parameter ending: Called with the statements that haven't been used for so long that they end.
    mutating func statement(
        _ pieces: SQL.Pieces, making make: () throws -> Statement,
        ending: (Dictionary<SQL.Pieces, Statement>.Values) -> Void = { _ in }
    ) rethrows -> Statement {
        if let known = recent[pieces] { return known }
        let statement = try former.removeValue(forKey: pieces) ?? make()
        if recent.count >= halfMax {
            ending(former.values)
            (recent, former) = ([:], recent)
        }
        recent[pieces] = statement
        return statement
    }

    mutating func removeAll() { (recent, former) = ([:], [:]) }
}

/// The statements that an SQLite connection has prepared.
final class PreparedStatements: @unchecked Sendable {  // One thread at a time uses it: the one with the connection.
    /// A statement, which is finalized when it is released.
    final class Statement {
        let pointer: OpaquePointer

        fileprivate init(_ pointer: OpaquePointer) { self.pointer = pointer }

        deinit { sqlite3_finalize(pointer) }
    }

    /// The maximum number of statements in a half: the server has some two hundred texts without those of lists.
    static let halfMax = 256
    private var statements = RecentStatements<Statement>(halfMax: halfMax)
    let texts = BoundTexts()

    /// Returns the statement of a text, which is prepared if necessary. The caller must hold it while stepping through it: it can be dropped here
    /// meanwhile.
    func statement(_ pieces: RoostCore.SQL.Pieces, on connection: OpaquePointer?) throws -> Statement {
        try statements.statement(pieces, making: { try Self.prepare(pieces.text, on: connection) })
    }

    /// Ends all statements; a connection can't be closed before that.
    func removeAll() { statements.removeAll() }

    private static func prepare(_ text: String, on connection: OpaquePointer?) throws -> Statement {
        var pointer: OpaquePointer?
        // For statements that are kept, SQLite doesn't use the memory reserved for short-lived allocations.
        let code = sqlite3_prepare_v3(connection, text, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &pointer, nil)
        guard code == SQLITE_OK, let pointer else { throw SQLiteDatabase.failure(connection) }
        return Statement(pointer)
    }
}
