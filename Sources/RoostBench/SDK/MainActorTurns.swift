import Foundation
import NIOConcurrencyHelpers

/// Watches the turns of the main actor: the most CPU time that one took, and the longest that one waited.
///
/// The main actor has no dedicated thread here; any free one serves it. A watcher requests a sample every half millisecond. A long turn is followed
/// by a sample on the same thread. Other work of that thread counts as well, and so do consecutive turns in between: the CPU time is an upper
/// bound.
final class MainActorTurns: Sendable {
    struct Longest {
        var cpuMilliseconds = 0.0
        var waitMilliseconds = 0.0
    }

    private struct State {
        var isOver = false
        /// When the pending sample was requested.
        var askedAt: UInt64?
        /// The CPU time in ns of each thread that has served the actor, at the last sample, by its clock.
        var threads: [clockid_t: UInt64] = [:]
        var longest = Longest()
    }

    private let state = NIOLockedValueBox(State())

    init() {
        Thread.detachNewThread { [self] in
            while ask() { usleep(500) }
        }
    }

    /// Ends watching.
    func end() -> Longest {
        state.withLockedValue { state in
            state.isOver = true
            return state.longest
        }
    }

    private func ask() -> Bool {
        let (isDue, isOver) = state.withLockedValue { state in
            defer { if state.askedAt == nil { state.askedAt = Clock.now() } }
            return (state.askedAt == nil, state.isOver)
        }
        if isDue, !isOver { Task { @MainActor in self.sample() } }
        return !isOver
    }

    @MainActor private func sample() {
        guard let own = Clock.ofThread else { return }
        state.withLockedValue { state in
            if let askedAt = state.askedAt {
                state.longest.waitMilliseconds = max(state.longest.waitMilliseconds, Double(Clock.now() - askedAt) / 1e6)
            }
            state.askedAt = nil
            if let before = state.threads[own] {
                let used = Double(Clock.cpu(own) - before) / 1e6
                state.longest.cpuMilliseconds = max(state.longest.cpuMilliseconds, used)
            }
            for thread in [own] + state.threads.keys { state.threads[thread] = Clock.cpu(thread) }
        }
    }
}
