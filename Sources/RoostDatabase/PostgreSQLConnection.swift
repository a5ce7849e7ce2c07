#if Cluster
import CPostgres
import RoostCore
import Synchronization

/// One connection to a server, with its settings and, for a lane, its number.
final class PostgreSQLConnection: @unchecked Sendable {  // One thread at a time uses it: the one that took it out of its slot.
    private let handle: OpaquePointer
    private let address: PostgreSQLAddress
    private let pipeline: PostgreSQLPipeline
    /// How long the server may be silent, derived from this session's statement timeout.
    private let responseTimeoutMillisecondsMax: Int64
    /// The number of an ``IDGenerator``, reserved for this connection as long as it lasts; 0 for a reader, which makes no ids.
    let generatorNumber: IDGenerator.Number
    /// Whether the connection is no longer usable.
    private(set) var isLost = false

    /// - Throws: ``DatabaseFailure``: of the kind `transaction` if the server can't be reached or refuses the connection, `fatal` if Roost can't use
    ///   it.
    init(_ address: PostgreSQLAddress, isLane: Bool) throws {
        guard let handle = address.connect() else {
            throw DatabaseFailure(message: "There is no memory for a connection to PostgreSQL.", kind: .transaction)
        }
        do {
            try Self.check(handle, address)
            let pipeline = try PostgreSQLPipeline(handle)
            var statementMilliseconds: Int64 = 0
            for setting in Self.settings + (isLane ? [Self.lockTimeout] : []) { try pipeline.send(setting, isInOperation: false) }
            try pipeline.send(Self.statementTimeout, isInOperation: false) { $0.each { statementMilliseconds = $0.int64() } }
            let session = Self.sessions.add(1, ordering: .relaxed).newValue
            generatorNumber = IDGenerator.Number(isLane ? try Self.takeGeneratorNumber(pipeline) : 0, session: session)
            try pipeline.settle()
            let silence = PostgreSQLPipeline.responseTimeoutMilliseconds(statementMilliseconds: statementMilliseconds)
            responseTimeoutMillisecondsMax = silence
            pipeline.responseTimeoutMilliseconds = silence
            self.pipeline = pipeline
        } catch {
            // The pipeline, which receives the notices, may no longer exist.
            PQsetNoticeReceiver(handle, { _, _ in }, nil)
            PQfinish(handle)
            guard let failure = error as? PostgreSQLFailure else { throw error }
            throw DatabaseFailure(message: address.redacted(failure.message), kind: .transaction)
        }
        self.handle = handle
        self.address = address
    }

    deinit { PQfinish(handle) }

    private static func check(_ handle: OpaquePointer, _ address: PostgreSQLAddress) throws {
        guard PQstatus(handle) == CONNECTION_OK else {
            let reason = PQerrorMessage(handle).map { address.redacted(String(cString: $0)) } ?? ""
            throw DatabaseFailure(message: "PostgreSQL can't be reached: \(reason)", kind: .transaction)
        }
        let version = PQserverVersion(handle)
        guard version >= versionMin else {
            throw DatabaseFailure(message: "PostgreSQL \(version / 10_000) is too old; Roost needs 14 or newer.", kind: .fatal)
        }
        let encoding = PQparameterStatus(handle, "server_encoding").map { String(cString: $0) } ?? "unknown"
        guard encoding == "UTF8" else {
            throw DatabaseFailure(
                message: "The database's encoding is \(encoding), and Roost's text needs UTF8: create it with ENCODING 'UTF8'.",
                kind: .fatal)
        }
    }

    private static let versionMin: Int32 = 140_000

    /// The settings of every session. A limit set by the server, the role or the URL is kept, but there is always one.
    private static let settings: [SQL] = [
        // An acknowledgement means that the row is on disk. It is set in any case: a setting that a session hasn't set itself follows the server's
        // configuration when that is reloaded.
        """
        SELECT set_config('synchronous_commit', CASE WHEN now IN ('off', 'local') THEN 'on' ELSE now END, false)
        FROM current_setting('synchronous_commit') AS now
        """,
        // A commit whose wait for a standby was cancelled succeeds, and only a warning says so.
        "SELECT set_config('client_min_messages', 'warning', false)",
        "SELECT set_config('statement_timeout', '30s', false) WHERE current_setting('statement_timeout') = '0'",
        // A node that hangs in the middle of a transaction would hold its locks indefinitely, and block all channels that wait for them.
        """
        SELECT set_config('idle_in_transaction_session_timeout', '15s', false)
        WHERE current_setting('idle_in_transaction_session_timeout') = '0'
        """,
        // Otherwise a session whose machine has vanished keeps its connection slot, and its generator's number, for the system's two hours.
        "SELECT set_config('tcp_keepalives_idle', '15', false) FROM pg_settings WHERE name = 'tcp_keepalives_idle' AND source = 'default'",
        "SELECT set_config('tcp_keepalives_interval', '5', false) FROM pg_settings WHERE name = 'tcp_keepalives_interval' AND source = 'default'",
        "SELECT set_config('tcp_keepalives_count', '3', false) FROM pg_settings WHERE name = 'tcp_keepalives_count' AND source = 'default'",
        // Every statement of the rules has its index. A plan made while a table was small must not scan it when it is large.
        "SELECT set_config('enable_seqscan', 'off', false)",
        // That setting inflates the estimated costs, which makes the server compile queries to machine code that take microseconds.
        "SELECT set_config('jit', 'off', false)",
    ]

