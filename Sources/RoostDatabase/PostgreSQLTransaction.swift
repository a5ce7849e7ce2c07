#if Cluster
import RoostAPI
import RoostCore

/// One run of a transaction that can write, on one connection.
///
/// In PostgreSQL a failed statement dooms the transaction, back to its last savepoint. A savepoint costs as much as a statement, and hardly any
/// operation needs one, so a transaction runs in up to four ways:
/// 1. Without savepoints. An operation that throws before it has written anything leaves nothing to undo.
/// 2. If an operation throws after it has written, or a statement fails, this run can't continue. It is rolled back, and the body is run again,
///   carefully: each operation has a savepoint before its first statement, and its answers are awaited before the next operation begins.
/// 3. If a key is taken that was assumed to be free, the run is rolled back, and the body is run again without that assumption.
/// 4. If another transaction conflicted with it, the run is rolled back, and the body is run again unchanged.
///
/// ``ending`` records that a run can't be committed. Every later statement fails, so the body ends.
final class PostgreSQLTransaction: WriteTransaction {
    /// Why a run can't be committed.
    enum Ending {
        /// An operation has to be undone, and has no savepoint.
        case needsSavepoints
        /// A key that was assumed to be free is taken.
        case keyTaken
        /// Another transaction conflicted, or has made what this one would have locked.
        case conflict(DatabaseFailure)
        case failed(DatabaseFailure)

        var failure: DatabaseFailure {
            switch self {
            case .needsSavepoints: DatabaseFailure(message: "The transaction is run again, carefully.", kind: .transaction)
            case .keyTaken:
                DatabaseFailure(message: "The transaction is run again, and asks whether keys are free.", kind: .transaction)
            case .conflict(let failure), .failed(let failure): failure
            }
        }
    }

    /// The current operation.
    private struct Operation {
        var hasWritten = false
        var hasSavepoint = false
        /// The failure of one of its statements, after which it can only be undone.
        var failure: DatabaseFailure?
    }

    private let connection: PostgreSQLConnection
    private let usesSavepoints: Bool
    /// Whether keys of new rows are assumed to be free, so nothing waits for the answer.
    private let assumesFreeKeys: Bool
    private let clock: PostgreSQLClock
    private let held = BatchMemory(readsAhead: true)
    private let streams = HeldStreams()
    private var collected = PostgreSQLNewRows()
    private var operation: Operation?
    /// Whether a key was assumed to be free.
    private var hasAssumed = false
    private(set) var ending: Ending?
    /// Whether a statement has surely changed a row.
    private var hasChangedRows = false

    init(_ connection: PostgreSQLConnection, _ clock: PostgreSQLClock, usesSavepoints: Bool, assumesFreeKeys: Bool) {
        self.connection = connection
        self.clock = clock
        self.usesSavepoints = usesSavepoints
        self.assumesFreeKeys = assumesFreeKeys && !usesSavepoints
    }

    var batchMemory: BatchMemory? { held }
    var heldStreams: HeldStreams? { streams }
    /// The number of round trips of its connection so far: for tests.
    var roundTripCount: Int { connection.roundTripCount }

    let dialect = Dialect.postgreSQL
    var idGenerator: IDGenerator.Number { connection.generatorNumber }

    func now() throws -> Timestamp { try clock.read(in: self) }

    // MARK: Statements

    func each(_ sql: SQL, _ body: (inout RowReader) throws -> Void) throws {
        // A statement that returns rows may also write them (RETURNING).
        let isWriting = !sql.isSelection
        let result = try run(isWriting: isWriting) { try connection.ask(sql, isInOperation: $0) }
        if isWriting {
            operation?.hasWritten = true
            hasChangedRows = hasChangedRows || result.hasChangedRows
        }
        try result.each(body)
    }

    func each(_ statements: [SQL], _ body: (Int, inout RowReader) throws -> Void) throws {
        let results = try run(isWriting: false) { try connection.ask(statements, isInOperation: $0) }
        for (index, result) in results.enumerated() { try result.each { try body(index, &$0) } }
    }

