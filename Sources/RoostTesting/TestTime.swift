import Foundation
import Roost
import RoostAPI
import Synchronization

/// The time of a test server and its chats: the machine's time, plus whatever a test has added.
final class TestTime: DayClock {
    typealias Instant = ContinuousClock.Instant

    private struct State {
        var ahead = Duration.zero
        var sleepers: [Int: AsyncStream<Void>.Continuation] = [:]
        var lastNumber = 0
    }

    private let state = Mutex(State())

    var now: Instant { ContinuousClock.now + ahead }
    var minimumResolution: Duration { ContinuousClock().minimumResolution }

    /// The time of day.
    var timestamp: Timestamp { Timestamp(Date().addingTimeInterval(ahead / .seconds(1))) }

    private var ahead: Duration { state.withLock { $0.ahead } }

    func advance(by duration: Duration) {
        let sleepers = state.withLock { state in
            // Far beyond any end time that the server accepts, and far below an overflow.
            state.ahead = min(state.ahead + max(.zero, min(duration, Self.aheadMax)), Self.aheadMax)
            return Array(state.sleepers.values)
        }
        for sleeper in sleepers { sleeper.yield() }
    }

    private static let aheadMax = Duration.seconds(50 * 366 * 86_400)

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        let (advances, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let number = state.withLock { state in
            state.lastNumber += 1
            state.sleepers[state.lastNumber] = continuation
            return state.lastNumber
        }
        defer { state.withLock { _ = $0.sleepers.removeValue(forKey: number) } }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                var left = deadline - self.now
                while left > .zero {
                    try await Task.sleep(for: left, tolerance: tolerance)
                    left = deadline - self.now
                }
            }
            group.addTask {
                for await _ in advances where self.now >= deadline { return }
                try Task.checkCancellation()
            }
            defer { group.cancelAll() }
            try await group.next()
        }
    }
}
