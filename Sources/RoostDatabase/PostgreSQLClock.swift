#if Cluster
import RoostAPI
import RoostCore
import Synchronization

/// The server's clock as known to a node: the last reading, and its age by a monotonic clock.
final class PostgreSQLClock: Sendable {
    private let seen = Mutex<(time: Timestamp, at: ContinuousClock.Instant)?>(nil)

    static let query: SQL = "SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT"

    /// Reads the server's clock.
    @discardableResult
    func read(in transaction: any Transaction) throws -> Timestamp {
        guard let time = try transaction.first(Self.query, { $0.timestamp() }) else {
            throw DatabaseFailure(message: "PostgreSQL didn't return the time.", kind: .transaction)
        }
        seen.withLock { $0 = (time, .now) }
        return time
    }

    /// The current time; the machine's own until the server's clock has been read.
    var now: Timestamp {
        guard let (time, at) = seen.withLock({ $0 }) else { return .now }
        let passed = (ContinuousClock.now - at).components
        return Timestamp(milliseconds: time.milliseconds + passed.seconds * 1000 + passed.attoseconds / 1_000_000_000_000_000)
    }
}
#endif
