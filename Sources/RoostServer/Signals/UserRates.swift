import RoostAPI
import RoostCore

/// How often each user has recently called each operation with a rate limit per user. A value without a clock; times are milliseconds.
struct UserRates {
    private struct Key: Hashable {
        let user: UserID
        let operation: String
    }
    /// The counts within one period.
    private struct Counts {
        var period: Int64
        var counts: [Key: Int] = [:]
    }
    private var counts: [UserRate: Counts] = [:]

    /// Counts one more. All counts are dropped when a period (a second or a minute) ends, so no data about users is kept.
    ///
    /// - Returns: Whether the user may do it.
    mutating func admit(_ user: UserID, _ operation: String, at rate: UserRate, now: Int64) -> Bool {
        let period = now / (Int64(rate.seconds) * 1000)
        if counts[rate]?.period != period { counts[rate] = Counts(period: period) }
        let count = counts[rate]?.counts[Key(user: user, operation: operation), default: 0] ?? 0
        guard count < rate.count else { return false }
        counts[rate]?.counts[Key(user: user, operation: operation)] = count + 1
        return true
    }
}
