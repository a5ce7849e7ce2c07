import GRDB

/// A reading connection.
struct SQLiteReader: Sendable {
    let queue: DatabaseQueue
    let statements = PreparedStatements()

    func close() {
        statements.removeAll()
        try? queue.close()
    }
}
