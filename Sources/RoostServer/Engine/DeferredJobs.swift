import RoostAPI
import RoostCore

/// Operations of a lane that need a row locked by another transaction: for example an administrator's, or one of a hanging node.
///
/// Later operations of the same channel queue behind them, which keeps their order. They are retried at intervals, one channel at a time, and
/// eventually refused. A value without I/O.
struct DeferredJobs {
    private struct Group {
        var jobs: [Job]
        let since: ContinuousClock.Instant
        var triedAt: ContinuousClock.Instant
    }
    private var groups: [Job.Order: Group] = [:]
    private(set) var count = 0
    private let patience: Duration
    private let countMax: Int
    private let batchSizeMax: Int
    /// Whether a part of the operations taken last was left, and is due at once.
    private(set) var isBehind = false

    /// A channel is retried after this time, and each attempt may take as long as a lane waits for a lock.
    static let retryInterval = Duration.milliseconds(250)
    /// After an unsuccessful attempt, the lane does other work for this many times as long as the attempt took: if a hanging node holds many
    /// channels, the lane would otherwise wait all the time.
    private static let pauseFactor = 2
    private var pausedUntil: ContinuousClock.Instant?

    /// - Parameters:
    ///   - patience: The time after which an operation is refused.
    ///   - countMax: The most operations that may be set aside.
    ///   - batchSizeMax: The most operations that are taken together.
    init(patience: Duration, countMax: Int, batchSizeMax: Int = 512) {
        self.patience = patience
        self.countMax = countMax
        self.batchSizeMax = batchSizeMax
    }

    var isEmpty: Bool { groups.isEmpty }

    /// Takes the operations of a batch that have to follow others set aside. Returns the rest, and those without room.
    mutating func takeFollowers(of batch: [Job]) -> (others: [Job], refused: [Job]) {
        guard !isEmpty else { return (batch, []) }
        var (others, refused): ([Job], [Job]) = ([], [])
        for job in batch {
            if groups[job.order] == nil {
                others.append(job)
            } else if count < countMax {
                groups[job.order]?.jobs.append(job)
                count += 1
            } else {
                refused.append(job)
            }
        }
        return (others, refused)
    }

    /// Sets operations aside, before those of the same channel that are already there.
    mutating func put(_ jobs: [Job], at now: ContinuousClock.Instant, since: ContinuousClock.Instant? = nil) {
        count += jobs.count
        for job in jobs where groups[job.order] == nil { groups[job.order] = Group(jobs: [], since: since ?? now, triedAt: now) }
        for (order, jobs) in Dictionary(grouping: jobs, by: \.order) {
            groups[order]?.jobs.insert(contentsOf: jobs, at: 0)
            groups[order]?.triedAt = now
        }
    }

    /// Postpones the next attempt after an unsuccessful one.
    ///
    /// - Parameter waited: How long the attempt took.
    mutating func pause(after waited: Duration, at now: ContinuousClock.Instant) {
        pausedUntil = now + waited * Self.pauseFactor
        isBehind = false
    }

    /// Takes the operations of the channel to retry next: as many as one transaction may have. The rest is due at once.
    mutating func takeNext(at now: ContinuousClock.Instant) -> (jobs: [Job], since: ContinuousClock.Instant)? {
        isBehind = false
        if let pausedUntil, now < pausedUntil { return nil }
        guard let (order, group) = groups.min(by: { $0.value.triedAt < $1.value.triedAt }),
            now - group.triedAt >= Self.retryInterval
        else { return nil }
        let jobs = Array(group.jobs.prefix(batchSizeMax))
        isBehind = jobs.count < group.jobs.count
        groups[order] =
            isBehind
            ? Group(jobs: Array(group.jobs.dropFirst(jobs.count)), since: group.since, triedAt: now - Self.retryInterval) : nil
        count -= jobs.count
        return (jobs, group.since)
    }

    /// Takes the operations that follow others which are given up.
    mutating func takeFollowing(_ jobs: [Job]) -> [Job] {
        let taken = Set(jobs.map(\.order)).flatMap { groups.removeValue(forKey: $0)?.jobs ?? [] }
        count -= taken.count
        return taken
    }

    func isPatient(since: ContinuousClock.Instant, at now: ContinuousClock.Instant) -> Bool { now - since < patience }

    /// Takes all operations when the lane ends, in the order of arrival.
    mutating func takeAll() -> [Job] {
        defer {
            groups = [:]
            count = 0
        }
        return groups.values.flatMap(\.jobs).sorted { $0.queuedAt < $1.queuedAt }
    }
}
