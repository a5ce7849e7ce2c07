import RoostAPI

/// How much each user has done within a second, of what isn't stored. A value without a clock; times are milliseconds.
struct UserRates {
    private let perSecond: Int
    private var counts: [UserID: Int] = [:]
    private var second: Int64 = .min

    init(perSecond: Int = Limits.signalsPerSecond) { self.perSecond = perSecond }

    /// Counts one more. What was counted is forgotten with each new second, so that nothing is kept of anybody.
    ///
    /// - Returns: Whether the user may do it.
    mutating func admit(_ user: UserID, at now: Int64) -> Bool {
        if second != now / 1000 { (second, counts) = (now / 1000, [:]) }
        let count = counts[user, default: 0]
        guard count < perSecond else { return false }
        counts[user] = count + 1
        return true
    }
}
