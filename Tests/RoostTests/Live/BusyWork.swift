import Dispatch
import Synchronization
import Testing

@testable import Roost

/// Work that occupies its thread or actor until the test ends it.
///
/// It doesn't use the processor: several that spun would leave no time to the tests that have to end them.
final class BusyWork: Sendable {
    private enum State { case waiting, running, ended }

    private let state = Mutex(State.waiting)
    private let hasEnded = DispatchSemaphore(value: 0)

    var isRunning: Bool { state.withLock { $0 == .running } }

    func run() {
        state.withLock { $0 = .running }
        hasEnded.wait()
    }

    func end() {
        state.withLock { $0 = .ended }
        hasEnded.signal()
    }
}

/// Work that occupies both connections for readers of a store in a file. The store is still written.
struct BusyReaders: Sendable {
    private let works: [BusyWork]

    /// Returns once both are occupied.
    static func occupying(_ store: Store) async throws -> BusyReaders {
        let works = [BusyWork(), BusyWork()]
        for work in works { _ = Task { try await store.read { _ in work.run() } } }
        try await until { works.allSatisfy(\.isRunning) }
        return BusyReaders(works: works)
    }

    func end() { for work in works { work.end() } }
}
