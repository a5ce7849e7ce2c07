import RoostAPI

/// Consecutive refusals that end by themselves, such as those of a busy server.
struct TransientRefusals: Hashable, Sendable {
    private var count = 0
    private var internalErrors = 0

    /// Counts a refusal.
    ///
    /// - Returns: How long to wait before asking the server again: at least as long as it says, and longer each time. Nil if the refusal is final,
    ///   which many internal errors count as too.
    mutating func pause(after error: RoostError, _ settings: Sync.Settings) -> Duration? {
        if error.code == .internalError { internalErrors += 1 }
        guard error.isRetryable, internalErrors < settings.internalErrorsMax else { return nil }
        let doubled = settings.backoff.lowerBound * (1 << min(count, 16))
        count += 1
        return max(min(settings.backoff.upperBound, doubled), error.retryAfterMilliseconds.map(Sync.pause) ?? .zero)
    }
}
