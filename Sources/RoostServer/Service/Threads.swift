import Foundation
import RoostDatabase

/// The server's own threads, for blocking work: the concurrency runtime's few threads and the event loops must never block.
final class Threads: Sendable {
    private let running = DispatchGroup()

    func start(_ name: String, _ body: @escaping @Sendable () -> Void) {
        running.enter()
        let running = running
        let thread = Thread {
            ThreadName.set(name)
            body()
            running.leave()
        }
        // The default for secondary threads is too small for the deep calls of a debug build.
        thread.stackSize = 4 << 20
        thread.start()
    }

    /// Waits until all have ended. Blocks.
    func wait() { running.wait() }

    /// Waits until all have ended, at most for the given time. Setting the machine's clock doesn't change that: a group's time limit is a span,
    /// unlike a semaphore's (``MonotonicSemaphore``).
    ///
    /// - Returns: Whether all have ended.
    func wait(atMost time: Duration) -> Bool {
        let nanoseconds = time / .nanoseconds(1)
        return running.wait(timeout: .now() + .nanoseconds(Int(clamping: Int64(nanoseconds.rounded())))) == .success
    }
}
