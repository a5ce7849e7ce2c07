#if Cluster
import Foundation
public import RoostAPI
public import RoostCore
import Synchronization

/// Roost's rows in a PostgreSQL database that several nodes use together.
///
/// - Each lane has its own connection, and with it a number for making ids that no other lane of any node has. Readers share a few more.
/// - A connection is made on first use, and again after it was lost. Interrupted work isn't repeated, because it is unknown whether it was committed;
///   its caller gets an error, and the next call finds a server that has returned.
/// - A transaction that conflicts with another one is run again, a few times.
/// - Each session sets its own `synchronous_commit` and limits. ``durability()`` reports whether the server itself was configured not to sync.
public final class PostgreSQLDatabase: Database {
    public let laneCount: Int
    public let readerCount: Int
    private let lanes: [PostgreSQLSlot]
    private let readers: [PostgreSQLSlot]
    private let readerPool = ReaderPool<PostgreSQLSlot>()
    private let clock = PostgreSQLClock()
    /// The silence that the lanes have met.
    let silence = SharedConnectBackoff()
    /// When each lane last found a key taken that it had assumed to be free.
    private let keysTaken = Mutex<[Int: ContinuousClock.Instant]>([:])

    /// How long a lane asks whether keys are free after one was taken. A client that sends everything twice then costs other clients round trips, but
    /// not a repeat of every transaction.
    private static let doubtAfterTakenKey = Duration.seconds(1)

    /// How many times, and for how long, a transaction is run that conflicts with others.
    private enum Attempts {
        static let countMax = 6
        static let durationMax = Duration.seconds(15)
        static let firstPauseMilliseconds = 4
    }

    /// Connects, and brings the tables up to date: of several nodes that start at once, one does that and the others wait.
    ///
    /// - Parameters:
    ///   - url: `postgres://user:password@host:port/database?sslmode=verify-full`, with any other parameter of libpq. No failure repeats it.
    ///   - laneCount: The number of transactions that can write at the same time, at least one.
    ///   - readerCount: The number of transactions that can read at the same time, at least one.
    ///   - migrates: Whether the tables are brought up to date.
    ///   - waiting: Called repeatedly with the reason while that has to wait.
    /// - Throws: ``DatabaseFailure``: of the kind `fatal` for a URL or a database that Roost can't use, `transaction` for a server that can't be
    ///   reached now.
    public init(
        url: String, laneCount: Int = 4, readerCount: Int = 2, migrates: Bool = true, waiting: (String) -> Void = { _ in }
    ) throws {
        let address = try PostgreSQLAddress(url: url)
        self.laneCount = max(1, laneCount)
        self.readerCount = max(1, readerCount)
        let silence = silence
        lanes = (0..<self.laneCount).map { _ in PostgreSQLSlot(address, isLane: true, silence: silence) }
        readers = (0..<self.readerCount).map { _ in PostgreSQLSlot(address, isLane: false) }
        for reader in readers { readerPool.add(reader) }
        try lanes[0].open()
        if migrates { try migrate(waiting) }
    }

    /// Brings the tables up to date. It waits only a moment at a time for a table that is in use, for instance by `pg_dump`, because all other
    /// statements queue behind that wait.
    private func migrate(_ waiting: (String) -> Void) throws {
        let connection = try lanes[0].take()
        connection.setUnlimitedWaiting(true)
        lanes[0].giveBack(connection)
        defer { connection.setUnlimitedWaiting(false) }
        var patience = Duration.milliseconds(200)
        while true {
            var start = ContinuousClock.now
            do {
                return try write(lane: 0) { transaction in
                    // Building an index on many rows takes long, and so does waiting for the node that builds it.
                    for name in ["statement_timeout", "lock_timeout"] {
                        try transaction.perform("SELECT set_config(\(name), '0', true)")
                    }
                    _ = try transaction.first(
                        "SELECT pg_advisory_xact_lock(\(AdvisoryLock.kind), \(AdvisoryLock.migration))"
                    ) { _ in }
                    start = .now
                    try transaction.perform("SELECT set_config('lock_timeout', \("\(Int(patience / .milliseconds(1)))ms"), true)")
                    try transaction.migrate()
                    _ = try transaction.now()
                }
            } catch let failure as DatabaseFailure where failure.kind == .locked {
                waiting(
                    """
                    The tables have to be brought up to date, but one of them is in use, for instance by pg_dump or a long query. Trying again. \
                    \(failure.message)
                    """)
                // Long enough that work done before the wait isn't repeated again and again.
                patience = max(patience, ContinuousClock.now - start - patience)
                Thread.sleep(forTimeInterval: 2)
            }
        }
    }

