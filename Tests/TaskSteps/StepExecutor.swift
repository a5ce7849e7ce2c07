import Dispatch
import Synchronization

/// Runs a task step by step, so an action can be applied to it at any of its waits, such as cancelling it.
///
/// A step is what the task does in one go off the main actor, and off other actors with threads of their own, such as a database's.
/// Every wait ends with a step, even one on those actors: the task passes through its executor on the way back. So a wait begins in a
/// step, or on the main actor a turn or two after it, and ends before the next. Tasks that the task starts have no steps here, unless
/// they are its children.
package final class StepExecutor: TaskExecutor {
    private struct State {
        var count = 0
        /// The awaited moment, and the action then.
        var moment: Moment?
        var action: (@Sendable () -> Void)?
        /// How many steps had begun when it came.
        var countThen: Int?
    }

    private let queue = DispatchQueue(label: "steps")
    private let state = Mutex(State())

    /// No step is run before ``run(_:at:)``, which has to be called.
    package init() { queue.suspend() }

    /// How many steps have begun.
    package var count: Int { state.withLock { $0.count } }

    /// Starts to run steps, and performs an action once, if the moment comes before ``end()``. It is called once.
    package func run(_ action: @escaping @Sendable () -> Void, at moment: Moment) {
        state.withLock { ($0.moment, $0.action) = (moment, action) }
        actLater(than: 0)
        queue.resume()
    }

    /// Cancels the action from here on: the task has ended.
    ///
    /// - Returns: How many steps had begun when the moment came; nil if it didn't come.
    package func end() -> Int? {
        state.withLock { state in
            (state.moment, state.action) = (nil, nil)
            return state.countThen
        }
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { [self] in
            let number = state.withLock { state in
                state.count += 1
                return state.count
            }
            act(at: .before(number))
            job.runSynchronously(on: asUnownedTaskExecutor())
            act(at: .after(number))
            actLater(than: number)
        }
    }

    private func act(at moment: Moment) {
        let action = state.withLock { state -> (@Sendable () -> Void)? in
            guard state.moment == moment, let action = state.action else { return nil }
            (state.action, state.countThen) = (nil, state.count)
            return action
        }
        action?()
    }

    private func actLater(than step: Int) {
        guard case .later(step, let turns)? = state.withLock({ $0.moment }) else { return }
        // This runs after what the step has given to the main actor.
        Task { @MainActor in
            for _ in 0..<turns where isAwaited { await Task.yield() }
            act(at: .later(step, turns: turns))
        }
    }

    private var isAwaited: Bool { state.withLock { $0.moment != nil } }
}
