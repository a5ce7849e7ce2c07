import NIOConcurrencyHelpers

/// Keeps an app's calls in the order in which they were made, whatever each of them has to wait for before it reaches the machine.
///
/// A call takes its turn where it is made, without a wait in between; it waits for the turn to come; and it passes it on as soon as it is on its
/// way. A turn that is let go of is passed on too, so that a call that fails holds up nobody.
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
        private let previous: NIOLockedValueBox<Gate?>
        private let gate: Gate

        fileprivate init(after previous: Gate?, _ gate: Gate) {
            self.previous = NIOLockedValueBox(previous)
            self.gate = gate
        }

        deinit { gate.open() }

        /// Returns when all earlier calls are on their way.
        func comes() async {
            await previous.withLockedValue { $0 }?.isOpen()
            previous.withLockedValue { $0 = nil }
        }

        /// Lets the next call go.
        func pass() { gate.open() }
    }

    /// Opens once.
    fileprivate final class Gate: Sendable {
        private struct State {
            var isOpen = false
            var waiting: CheckedContinuation<Void, Never>?
        }

        private let state = NIOLockedValueBox(State())

        func open() {
            let waiting = state.withLockedValue { state in
                state.isOpen = true
                defer { state.waiting = nil }
                return state.waiting
            }
            waiting?.resume()
        }

        /// Returns when it is open. One call waits for a gate: the next one.
        func isOpen() async {
            await withCheckedContinuation { continuation in
                let isOpen = state.withLockedValue { state in
                    if !state.isOpen { state.waiting = continuation }
                    return state.isOpen
                }
                if isOpen { continuation.resume() }
            }
        }
    }
}
