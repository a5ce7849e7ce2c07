import RoostAPI

/// When the users of this node were online, as far as it is still to be stored. A value without a clock and without I/O; times are milliseconds of
/// one clock that nobody sets.
///
/// It is stored when a user's last connection ends, and every quarter of an hour before that: of a server that is killed, that long is forgotten. Where
/// thousands go at one moment they are stored a few at a time, since messages matter more.
struct ActivityBoard {
    struct Settings: Hashable, Sendable {
        /// The time between two records of a user who stays.
        var refresh: Int64 = 15 * 60 * 1000
        /// The time between two looks for those who stay: a record for several costs less than one for each.
        var pause: Int64 = 60_000
        /// The most users in one record, and the time until the next.
        var usersAtOnce = 100
        var pauseInBacklog: Int64 = 100
        /// The time until the next record after one that couldn't be stored.
        var pauseAfterFailure: Int64 = 1000
    }

    private let settings: Settings
    /// Those who are connected, each with the time of the next record, the next first; and those who have gone, until that is taken.
    private var staying = ArrivalOrder<UserID, Int64>()
    /// Those who have gone, with the time.
    private var gone = ArrivalOrder<UserID, Int64>()
    /// Those who are connected and whose last record couldn't be stored. They aren't left for the next look.
    private var again: Set<UserID> = []
    private var lookedAt: Int64 = .min / 2
    /// Until then nothing is taken: the last record couldn't be stored.
    private var pausedUntil: Int64 = .min / 2

    init(_ settings: Settings = Settings()) { self.settings = settings }

    /// Whoever is back before it was stored that they had gone keeps their next record and its place. If each return put it off, those who are back again and
    /// again would have none.
    mutating func came(_ user: UserID, at now: Int64) {
        gone[user] = nil
        if staying[user] == nil { staying[user] = now + settings.refresh }
    }

    mutating func went(_ user: UserID, at now: Int64) { gone[user] = now }

    /// Takes what is to be stored now: when each was online last, which is now for those who are still here.
    mutating func takeDue(at now: Int64) -> [UserID: Int64] {
        var due: [UserID: Int64] = [:]
        guard now >= pausedUntil else { return due }
        for user in gone.elements(limit: settings.usersAtOnce) {
            due[user] = gone[user]
            (gone[user], staying[user]) = (nil, nil)
            again.remove(user)
        }
        // All who have gone are taken then: whoever is left stays.
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
        // Behind all others: their times come before its next.
        staying[user] = nil
        staying[user] = now + settings.refresh
    }

    /// Takes back what couldn't be stored. Those who are here are stored with the time that it is by then.
    mutating func takeBack(_ users: [UserID: Int64], at now: Int64) {
        for (user, time) in users where gone[user] == nil {
            if staying[user] == nil { gone[user] = time } else { again.insert(user) }
        }
        pausedUntil = now + settings.pauseAfterFailure
    }

    /// Takes all that is known: the server ends.
    mutating func takeAll(at now: Int64) -> [UserID: Int64] {
        var all = Dictionary(uniqueKeysWithValues: staying.elements().map { ($0, now) })
        for user in gone.elements() { all[user] = gone[user] }
        (staying, gone, again) = (ArrivalOrder(), ArrivalOrder(), [])
        return all
    }

    /// How long nothing is due, unless something happens; nil for ever.
    func rest(at now: Int64) -> Int64? {
        if !gone.isEmpty || !again.isEmpty { return max(settings.pauseInBacklog, pausedUntil - now) }
        guard let first = staying.elements(limit: 1).first.flatMap({ staying[$0] }) else { return nil }
        return max(settings.pauseInBacklog, first - now, lookedAt + settings.pause - now)
    }
}
