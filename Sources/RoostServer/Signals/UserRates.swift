import RoostAPI

/// How often each user has done each thing within a second, of what isn't stored. A value without a clock; times are milliseconds.
struct UserRates {
    private let perSecond: Int
    private struct Key: Hashable {
        let user: UserID
        let operation: String
    }
    private var counts: [Key: Int] = [:]
    private var second: Int64 = .min

    init(perSecond: Int = Limits.signalsPerSecond) { self.perSecond = perSecond }

    /// Counts one more. What was counted is forgotten with each new second, so that nothing is kept of anybody.
    ///
    /// - Returns: Whether the user may do it.
    mutating func admit(_ user: UserID, _ operation: String, at now: Int64) -> Bool {
        if second != now / 1000 { (second, counts) = (now / 1000, [:]) }
        let key = Key(user: user, operation: operation)
        let count = counts[key, default: 0]
        guard count < perSecond else { return false }
        counts[key] = count + 1
        return true
    }
}