    /// The statement timeout in milliseconds, once it is set.
    private static let statementTimeout: SQL = "SELECT setting FROM pg_settings WHERE name = 'statement_timeout'"

    /// How long a lane waits for a row that another transaction holds: then the engine sets aside the operations that need it, and continues with the
    /// others, so a lock of one channel doesn't hold up those that share its lane.
    private static let lockTimeout: SQL = """
        SELECT set_config('lock_timeout', '500ms', false)
        WHERE current_setting('lock_timeout') = '0' OR current_setting('lock_timeout')::INTERVAL > '500ms'::INTERVAL
        """

    /// The number of sessions made in this process: each has a different number.
    private static let sessions = Atomic<Int64>(0)

    /// Takes the first free number by a lock that ends with the session, starting at a different place for each session.
    private static func takeGeneratorNumber(_ pipeline: PostgreSQLPipeline) throws -> Int64 {
        let result = try pipeline.ask(
            """
            SELECT (pg_backend_pid() + n) & 1023 FROM generate_series(0, 1023) AS n
            WHERE pg_try_advisory_lock(\(AdvisoryLock.kind), (pg_backend_pid() + n) & 1023) LIMIT 1
            """, isInOperation: false)
        var number: Int64?
        result.each { number = $0.int64() }
        guard let number else {
            throw DatabaseFailure(
                message: "All 1024 numbers for making ids are in use: there are too many lanes.", kind: .transaction)
        }
        return number
    }

    // MARK: Statements

    /// Queues a statement; see ``PostgreSQLPipeline``.
    func send(_ sql: SQL, isInOperation: Bool = false, _ receive: ((PostgreSQLResult) -> Void)? = nil) throws {
        try noticing { try pipeline.send(sql, isInOperation: isInOperation, receive) }
    }

    /// Queues the statement that begins a transaction.
    func begin(_ sql: SQL) throws {
        try noticing {
            try pipeline.endUnused()
            try pipeline.send(sql, isInOperation: false)
        }
    }

    func ask(_ sql: SQL, isInOperation: Bool = false) throws -> PostgreSQLResult {
        try noticing { try pipeline.ask(sql, isInOperation: isInOperation) }
    }

    func ask(_ statements: [SQL], isInOperation: Bool) throws -> [PostgreSQLResult] {
        try noticing { try pipeline.ask(statements, isInOperation: isInOperation) }
    }

    func settle() throws { try noticing { _ = try pipeline.settle() } }

    func flush() throws { try noticing { try pipeline.flush() } }

    /// The number of round trips so far.
    var roundTripCount: Int { pipeline.roundTripCount }

    /// How long the server may be silent; nil for no limit.
    var responseTimeoutMilliseconds: Int64? { pipeline.responseTimeoutMilliseconds }

    /// Whether the connection was given up because no answer came.
    var wasSilent: Bool { pipeline.wasSilent }

    /// Whether the server warned while it ran the last statement that was answered.
    var hasWarned: Bool { pipeline.hasWarned }

    /// Whether the server has ended the idle connection.
    func isEnded() -> Bool { pipeline.isEnded() }

    /// Sets whether the server may be silent without limit, as while statements change tables.
    func setUnlimitedWaiting(_ isUnlimited: Bool) {
        pipeline.responseTimeoutMilliseconds = isUnlimited ? nil : responseTimeoutMillisecondsMax
    }

    /// Records that the connection is lost, and removes from the failure what doesn't belong in a log.
    private func noticing<T>(_ body: () throws -> T) throws -> T {
        do {
            return try body()
        } catch let failure as PostgreSQLFailure {
            if failure.kind == .connection { isLost = true }
            throw PostgreSQLFailure(
                kind: failure.kind, message: address.redacted(failure.message), isInOperation: failure.isInOperation,
                isKeyTaken: failure.isKeyTaken)
        }
    }
}

/// The advisory locks that Roost takes in its database.
enum AdvisoryLock {
    /// Distinguishes them from those of other programs: "Roos" as a number.
    static let kind: Int64 = 0x526F_6F73
    /// Held while the tables are brought up to date. The lower numbers are those of the id generators.
    static let migration: Int64 = 1024
    /// Shared by all transactions that write, and held exclusively by one that changes a subject's access.
    static let access: Int64 = 1025
}
#endif
