package import RoostCore

/// A transaction that counts its statements and the rows of their answers.
package final class CountingTransaction: Transaction {
    private let transaction: any Transaction
    package private(set) var statementCount = 0
    /// The rows of all answers.
    package private(set) var rowCount = 0

    package init(_ transaction: any Transaction) { self.transaction = transaction }

    package var dialect: Dialect { transaction.dialect }
    package var batchMemory: BatchMemory? { transaction.batchMemory }
    package var heldStreams: HeldStreams? { transaction.heldStreams }

    package func execute(_ sql: SQL) throws -> Int {
        statementCount += 1
        return try transaction.execute(sql)
    }

    package func perform(_ sql: SQL) throws {
        statementCount += 1
        try transaction.perform(sql)
    }

    package func each(_ sql: SQL, _ body: (inout RowReader) throws -> Void) throws {
        statementCount += 1
        try transaction.each(sql) { row in
            rowCount += 1
            try body(&row)
        }
    }
}
