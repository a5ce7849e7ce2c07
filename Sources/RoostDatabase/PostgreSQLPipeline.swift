#if Cluster
import CPostgres
import Foundation
import RoostCore

/// The pending statements on one connection, and their answers: libpq's pipeline mode.
///
/// 1. ``send(_:isInOperation:)`` queues a statement. It doesn't wait, and nothing is sent before 8 KiB are queued.
/// 2. ``ask(_:isInOperation:)`` queues a statement, sends the whole queue, and waits for all answers; ``settle()`` does so without a statement.
/// 3. If a statement fails, the server skips the statements after it up to the next sync; the first failure is thrown.
///
/// A sync ends the statements sent together. A flush alone would cost the server less, but only after a sync does the server know that it waits for
/// the client, and ends a transaction that a stopped client has left open.
final class PostgreSQLPipeline {
    private let handle: OpaquePointer
    private var statements = RecentStatements<PostgreSQLStatement>(halfMax: Limit.preparedInHalf)
    /// The number of statements made: each has a different name.
    private var statementCount = 0
    /// Statements not used for long, which the server still has.
    private var unused: [PostgreSQLStatement] = []
    private var values = PostgreSQLValues()
    /// Statements that were queued or sent and have no answer yet, in order.
    private var waiting: [Waiting] = []
    /// The size of what was queued since the last sync, or somewhat more.
    private var queuedBytes = 0
    /// How long the server may be silent while an answer is awaited; longer than any statement may take. Nil for no limit.
    var responseTimeoutMilliseconds: Int64? = PostgreSQLPipeline.responseTimeoutMilliseconds(statementMilliseconds: 0)
    /// Whether the connection was given up because no answer came. Its session may still exist.
    private(set) var wasSilent = false
    /// Whether the server warned while it ran the last statement that was answered.
    private(set) var hasWarned = false
    /// How many times answers were awaited: each is a round trip.
    private(set) var roundTripCount = 0

    /// Longer than a statement may take by the session's own limit: the server ends a statement that takes longer, whereas the session of a
    /// connection that was given up continues and keeps its locks.
    static func responseTimeoutMilliseconds(statementMilliseconds: Int64) -> Int64 { max(40_000, statementMilliseconds + 10_000) }

    private enum Waiting {
        case prepare(PostgreSQLStatement, isInOperation: Bool)
        case statement(isInOperation: Bool, receive: ((PostgreSQLResult) -> Void)?)
        case end(PostgreSQLStatement)
        case sync
    }

    private enum Limit {
        /// The maximum number of unanswered statements. Without a limit, client and server could each hold any amount of data for the other.
        static let waiting = 256
        /// The number of statements sent together: including those that prepare them, fewer than may be unanswered.
        static let together = 100
        /// libpq sends what is queued in blocks of this many bytes, even without a sync.
        static let queuedBytes = 8192
        /// More than the bytes of a message besides its text and values.
        static let headerBytes = 64
        /// The number of statements that stay prepared, in each of two halves. There are some two hundred without those of lists.
        static let preparedInHalf = 512
        /// The number of unused statements that are ended together.
        static let endedTogether = 32
    }

    /// - Parameter handle: An established connection, which outlives this object.
    init(_ handle: OpaquePointer) throws {
        self.handle = handle
        // By default libpq writes the server's notices to standard error. It receives them within calls of this object's methods only.
        PQsetNoticeReceiver(
            handle,
            { context, notice in
                guard let context, let notice else { return }
                Unmanaged<PostgreSQLPipeline>.fromOpaque(context).takeUnretainedValue().note(notice)
            }, Unmanaged.passUnretained(self).toOpaque())
        guard PQsetnonblocking(handle, 1) == 0, PQenterPipelineMode(handle) == 1 else { throw lost() }
    }

    /// - Parameter notice: One of the server's, which libpq owns.
    private func note(_ notice: OpaquePointer) {
        if PostgreSQLResult.errorField("V", of: notice) == "WARNING" { hasWarned = true }
    }

    // MARK: Sending