    @discardableResult
    func execute(_ sql: SQL) throws -> Int {
        let result = try run(isWriting: true) { try connection.ask(sql, isInOperation: $0) }
        let count = result.changedRowCount
        if count != 0 { operation?.hasWritten = true }
        hasChangedRows = hasChangedRows || result.hasChangedRows
        return count ?? 0
    }

    func perform(_ sql: SQL) throws {
        try run(isWriting: true) { try connection.send(sql, isInOperation: $0) }
        // It isn't known yet whether it changes anything.
        operation?.hasWritten = true
    }

    func perform(_ sql: SQL, _ body: @escaping (inout RowReader) -> Void) throws {
        try run(isWriting: true) { isInOperation in
            try connection.send(sql, isInOperation: isInOperation) { result in result.each(body) }
        }
    }

    func insert(_ row: NewRow) throws -> Bool {
        guard assumesFreeKeys else { return try execute(row.inserting) == 1 }
        // A taken key fails the statement, and with it the transaction: nothing based on the assumption is committed.
        hasAssumed = true
        try collect(row, named: nil)
        return true
    }

    func insert(_ row: NewRow, named name: String) throws {
        guard !usesSavepoints else { return try perform(row.inserting) }
        try collect(row, named: name)
    }

    /// - Parameter name: Nil for a row that fails if its key is taken.
    private func collect(_ row: NewRow, named name: String?) throws {
        if let failure = self.ending?.failure ?? operation?.failure { throw failure }
        if collected.haveToGo(before: row, named: name) { try noting(sendCollected) }
        collected.add(row, named: name)
    }

    private func run<T>(isWriting: Bool, _ body: (_ isInOperation: Bool) throws -> T) throws -> T {
        if let failure = ending?.failure ?? operation?.failure { throw failure }
        return try noting {
            try sendCollected()
            if usesSavepoints, let operation, !operation.hasSavepoint {
                try connection.send("SAVEPOINT operation", isInOperation: false)
                self.operation?.hasSavepoint = true
            }
            if !held.isBypassed {
                try sendPending()
                if isWriting { held.forget() }
            }
            return try body(operation != nil)
        }
    }

    /// Sends deferred writes. They also belong to finished operations: a failure fails the whole transaction.
    private func sendPending() throws {
        let pending = try held.takePendingWrites(isInside: operation?.hasSavepoint == true)
        guard !pending.isEmpty else { return }
        if held.hasOperationWritten { operation?.hasWritten = true }
        for sql in pending { try connection.send(sql) }
    }

    /// Sends the collected rows, which a statement may need. They count as part of an operation: a run that collects rows has no savepoints, and is
    /// rolled back as a whole if they fail.
    private func sendCollected() throws {
        guard !collected.isEmpty else { return }
        if collected.hasRowsOfOperation { operation?.hasWritten = true }
        for sql in collected.take() { try connection.send(sql, isInOperation: true) }
    }

    /// Decides what a failure of the server means for this run.
    private func noting<T>(_ body: () throws -> T) throws -> T {
        do {
            return try body()
        } catch let failure as PostgreSQLFailure {
            switch failure.kind {
            case .connection, .transaction, .locked, .damage, .cancelled: ending = .failed(failure.failure)
            case .conflict: ending = .conflict(failure.failure)
            case .statement where !failure.isInOperation: ending = .failed(failure.failure)
            case .statement where hasAssumed && failure.isKeyTaken: ending = .keyTaken
            case .statement where !usesSavepoints: ending = .needsSavepoints
            case .statement: operation?.failure = failure.failure
            }
            throw ending?.failure ?? failure.failure
        }
    }

    // MARK: Operations

    func attempt<T>(_ body: () throws -> T) throws -> T {
        operation = Operation()
        held.beginOperation()
        streams.beginOperation()
        collected.beginOperation()
        defer { operation = nil }
        do {
            let result = try body()
            try keep()
            return result
        } catch let made as StreamCreatedConcurrently {
            ending = ending ?? .conflict(DatabaseFailure(message: made.description, kind: .transaction))
            throw ending?.failure ?? made
        } catch {
            try undo()
            throw error
        }
    }

