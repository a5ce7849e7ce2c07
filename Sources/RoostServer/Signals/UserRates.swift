import RoostAPI
import RoostCore

/// How often each user has done each thing of late, of what isn't stored. A value without a clock; times are milliseconds.
struct UserRates {
    private struct Key: Hashable {
        let user: UserID
        let operation: String
    }
    /// What was counted within one stretch of time.
    private struct Counts {
        var stretch: Int64
        var counts: [Key: Int] = [:]
    }
    private var counts: [UserRate: Counts] = [:]

    /// Counts one more. What was counted is forgotten with each new stretch, a second or a minute, so that nothing is kept of anybody.
    ///
    /// - Returns: Whether the user may do it.
    mutating func admit(_ user: UserID, _ operation: String, at rate: UserRate, now: Int64) -> Bool {
        let stretch = now / (Int64(rate.seconds) * 1000)
        if counts[rate]?.stretch != stretch { counts[rate] = Counts(stretch: stretch) }
        let count = counts[rate]?.counts[Key(user: user, operation: operation), default: 0] ?? 0
        guard count < rate.count else { return false }
        counts[rate]?.counts[Key(user: user, operation: operation)] = count + 1
        return true
    }
}
