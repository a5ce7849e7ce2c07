#if Cluster
import Synchronization

/// The pauses between connections that got no answer.
///
/// A session that waits for a synchronous standby, or for a disk, doesn't notice that its client is gone, and keeps occupying one of the server's
/// connections. Without pauses each lane would leave one behind every 40 seconds or so, until no client could connect. The first new connection is
/// made at once: another server may have taken over.
struct ConnectBackoff {
    private var count = 0
    private var end: ContinuousClock.Instant?
    /// When the last silence was counted.
    private var countedAt: ContinuousClock.Instant?

    static let first = Duration.seconds(40)
    static let longest = Duration.seconds(120)

    /// Records that a connection was given up without an answer, after the longest silence that it may have. The waits of other connections that had
    /// begun by then end within that time, and aren't counted again.
    mutating func noteTimeout(at now: ContinuousClock.Instant, after silence: Duration = ConnectBackoff.first) {
        guard remaining(at: now) == nil, countedAt.map({ now - $0 >= silence }) ?? true else { return }
        countedAt = now
        count += 1
        guard count > 1 else { return }
        end = now + max(silence, min(Self.first * (1 << min(count - 2, 10)), Self.longest))
    }

    /// Records that the server has answered a commit that had to reach the disk. Other answers say nothing: while a standby is away, reading, waiting
    /// for a lock in vain, and commits of nothing succeed.
    mutating func noteAnswer() { (count, end, countedAt) = (0, nil, nil) }

    /// How long no connection may be made; nil if one may be.
    func remaining(at now: ContinuousClock.Instant) -> Duration? { end.flatMap { now < $0 ? $0 - now : nil } }
}

/// The pauses of all lanes of a database: a commit of one that is answered ends them for all.
final class SharedConnectBackoff: Sendable {
    private let pauses = Mutex(ConnectBackoff())

    var remaining: Duration? { pauses.withLock { $0.remaining(at: .now) } }
    func noteTimeout(after silence: Duration) { pauses.withLock { $0.noteTimeout(at: .now, after: silence) } }
    func noteAnswer() { pauses.withLock { $0.noteAnswer() } }
}
#endif