    /// Keeps the operation's writes, or throws the failure of a statement, however the body handled it.
    private func keep() throws {
        if let failure = ending?.failure ?? operation?.failure { throw failure }
        guard operation?.hasSavepoint == true else { return }
        try noting {
            try connection.send("RELEASE operation", isInOperation: true)
            try connection.settle()
        }
    }

    /// Undoes the operation's writes. Throws if that fails the whole transaction.
    private func undo() throws {
        if let ending { throw ending.failure }
        guard let operation else { return }
        streams.undoOperation()
        guard operation.hasSavepoint else {
            guard operation.hasWritten else {
                collected.undoOperation()
                return held.undoOperation(isRolledBack: false)
            }
            ending = .needsSavepoints
            throw Ending.needsSavepoints.failure
        }
        // Pending statements are settled first: after a failure among them, the server would skip the rollback too.
        do {
            try noting { try connection.settle() }
        } catch {
            if let ending { throw ending.failure }
        }
        self.operation = nil
        try noting {
            try connection.send("ROLLBACK TO operation")
            try connection.send("RELEASE operation")
        }
        held.undoOperation(isRolledBack: true)
    }

    // MARK: Beginning and end

    /// Whether its commit waits for the disk and for a synchronous standby: it has locked a stream or changed a row. False if that isn't known.
    var needsDisk: Bool { hasChangedRows || !streams.isEmpty }

    /// Begins the transaction. The `BEGIN` is sent with the first statement.
    func begin() throws { try noting { try connection.begin("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE") } }

    /// Commits, and waits until the commit is on disk, and on that of a synchronous standby.
    func commit() throws {
        if let ending { throw ending.failure }
        let result = try noting {
            try sendCollected()
            try sendPending()
            return try connection.ask("COMMIT")
        }
        // The server answers the commit of a doomed transaction with its rollback, and doesn't report that as a failure.
        guard result.command == "COMMIT" else {
            let failure = DatabaseFailure(message: "PostgreSQL has rolled the transaction back.", kind: .transaction)
            ending = .failed(failure)
            throw failure
        }
        // If an operator cancels the wait for a synchronous standby, the commit succeeds, with a warning. After a failover to that standby it
        // would be gone, so nobody may be told that it is stored. A commit of Roost has no other warnings.
        guard !connection.hasWarned else {
            let failure = DatabaseFailure(
                message: "PostgreSQL has committed the transaction without its synchronous standby.", kind: .transaction)
            ending = .failed(failure)
            throw failure
        }
    }

    /// Rolls everything back, including pending statements.
    func rollBack() {
        guard !connection.isLost else { return }
        _ = try? connection.settle()
        // If this fails the connection is lost, which its slot notices.
        _ = try? connection.ask("ROLLBACK")
    }
}

extension Dialect {
    /// Text is compared by its bytes, as in SQLite and Swift's `utf8`, whatever the database's language.
    static let postgreSQL = Dialect(
        text: "TEXT COLLATE \"C\"", clusteredTable: "", rowLock: "FOR UPDATE",
        accessLock: AccessLock(
            // Longer than a change of access waits: otherwise operations unrelated to the change would be treated as locked.
            shared: [
                """
                WITH before AS MATERIALIZED (SELECT current_setting('lock_timeout') AS value)
                SELECT set_config('lock_timeout', '2s', true),
                       pg_advisory_xact_lock_shared(\(AdvisoryLock.kind), \(AdvisoryLock.access)),
                       set_config('lock_timeout', before.value, true)
                FROM before
                """
            ],
            // Longer than a transaction waits for a row, so all current transactions end meanwhile. Writers queue behind it: it gives up before they
            // would notice, and tries again.
            exclusive: [
                "SELECT set_config('lock_timeout', '1s', true)",
                "SELECT pg_advisory_xact_lock(\(AdvisoryLock.kind), \(AdvisoryLock.access))",
            ]), roomForChanges: "fillfactor = 85", fetchesWholeResults: true)
}
#endif
