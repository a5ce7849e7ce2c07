import RoostAPI

/// A silence and a rate limit of a channel end by the clock, without an event (AM-07, AM-08), and so does a mute of the user. Rows say how it
/// was when they were read; whoever shows them waits for the next end, and shows them anew.
extension Channel {
    /// Sets what follows from the times at which a silence and a rate limit end.
    mutating func updateTimedStates(_ now: Timestamp) {
        isMuted = mutedUntil.map { $0 > now } ?? false
        isRateLimited = rateLimitedUntil.map { $0 > now } ?? false
    }

    /// Whether a silence or a rate limit has ended that ``updateTimedStates(_:)`` saw before.
    func hasEndedState(at now: Timestamp) -> Bool {
        var current = self
        current.updateTimedStates(now)
        return current.isMuted != isMuted || current.isRateLimited != isRateLimited
    }

    /// When the next of them ends; nil if none does.
    func nextEnd(after now: Timestamp) -> Timestamp? {
        // Most channels have neither, and lists ask this of each row that they read.
        guard mutedUntil != nil || rateLimitedUntil != nil else { return nil }
        return [mutedUntil, rateLimitedUntil].compactMap(\.self).filter { $0 > now && $0 < .forever }.min()
    }
}

extension Membership {
    /// Whether the user is muted in the channel (AM-48). Without a time to compare with, a mute lasts.
    func isMuted(at now: Timestamp?) -> Bool {
        guard let mutedUntil else { return false }
        guard let now else { return true }
        return mutedUntil > now
    }
}

extension SyncDriver.Environment {
    /// Does work once this device's clock has come to a moment, unless the token is released or invalidated before. If the clock is set forward, it may come
    /// a minute late.
    func waiting(until moment: Timestamp, _ work: @escaping @MainActor () async -> Void) -> ObservationToken {
        let (clock, now) = (clock, now)
        return ObservationToken(
            task: Task {
                while case let wait = moment.milliseconds.subtractingWithSaturation(now().milliseconds), wait > 0 {
                    // Not all of it at once: a clock that is set forward meanwhile may be there already.
                    do { try await clock.sleep(for: .milliseconds(min(wait, Self.waitMillisecondsMax))) } catch { return }
                }
                await work()
            })
    }

    private static var waitMillisecondsMax: Int64 { 60_000 }
}
