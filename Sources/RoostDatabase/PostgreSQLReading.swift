#if Cluster
import RoostCore

/// A transaction that reads one snapshot.
///
/// Its `BEGIN` is sent with the first statement, and its end isn't awaited, so it costs no extra round trip. If the connection broke while it was
/// idle, the first statement notices that, and is run again on a new connection.
final class PostgreSQLReading: Transaction {
    private let slot: PostgreSQLSlot
    private var connection: PostgreSQLConnection
    private var hasAnswer = false
    private var failure: DatabaseFailure?

    let dialect = Dialect.postgreSQL

    init(_ slot: PostgreSQLSlot) throws {
        self.slot = slot
        connection = try slot.take()
    }

    func each(_ sql: SQL, _ body: (inout RowReader) throws -> Void) throws { try ask(sql).each(body) }

    @discardableResult
    func execute(_ sql: SQL) throws -> Int { try ask(sql).changedRowCount ?? 0 }

    func perform(_ sql: SQL) throws { try execute(sql) }

    private func ask(_ sql: SQL) throws -> PostgreSQLResult {
        if let failure { throw failure }
        do {
            let result = try hasAnswer ? connection.ask(sql) : first(sql)
            hasAnswer = true
            return result
        } catch let failure as PostgreSQLFailure {
            // A failed statement dooms the transaction, and one that only reads has nothing to save.
            self.failure = failure.failure
            throw failure.failure
        }
    }

    private func first(_ sql: SQL) throws -> PostgreSQLResult {
        do {
            return try begin(sql)
        } catch let failure as PostgreSQLFailure where failure.kind == .connection {
            connection = try slot.make()
            return try begin(sql)
        }
    }

    private func begin(_ sql: SQL) throws -> PostgreSQLResult {
        try connection.begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        return try connection.ask(sql)
    }

    /// Ends the transaction and gives the connection back.
    func end() {
        if hasAnswer || failure != nil, !connection.isLost {
            _ = try? connection.send("COMMIT")
            _ = try? connection.flush()
        }
        slot.giveBack(connection)
    }
}
#endif
