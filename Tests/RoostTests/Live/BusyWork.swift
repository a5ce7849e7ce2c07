import Dispatch
import Synchronization

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