    /// Queues a statement without waiting for its answer. A failure is thrown with the next answers.
    ///
    /// - Parameter receive: Called with the answer then, unless the statement failed.
    func send(_ sql: SQL, isInOperation: Bool, _ receive: ((PostgreSQLResult) -> Void)? = nil) throws {
        try queue(sql, isInOperation: isInOperation, receive)
        // libpq has sent a part of them. Until a sync the server would wait for the rest without a limit, and hold its locks.
        if queuedBytes >= Limit.queuedBytes { try flush() }
    }

    private func queue(_ sql: SQL, isInOperation: Bool, _ receive: ((PostgreSQLResult) -> Void)? = nil) throws {
        if waiting.count >= Limit.waiting { _ = try settle() }
        try values.encode(sql.values)
        let statement = statement(sql.pieces)
        if statement.state == .new {
            guard PQsendPrepare(handle, statement.name, statement.text, 0, nil) == 1 else { throw lost() }
            statement.state = .sent
            queuedBytes += Limit.headerBytes + statement.text.utf8.count
            waiting.append(.prepare(statement, isInOperation: isInOperation))
        }
        let count = Int32(clamping: values.count)
        let isSent = values.withPointers { PQsendQueryPrepared(handle, statement.name, count, $0, nil, nil, 0) }
        guard isSent == 1 else { throw lost() }
        queuedBytes += Limit.headerBytes + values.sizeBytes
        waiting.append(.statement(isInOperation: isInOperation, receive: receive))
    }

    private func statement(_ pieces: SQL.Pieces) -> PostgreSQLStatement {
        statements.statement(pieces) {
            statementCount += 1
            return PostgreSQLStatement(pieces.text, name: "s\(statementCount)")
        } ending: {
            unused += $0
        }
    }

    /// Ends some of the unused statements. Only outside a transaction: a failed transaction would refuse that and everything after it.
    func endUnused() throws {
        guard !unused.isEmpty else { return }
        var kept: [PostgreSQLStatement] = []
        for (number, statement) in unused.enumerated() {
            // It may be pending, or have been refused.
            guard number < Limit.endedTogether, statement.state != .sent else {
                kept.append(statement)
                continue
            }
            guard statement.state == .ready else { continue }
            guard PQsendQueryParams(handle, "DEALLOCATE \(statement.name)", 0, nil, nil, nil, nil, 0) == 1 else { throw lost() }
            waiting.append(.end(statement))
        }
        unused = kept
        // A transaction that begins after it chooses its isolation, which isn't allowed after another statement.
        try flush()
    }

    /// Sends the queued statements without waiting for the answers: the next caller that reads a result waits.
    func flush() throws {
        guard PQpipelineSync(handle) == 1 else { throw lost() }
        waiting.append(.sync)
        queuedBytes = 0
        guard PQflush(handle) >= 0 else { throw lost() }
    }

    // MARK: Answers

    /// Runs a statement, and everything queued before it.
    func ask(_ sql: SQL, isInOperation: Bool) throws -> PostgreSQLResult {
        try queue(sql, isInOperation: isInOperation)
        guard let result = try settle() else { throw lost("the server gave no answer") }
        return result
    }

    /// Runs statements, and everything queued before them, and returns the answer of each. They are sent in groups small enough to stay below the
    /// limit of unanswered statements.
    func ask(_ statements: [SQL], isInOperation: Bool) throws -> [PostgreSQLResult] {
        var results: [PostgreSQLResult] = []
        results.reserveCapacity(statements.count)
        try settle()
        for start in stride(from: 0, to: statements.count, by: Limit.together) {
            let part = statements[start..<min(start + Limit.together, statements.count)]
            for sql in part { try queue(sql, isInOperation: isInOperation) }
            try settle { results.append($0) }
        }
        return results
    }

