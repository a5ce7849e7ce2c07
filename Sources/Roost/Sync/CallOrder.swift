import NIOConcurrencyHelpers

/// Keeps an app's calls in the order in which they were made, whatever each waits for before it reaches the machine.
///
/// A call takes its turn where it is made, without suspending first. It waits for the turn to come, and passes it on once it is under way. A turn
/// that is released is passed on too, so a failed call blocks no other; the next one still waits for all before it.
final class CallOrder: Sendable {
    private let last = NIOLockedValueBox<Gate?>(nil)

    func take() -> Turn {
        let gate = Gate()
        let previous = last.withLockedValue { last in
            defer { last = gate }
            return last
        }
        return Turn(after: previous, gate)
    }

    /// One call's place in the order.
    final class Turn: Sendable {
        private struct State {
            /// The gate that it waits for; nil once that is open.
            var previous: Gate?
            var isPassed = false
        }

        private let state: NIOLockedValueBox<State>
        private let gate: Gate

        fileprivate init(after previous: Gate?, _ gate: Gate) {
            state = NIOLockedValueBox(State(previous: previous))
            self.gate = gate
        }

        deinit { pass() }

        /// Whether all earlier calls are under way.
        var hasCome: Bool { state.withLockedValue { $0.previous }?.hasOpened ?? true }

        /// Returns once all earlier calls are under way.
        ///
        /// - Throws: `CancellationError` if the task is cancelled before that.
        func comes() async throws {
            try await state.withLockedValue { $0.previous }?.isOpen()
            state.withLockedValue { $0.previous = nil }
        }

        /// The same for a call that is made even if its task is cancelled.
        func waitIgnoringCancellation() async {
            // Nothing cancels this task.
            _ = try? await Task { try await comes() }.value
        }

        /// Lets the next call go once all earlier ones are under way. Calling it again does nothing.
        func pass() {
            let (isFirst, previous) = state.withLockedValue { state in
                defer { (state.isPassed, state.previous) = (true, nil) }
                return (!state.isPassed, state.previous)
            }
            guard isFirst else { return }
            if let previous { previous.opens(gate) } else { gate.open() }
        }
    }

    /// A gate that opens once.
    fileprivate final class Gate: Sendable {
        private struct State {
            var isOpen = false
            var waiting: CheckedContinuation<Void, any Error>?
            /// The gate of a call that was given up while it waited for this one.
            var next: Gate?
        }

        private let state = NIOLockedValueBox(State())

        var hasOpened: Bool { state.withLockedValue { $0.isOpen } }

        func open() {
            // In a loop, not recursively: there may be thousands.
            var opening: Gate? = self
            while let gate = opening {
                let (waiting, next) = gate.state.withLockedValue { state in
                    state.isOpen = true
                    defer { (state.waiting, state.next) = (nil, nil) }
                    return (state.waiting, state.next)
                }
                waiting?.resume()
                opening = next
            }
        }

        /// Opens another gate once this one is open.
        func opens(_ next: Gate) {
            let isOpen = state.withLockedValue { state in
                if !state.isOpen { state.next = next }
                return state.isOpen
            }
            if isOpen { next.open() }
        }

        /// Returns once it is open. Only one call waits for a gate: the next one.
        ///
        /// - Throws: `CancellationError` if the task is cancelled before that.
        func isOpen() async throws {
            try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    let result: Result<Void, any Error>? = state.withLockedValue { state in
                        if state.isOpen { return .success(()) }
                        // The task may have been cancelled before there was a continuation to resume.
                        if Task.isCancelled { return .failure(CancellationError()) }
                        state.waiting = continuation
                        return nil
                    }
                    if let result { continuation.resume(with: result) }
                }
            } onCancel: {
                let waiting = state.withLockedValue { state in
                    defer { state.waiting = nil }
                    return state.waiting
                }
                waiting?.resume(throwing: CancellationError())
            }
        }
    }
}
