import Dispatch
import RoostCore
import Synchronization

/// The connections that read, each lent to one caller at a time. A caller waits until one is free.
final class ReaderPool<Reader: Sendable>: Sendable {
    private let free = Mutex<[Reader]>([])
    /// How many are free. A semaphore may not end with a lower value than it began with, so it begins with none.
    private let freeCount = DispatchSemaphore(value: 0)

    func add(_ reader: Reader) {
        free.withLock { $0.append(reader) }
        freeCount.signal()
    }

    /// - Throws: a failure of the transaction once the pool was drained; what the body throws.
    func withReader<T>(_ body: (Reader) throws -> T) throws -> T {
        freeCount.wait()
        defer { freeCount.signal() }
        guard let reader = free.withLock({ $0.popLast() }) else {
            throw DatabaseFailure(message: "The database is closed.", kind: .transaction)
        }
        defer { free.withLock { $0.append(reader) } }
        return try body(reader)
    }

    /// Waits for all readers and takes them away. Later callers are refused instead of waiting for ever.
    ///
    /// - Parameter count: how many readers there are.
    func drain(_ count: Int) -> [Reader] {
        for _ in 0..<count { freeCount.wait() }
        defer { for _ in 0..<count { freeCount.signal() } }
        return free.withLock { free in
            defer { free = [] }
            return free
        }
    }
}