    /// Waits for all answers, and returns that of the last statement.
    ///
    /// - Parameter receive: Called with the answer of each statement.
    /// - Throws: The first ``PostgreSQLFailure``, once all answers have arrived.
    @discardableResult
    func settle(_ receive: ((PostgreSQLResult) -> Void)? = nil) throws -> PostgreSQLResult? {
        guard !waiting.isEmpty else { return nil }
        if case .sync = waiting.last {} else { try flush() }
        roundTripCount += 1
        var last: PostgreSQLResult?
        var failure: PostgreSQLFailure?
        for entry in waiting {
            // The warnings of a statement come after the answer to the one before it, and before its own.
            if case .statement = entry { hasWarned = false }
            guard let result = try nextResult() else { throw lost("an answer is missing") }
            if result.status == PGRES_PIPELINE_SYNC {
                guard case .sync = entry else { throw lost("the answers are out of order") }
                continue
            }
            switch entry {
            case .sync: throw lost("the answers are out of order")
            case .prepare(let statement, let isInOperation):
                let isReady = result.status == PGRES_COMMAND_OK
                statement.state = isReady ? .ready : .new
                failure = failure ?? self.failure(of: result, isInOperation: isInOperation)
            case .end(let statement):
                // A statement before it failed.
                if result.status == PGRES_PIPELINE_ABORTED { unused.append(statement) }
            case .statement(let isInOperation, let received):
                last = result
                receive?(result)
                failure = failure ?? self.failure(of: result, isInOperation: isInOperation)
                if result.status == PGRES_TUPLES_OK { received?(result) }
            }
            // Each statement's result is followed by the end of its results.
            guard try nextResult() == nil else { throw lost("the answers are out of order") }
        }
        waiting.removeAll(keepingCapacity: true)
        if let failure { throw failure }
        return last
    }

    private func failure(of result: PostgreSQLResult, isInOperation: Bool) -> PostgreSQLFailure? {
        switch result.status {
        case PGRES_COMMAND_OK, PGRES_TUPLES_OK, PGRES_PIPELINE_ABORTED: return nil
        default: break
        }
        let failure = PostgreSQLFailure(result, isInOperation: isInOperation)
        guard PQstatus(handle) == CONNECTION_OK else { return .lost(failure.message) }
        return failure
    }

    // MARK: Waiting

    private func nextResult() throws -> PostgreSQLResult? {
        var waitedMilliseconds: Int64 = 0
        while true {
            let unsent = PQflush(handle)
            // After a failure to send, the server's last message may still be readable.
            if PQisBusy(handle) == 0 { return PQgetResult(handle).map(PostgreSQLResult.init) }
            var descriptor = pollfd(fd: PQsocket(handle), events: Int16(POLLIN), revents: 0)
            guard descriptor.fd >= 0 else { throw lost() }
            if unsent > 0 { descriptor.events |= Int16(POLLOUT) }
            switch poll(&descriptor, 1, Self.pollMilliseconds) {
            case 0:
                waitedMilliseconds += Int64(Self.pollMilliseconds)
                if let responseTimeoutMilliseconds, waitedMilliseconds >= responseTimeoutMilliseconds {
                    wasSilent = true
                    throw lost("the server didn't answer within \(responseTimeoutMilliseconds / 1000) seconds")
                }
            case 1...:
                waitedMilliseconds = 0
                if descriptor.revents & ~Int16(POLLOUT) != 0, PQconsumeInput(handle) == 0, PQisBusy(handle) != 0 { throw lost() }
            default:
                guard errno == EINTR else { throw lost() }
            }
        }
    }

    private static let pollMilliseconds: Int32 = 1000

    /// Whether the server has ended the idle connection. Costs one look at the socket.
    func isEnded() -> Bool {
        // One look for the server's farewell, one for the end after it, and one to be sure.
        for _ in 0..<3 {
            var descriptor = pollfd(fd: PQsocket(handle), events: Int16(POLLIN), revents: 0)
            guard descriptor.fd >= 0 else { return true }
            guard poll(&descriptor, 1, 0) == 1 else { return false }
            guard PQconsumeInput(handle) == 1, PQstatus(handle) == CONNECTION_OK else { return true }
        }
        return false
    }

    /// Returns the failure of a lost connection, with libpq's message if none is given.
    private func lost(_ reason: String? = nil) -> PostgreSQLFailure {
        .lost(reason ?? PQerrorMessage(handle).map { String(cString: $0) } ?? "")
    }
}
#endif
