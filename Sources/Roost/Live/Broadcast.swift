import NIOConcurrencyHelpers

/// A value that changes, and its followers. Slow followers get the newest value, not every one in between; a follower that needs them all asks for
/// the changes since it last asked.
final class Broadcast<Value: Sendable>: Sendable {
    /// How many of the latest values are kept.
    static var rememberedMax: Int { 32 }

    private struct State {
        var value: Value
        /// The latest values, including the current one.
        var recent: [Value]
        /// How many values there have been.
        var count = 1
        var followers: [Int: AsyncStream<Value>.Continuation] = [:]
        var lastNumber = 0
    }

    private let state: NIOLockedValueBox<State>

    init(_ value: Value) { state = NIOLockedValueBox(State(value: value, recent: [value])) }

    var current: Value { state.withLockedValue { $0.value } }

    /// Returns the values since the first `count`, as far as they are still kept, and the total number so far.
    ///
    /// - Parameter count: The total returned by the previous call; 0 the first time.
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

    /// The current value, then the newest one after each change.
    func values() -> AsyncStream<Value> {
        let (stream, continuation) = AsyncStream.makeStream(of: Value.self, bufferingPolicy: .bufferingNewest(1))
        let number = state.withLockedValue { state in
            state.lastNumber += 1
            state.followers[state.lastNumber] = continuation
            continuation.yield(state.value)
            return state.lastNumber
        }
        // Cancelling a task holds its lock, which a new value needs in order to wake it: waiting for this lock here would deadlock.
        continuation.onTermination = { [weak self] _ in
            Task { self?.forget(number) }
        }
        return stream
    }

    private func forget(_ number: Int) { state.withLockedValue { $0.followers[number] = nil } }
}
