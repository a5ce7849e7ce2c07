import NIOConcurrencyHelpers

/// A value that changes, and its followers. Slow followers get the newest value and not each one in between; whoever needs those asks for the changes since
/// it last did.
final class Broadcast<Value: Sendable>: Sendable {
    /// How many of the last values are known.
    static var rememberedMax: Int { 32 }

    private struct State {
        var value: Value
        /// The last values, with the current one.
        var recent: [Value]
        /// How many values there have been.
        var count = 1
        var followers: [Int: AsyncStream<Value>.Continuation] = [:]
        var lastNumber = 0
    }

    private let state: NIOLockedValueBox<State>

    init(_ value: Value) { state = NIOLockedValueBox(State(value: value, recent: [value])) }

    var current: Value { state.withLockedValue { $0.value } }

    /// Returns the values since the first ones, as far as they are known, and how many there have been.
    ///
    /// - Parameter count: How many there had been when this was asked last; 0 for the first time.
    func changes(since count: Int) -> (values: [Value], count: Int) {
        state.withLockedValue { ($0.recent.suffix(max(0, $0.count - count)).map(\.self), $0.count) }
    }

    func send(_ value: Value) {
        state.withLockedValue { state in
            state.value = value
            state.count += 1
            state.recent.append(value)
            if state.recent.count > Self.rememberedMax { state.recent.removeFirst() }
            for follower in state.followers.values { follower.yield(value) }
        }
    }

    /// The current value, and the newest one whenever it has changed since.
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
