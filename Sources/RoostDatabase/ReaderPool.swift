import Dispatch
import RoostCore
import Synchronization

/// The reading connections, each lent to one caller at a time. A caller waits until one is free, and callers are served in order of arrival: a thread
/// that reads continuously can't keep others from it.
final class ReaderPool<Reader: Sendable>: Sendable {
    /// A waiting caller. A returned reader is handed over to it directly, so no other caller can take it.
    private final class Waiter: Sendable {
        let reader = Mutex<Reader?>(nil)
        /// A semaphore may not end with a lower value than it started with, so it starts at zero.
        let isServed = DispatchSemaphore(value: 0)
    }

    private struct State {
        var free: [Reader] = []
        var waiters: [Waiter] = []
        var isDrained = false
    }

    private let state = Mutex(State())

    /// The number of waiting callers.
    var waitingCount: Int { state.withLock { $0.waiters.count } }

    func add(_ reader: Reader) { giveBack(reader) }

    /// - Throws: A failure of the kind `transaction` once the pool has been drained; the body's errors.
    func withReader<T>(_ body: (Reader) throws -> T) throws -> T {
        guard let reader = take() else {
            throw DatabaseFailure(message: "The database is closed.", kind: .transaction)
        }
        defer { giveBack(reader) }
        return try body(reader)
    }

    /// Lends a reader if one is free, without waiting.
    ///
    /// - Returns: Nil if none is free or the pool has been drained; the body didn't run then.
    func withFreeReader<T>(_ body: (Reader) throws -> T) rethrows -> T? {
        guard let reader = state.withLock({ $0.isDrained ? nil : $0.free.popLast() }) else { return nil }
        defer { giveBack(reader) }
        return try body(reader)
    }

    /// Takes all readers, each once the callers that waited for it are done. Later callers are refused instead of waiting indefinitely.
    ///
    /// - Parameter count: The number of readers.
    func drain(_ count: Int) -> [Reader] {
        state.withLock { $0.isDrained = true }
        return (0..<count).compactMap { _ in take(toDrain: true) }
    }

    /// Returns a reader once one is free; nil after the pool has been drained.
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
