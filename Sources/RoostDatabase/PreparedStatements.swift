import GRDBSQLite
import RoostCore

/// What a connection has for the texts of statements, of which it keeps those that were used last.
///
/// Most texts come again with each operation. Those of a list depend on which filters it has, in more ways than there is memory for, and clients choose them. So
/// there are two halves: what is used moves into the recent one, and when that is full it becomes the former one, whose statements end.
struct RecentStatements<Statement> {
    /// The most statements of a half.
    let halfMax: Int
    private var recent: [SQL.Pieces: Statement] = [:]
    private var former: [SQL.Pieces: Statement] = [:]

    init(halfMax: Int) { self.halfMax = halfMax }

    /// Returns the statement of a text, which is made if there is none.
    ///
    /// - Parameter ending: Gets those that nobody has used for so long that they end for it.
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

/// The statements that a connection to SQLite has prepared.
final class PreparedStatements: @unchecked Sendable {  // Whoever has the connection uses it, one at a time.
    /// A statement, until nobody has it any more.
    final class Statement {
        let pointer: OpaquePointer

        fileprivate init(_ pointer: OpaquePointer) { self.pointer = pointer }

        deinit { sqlite3_finalize(pointer) }
    }

    /// The most statements of a half: the server has some two hundred texts without those of lists.
    static let halfMax = 256
    private var statements = RecentStatements<Statement>(halfMax: halfMax)
    let texts = BoundTexts()

    /// Returns the statement of a text, which is prepared if it isn't yet. Whoever steps through it holds it as long: it can end here meanwhile.
    func statement(_ pieces: RoostCore.SQL.Pieces, on connection: OpaquePointer?) throws -> Statement {
        try statements.statement(pieces, making: { try Self.prepare(pieces.text, on: connection) })
    }

    /// Ends all statements, without which a connection can't be closed.
    func removeAll() { statements.removeAll() }

    private static func prepare(_ text: String, on connection: OpaquePointer?) throws -> Statement {
        var pointer: OpaquePointer?
        // For statements that are kept SQLite takes no memory of the part that it has for short-lived things.
        let code = sqlite3_prepare_v3(connection, text, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &pointer, nil)
        guard code == SQLITE_OK, let pointer else { throw SQLiteDatabase.failure(connection) }
        return Statement(pointer)
    }
}
