import Dispatch
import Synchronization

/// Work that occupies whoever performs it, until the test ends it.
///
/// It takes no processor's time: several that ran in circles would leave none to the tests that are to end them.
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
