import Dispatch
import RoostCore
import Synchronization

/// The connections that read, each lent to one caller at a time. A caller waits until one is free, and callers are served in the order in which they
/// came: a thread that reads without a pause can't keep the others from it.
final class ReaderPool<Reader: Sendable>: Sendable {
    /// A caller that waits. Whoever gives a reader back hands it over, and nobody comes between.
    private final class Waiter: Sendable {
        let reader = Mutex<Reader?>(nil)
        /// A semaphore may not end with a lower value than it began with, so it begins with none.
        let isServed = DispatchSemaphore(value: 0)
    }

    private struct State {
        var free: [Reader] = []
        var waiters: [Waiter] = []
        var isDrained = false
    }

    private let state = Mutex(State())

    /// How many callers wait.
    var waitingCount: Int { state.withLock { $0.waiters.count } }

    func add(_ reader: Reader) { giveBack(reader) }

    /// - Throws: a failure of the transaction once the pool was drained; what the body throws.
    func withReader<T>(_ body: (Reader) throws -> T) throws -> T {
        guard let reader = take() else {
            throw DatabaseFailure(message: "The database is closed.", kind: .transaction)
        }
        defer { giveBack(reader) }
        return try body(reader)
    }

    /// Lends a reader if one is free: nobody waits for it.
    ///
    /// - Returns: Nil if none is free, or the pool was drained; then the body didn't run.
    func withFreeReader<T>(_ body: (Reader) throws -> T) rethrows -> T? {
        guard let reader = state.withLock({ $0.isDrained ? nil : $0.free.popLast() }) else { return nil }
        defer { giveBack(reader) }
        return try body(reader)
    }

    /// Takes all readers away, each once those who waited for it are done. Later callers are refused instead of waiting for ever.
    ///
    /// - Parameter count: how many readers there are.
    func drain(_ count: Int) -> [Reader] {
        state.withLock { $0.isDrained = true }
        return (0..<count).compactMap { _ in take(toDrain: true) }
    }

    /// Returns a reader once there is one; nil after the pool was drained.
    private func take(toDrain isDraining: Bool = false) -> Reader? {
        let (free, waiter) = state.withLock { state -> (Reader?, Waiter?) in
            guard isDraining || !state.isDrained else { return (nil, nil) }
            if let reader = state.free.popLast() { return (reader, nil) }
            let waiter = Waiter()
            state.waiters.append(waiter)
            return (nil, waiter)
        }
        guard let waiter else { return free }
        waiter.isServed.wait()
        return waiter.reader.withLock { $0 }
    }

    private func giveBack(_ reader: Reader) {
        let waiter = state.withLock { state -> Waiter? in
            guard state.waiters.isEmpty else { return state.waiters.removeFirst() }
            state.free.append(reader)
            return nil
        }
        guard let waiter else { return }
        waiter.reader.withLock { $0 = reader }
        waiter.isServed.signal()
    }
}
