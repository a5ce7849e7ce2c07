import RoostAPI

/// The pending records of when this node's users were online. A value without a clock and without I/O; times are milliseconds of one monotonic
/// clock.
///
/// A record is written when a user's last connection ends, and every quarter of an hour until then, so a killed server loses at most that much
/// . When thousands disconnect at once, they are stored a few at a time: messages matter more.
struct ActivityBoard {
    struct Settings: Hashable, Sendable {
        /// The time between two records of a user who stays connected.
        var refresh: Int64 = 15 * 60 * 1000
        /// The time between two scans of the connected users: one record for several costs less than one for each.
        var pause: Int64 = 60_000
        /// The most users in one record, and the time until the next while more are due.
        var usersAtOnce = 100
        var pauseInBacklog: Int64 = 100
        /// The time until the next record after one that couldn't be stored.
        var pauseAfterFailure: Int64 = 1000
    }

    private let settings: Settings
    /// The connected users, each with the time of the next record, earliest first; also the disconnected ones until their last record is taken.
    private var staying = ArrivalOrder<UserID, Int64>()
    /// The disconnected users, each with the time of disconnection.
    private var gone = ArrivalOrder<UserID, Int64>()
    /// The connected users whose last record couldn't be stored. They are retried without waiting for the next scan.
    private var again: Set<UserID> = []
    private var lookedAt: Int64 = .min / 2
    /// Nothing is taken until then, because the last record couldn't be stored.
    private var pausedUntil: Int64 = .min / 2

    init(_ settings: Settings = Settings()) { self.settings = settings }

    /// A user who returns before the disconnection was stored keeps the scheduled record. If each return postponed it, a user who reconnects
    /// repeatedly would have none.
    mutating func came(_ user: UserID, at now: Int64) {
        gone[user] = nil
        if staying[user] == nil { staying[user] = now + settings.refresh }
    }

    mutating func went(_ user: UserID, at now: Int64) { gone[user] = now }

    /// Takes the records due now: when each user was last online, which is now for those still connected.
    mutating func takeDue(at now: Int64) -> [UserID: Int64] {
        var due: [UserID: Int64] = [:]
        guard now >= pausedUntil else { return due }
        for user in gone.elements(limit: settings.usersAtOnce) {
            due[user] = gone[user]
            (gone[user], staying[user]) = (nil, nil)
            again.remove(user)
        }
        // By now all disconnected users are taken: the remaining ones are connected.
        for user in again.prefix(settings.usersAtOnce - due.count) { takeStaying(user, at: now, into: &due) }
        guard due.count < settings.usersAtOnce, now - lookedAt >= settings.pause else { return due }
        for user in staying.elements(limit: settings.usersAtOnce - due.count) {
            guard let at = staying[user], at <= now else { break }
            takeStaying(user, at: now, into: &due)
        }
        if due.count < settings.usersAtOnce { lookedAt = now }
        return due
    }

    private mutating func takeStaying(_ user: UserID, at now: Int64, into due: inout [UserID: Int64]) {
        due[user] = now
        again.remove(user)
        // At the end of the order: all other records are due before this one's next.
        staying[user] = nil
        staying[user] = now + settings.refresh
    }

    /// Takes back records that couldn't be stored. A connected user is stored with the time of the retry.
    mutating func takeBack(_ users: [UserID: Int64], at now: Int64) {
        for (user, time) in users where gone[user] == nil {
            if staying[user] == nil { gone[user] = time } else { again.insert(user) }
        }
        pausedUntil = now + settings.pauseAfterFailure
    }

    /// Takes everything: the server is shutting down.
    mutating func takeAll(at now: Int64) -> [UserID: Int64] {
        var all = Dictionary(uniqueKeysWithValues: staying.elements().map { ($0, now) })
        for user in gone.elements() { all[user] = gone[user] }
        (staying, gone, again) = (ArrivalOrder(), ArrivalOrder(), [])
        return all
    }

    /// The time until something is due, unless something happens first; nil if nothing is scheduled.
    func rest(at now: Int64) -> Int64? {
        if !gone.isEmpty || !again.isEmpty { return max(settings.pauseInBacklog, pausedUntil - now) }
        guard let first = staying.elements(limit: 1).first.flatMap({ staying[$0] }) else { return nil }
        return max(settings.pauseInBacklog, first - now, lookedAt + settings.pause - now)
    }
}
