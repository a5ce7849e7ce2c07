import Roost
import RoostAPI
import Synchronization

/// A clock, and a time of day, that stand still until a test advances them.
final class ManualClock: DayClock {
    typealias Instant = ContinuousClock.Instant

    private struct Sleeper {
        /// Counted from the clock's start.
        var end: Duration
        var wake: AsyncStream<Void>.Continuation
    }

    private struct State {
        var ahead = Duration.zero
        /// How much later the time of day is than the clock.
        var dayOffset = Duration.zero
        var sleepers: [Int: Sleeper] = [:]
        var lastNumber = 0
    }

    private let start = ContinuousClock.now
    private let state = Mutex(State())

    var now: Instant { start + ahead }
    var minimumResolution: Duration { .zero }
    var timestamp: Timestamp { Timestamp(milliseconds: Int64(state.withLock { $0.ahead + $0.dayOffset } / .milliseconds(1))) }

    private var ahead: Duration { state.withLock { $0.ahead } }

    /// When the sleeping tasks wake, counted from the clock's start.
    var ends: [Duration] { state.withLock { state in state.sleepers.values.map { $0.end } } }

    func advance(by duration: Duration) {
        let sleepers = state.withLock { state in
            state.ahead += duration
            return Array(state.sleepers.values)
        }
        for sleeper in sleepers { sleeper.wake.yield() }
    }

    /// Sets the time of day alone, as a user does: sleeping tasks wake neither earlier nor later.
    func setTimeOfDay(by duration: Duration) { state.withLock { $0.dayOffset += duration } }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        let (wakes, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let sleeper = Sleeper(end: deadline - start, wake: wake)
        let number = state.withLock { state in
            state.lastNumber += 1
            state.sleepers[state.lastNumber] = sleeper
            return state.lastNumber
        }
        defer { state.withLock { _ = $0.sleepers.removeValue(forKey: number) } }
        if now < deadline {
            for await _ in wakes where now >= deadline { break }
        }
        try Task.checkCancellation()
    }
}
