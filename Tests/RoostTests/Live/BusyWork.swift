import Synchronization

/// Work that occupies whoever performs it, until the test ends it.
final class BusyWork: Sendable {
    private enum State { case waiting, running, ended }

    private let state = Mutex(State.waiting)

    var isRunning: Bool { state.withLock { $0 == .running } }

    func run() {
        state.withLock { $0 = .running }
        while isRunning {}
    }

    func end() { state.withLock { $0 = .ended } }
}
