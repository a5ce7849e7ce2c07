import RoostAPI

/// Refusals in a row that pass by themselves: those of a busy server, say.
struct PassingRefusals: Hashable, Sendable {
    private var count = 0
    private var internalErrors = 0

    /// Counts one more refusal.
    ///
    /// - Returns: How long to wait before the server is asked again: as long as it says, and longer from one time to the next. Nil if it refuses for
    ///   good, which many internal errors are taken for too.
    mutating func pause(after error: RoostError, _ settings: Sync.Settings) -> Duration? {
        if error.code == .internalError { internalErrors += 1 }
        guard error.isRetryable, internalErrors < settings.internalErrorsMax else { return nil }
        let doubled = settings.backoff.lowerBound * (1 << min(count, 16))
        count += 1
        return max(min(settings.backoff.upperBound, doubled), error.retryAfterMilliseconds.map(Sync.wait) ?? .zero)
    }
}
