import NIOConcurrencyHelpers

/// A value that changes, and its followers. Slow followers get the newest value and not each one in between.
final class Broadcast<Value: Sendable>: Sendable {
    private struct State {
        var value: Value
        var followers: [Int: AsyncStream<Value>.Continuation] = [:]
        var lastNumber = 0
    }

    private let state: NIOLockedValueBox<State>

    init(_ value: Value) { state = NIOLockedValueBox(State(value: value)) }

    var current: Value { state.withLockedValue { $0.value } }

    func send(_ value: Value) {
        state.withLockedValue { state in
            state.value = value
            for follower in state.followers.values { follower.yield(value) }
        }
    }

    /// The current value and each one after it.
    func values() -> AsyncStream<Value> {
        let (stream, continuation) = AsyncStream.makeStream(of: Value.self, bufferingPolicy: .bufferingNewest(1))
        let number = state.withLockedValue { state in
            state.lastNumber += 1
            state.followers[state.lastNumber] = continuation
            continuation.yield(state.value)
            return state.lastNumber
        }
        // Cancelling a task holds a lock of it, which a new value needs to wake it: this one can't be waited for there.
        continuation.onTermination = { [weak self] _ in
            Task { self?.forget(number) }
        }
        return stream
    }

    private func forget(_ number: Int) { state.withLockedValue { $0.followers[number] = nil } }
}
