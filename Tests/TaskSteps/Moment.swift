/// When an action is applied to a task that runs on a ``StepExecutor``. Steps are counted from 1.
package enum Moment: Hashable, Sendable {
    /// Right before a step: what the task waited for is available.
    case before(Int)
    /// Right after a step: the task waits, or continues elsewhere, mostly on the main actor.
    case after(Int)
    /// Once the main actor has done what it was given up to the end of a step, and has had this many further turns. Step 0 is before the first one.
    case later(Int, turns: Int)

    /// The most steps that ``withEach(turnsMax:_:)`` goes through.
    package static let stepsMax = 500

    /// Runs a task again and again, each time with an action at another moment, until the task ends before that moment: at each of its
    /// steps, and after each turn of the main actor until the next one.
    ///
    /// - Parameters:
    ///   - turnsMax: If the next step hasn't begun after this many turns, the task waits for something else.
    ///   - attempt: Runs the task. Returns what ``StepExecutor/end()`` does.
    /// - Returns: The number of steps that it went through.
    @MainActor package static func withEach(
        turnsMax: Int = 2, _ attempt: @MainActor (Moment) async throws -> Int?
    ) async rethrows -> Int {
        for step in 1...stepsMax {
            guard try await attempt(.before(step)) != nil else { return step - 1 }
            _ = try await attempt(.after(step))
            for turns in 0...turnsMax {
                // Once the next step has begun, continue with that one.
                guard try await attempt(.later(step, turns: turns)) == step else { break }
            }
        }
        return stepsMax
    }
}