    /// Examines a server without changing it: its version, and the settings that keep a commit there.
    ///
    /// - Throws: The errors of ``init(url:laneCount:readerCount:)``.
    public static func examine(url: String) throws -> (version: String, fsync: String, synchronousCommit: String) {
        let connection = try PostgreSQLConnection(try PostgreSQLAddress(url: url), isLane: false)
        let result = try connection.ask(
            "SELECT current_setting('server_version'), current_setting('fsync'), current_setting('synchronous_commit')")
        var found = (version: "", fsync: "", synchronousCommit: "")
        result.each { found = ($0.string(), $0.string(), $0.string()) }
        return found
    }

    /// Returns the settings that keep a commit through a crash: `fsync` is the server's own, and `off` means that its data can be lost and damaged;
    /// `synchronous_commit` is that of Roost's sessions.
    public func durability() throws -> (fsync: String, synchronousCommit: String) {
        let sql: SQL = "SELECT current_setting('fsync'), current_setting('synchronous_commit')"
        return try read { try $0.first(sql) { ($0.string(), $0.string()) } } ?? ("", "")
    }

    /// Returns the server's system identifier and the number of its timeline, as in `7714085850738420077/2`; nil for a standby. Any role may read them.
    ///
    /// - Throws: ``DatabaseFailure``, also for a server that doesn't have these functions.
    public func timeline() throws -> String? {
        // On a standby the second function fails. A file's name begins with the timeline in hexadecimal.
        let sql: SQL = """
            SELECT COALESCE(
                (SELECT system_identifier FROM pg_control_system())::TEXT || '/' ||
                CASE WHEN NOT pg_is_in_recovery()
                THEN ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::BIT(32)::INT::TEXT END, '')
            """
        let found = try read { try $0.first(sql) { $0.string() } } ?? ""
        return found.isEmpty ? nil : found
    }

    /// Closes all connections; those in use when their transaction ends.
    public func close() { for slot in lanes + readers { slot.close() } }

    // MARK: Writing

    public func write<T>(lane: Int, _ body: (any WriteTransaction) throws -> T) throws -> T {
        precondition(lanes.indices.contains(lane), "There is no lane \(lane).")
        let slot = lanes[lane]
        let connection = try slot.take()
        defer { slot.giveBack(connection) }
        let started = ContinuousClock.now
        var conflicts = 0
        var usesSavepoints = false
        var assumesFreeKeys = keysTaken.withLock { $0[lane].map { started - $0 > Self.doubtAfterTakenKey } ?? true }
        while true {
            let transaction = PostgreSQLTransaction(
                connection, clock, usesSavepoints: usesSavepoints, assumesFreeKeys: assumesFreeKeys)
            do {
                try transaction.begin()
                let result = try body(transaction)
                try transaction.commit()
                if transaction.needsDisk { silence.noteAnswer() }
                return result
            } catch {
                transaction.rollBack()
                switch transaction.ending {
                case nil: throw error
                case .failed(let failure): throw failure
                case .needsSavepoints: usesSavepoints = true
                case .keyTaken:
                    assumesFreeKeys = false
                    keysTaken.withLock { $0[lane] = started }
                case .conflict(let failure):
                    conflicts += 1
                    guard conflicts < Attempts.countMax, ContinuousClock.now - started < Attempts.durationMax else {
                        throw DatabaseFailure(
                            message: "Other transactions conflicted \(conflicts) times. \(failure.message)", kind: .transaction
                        )
                    }
                    Self.pause(after: conflicts)
                }
            }
        }
    }

    /// Waits for a random time that about doubles with each conflict, so waiting transactions don't all retry at the same moment.
    private static func pause(after conflicts: Int) {
        let longest = Attempts.firstPauseMilliseconds << min(conflicts, 8)
        Thread.sleep(forTimeInterval: Double.random(in: 0.5...1) * Double(longest) / 1000)
    }

    // MARK: Reading

    public func now() -> Timestamp { clock.now }

    public func readClock() throws { try read { _ = try clock.read(in: $0) } }

    public func read<T>(_ body: (any Transaction) throws -> T) throws -> T {
        try readerPool.withReader { slot in
            let transaction = try PostgreSQLReading(slot)
            defer { transaction.end() }
            return try body(transaction)
        }
    }
}
#endif
