import RoostAPI

/// A channel's silence and rate limit end by the clock, without an event (AM-07, AM-08), and so does a mute of the user. Rows hold the state as of
/// when they were read; objects that show them wait for the next end, and show them again.
extension Channel {
    /// Whether a silence or a rate limit has ended since `updateTimedStates(at:)`.
    func hasEndedState(at now: Timestamp) -> Bool {
        var current = self
        current.updateTimedStates(at: now)
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
    /// Whether the user is muted in the channel (AM-48). Without a time to compare with, a mute counts as lasting.
    func isMuted(at now: Timestamp?) -> Bool {
        guard let mutedUntil else { return false }
        guard let now else { return true }
        return mutedUntil > now
    }
}

extension SyncDriver.Environment {
    /// Does work once this device's clock reaches a given time, unless the token is released or invalidated before. If the clock is set forward, it
    /// may run up to a minute late.
    func waiting(until moment: Timestamp, _ work: @escaping @MainActor () async -> Void) -> ObservationToken {
        let (clock, now) = (clock, now)
        return ObservationToken(
            task: Task {
                while case let wait = moment.milliseconds.subtractingWithSaturation(now().milliseconds), wait > 0 {
                    // Not in one sleep: the clock may be set forward past the end meanwhile.
                    do { try await clock.sleep(for: .milliseconds(min(wait, Self.waitMillisecondsMax))) } catch { return }
                }
                await work()
            })
    }

    private static var waitMillisecondsMax: Int64 { 60_000 }
}
