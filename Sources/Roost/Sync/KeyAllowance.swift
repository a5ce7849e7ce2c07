import RoostAPI

/// Limits the idempotency keys of frequent operations.
///
/// The server keeps ``Limits/idempotencyKeysPerUser`` keys per user, each for a week. A user who reads a busy channel marks it every two seconds, and
/// one who types saves a draft every second: with a key each, none would be left for deliberate actions. So some keys are available at once, and then
/// a few every hour: about half of all keys in a week. A mark or a draft beyond that is sent without a key, and only that one might be carried out
/// a second time after its answer was lost.
struct KeyAllowance: Hashable, Sendable {
    static let atOnce = 100
    private static let intervalMilliseconds: Int64 = 120_000

    private var left = Self.atOnce
    private var renewedAt = Timestamp(milliseconds: 0)

    /// Takes a key if one is available.
    mutating func take(at now: Timestamp) -> Bool {
        let passed = now.milliseconds.subtractingWithSaturation(renewedAt.milliseconds)
        let earned = min(passed / Self.intervalMilliseconds, Int64(Self.atOnce))
        if earned > 0 { left = min(Self.atOnce, left + Int(earned)) }
        // A server's clock may be set back.
        if earned > 0 || passed < 0 { renewedAt = now }
        guard left > 0 else { return false }
        left -= 1
        return true
    }
}
