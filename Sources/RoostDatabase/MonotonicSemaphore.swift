import CPageVFS

/// A counting semaphore whose time limits hold even if the machine's clock is set.
///
/// The server's threads use nothing else to wait with a time limit. On Linux `DispatchSemaphore` and `NSCondition` wait until a time of day, whatever
/// clock their caller names. If the clock is set back by an hour, a thread that wanted to check again after 50 milliseconds sleeps for that hour: a
/// node sends no heartbeat, memory isn't measured, and operations set aside aren't retried.
///
/// - Each signal ends one wait, including one that begins later.
/// - Time while the machine sleeps doesn't count.
package final class MonotonicSemaphore: @unchecked Sendable {  // The semaphore is the system's, which any thread may use.
    private let semaphore: OpaquePointer

    /// Makes a semaphore without a signal.
    package init() { semaphore = roost_semaphore_make() }

    deinit { roost_semaphore_free(semaphore) }

    /// Ends a wait, or the next one if there is none.
    package func signal() { roost_semaphore_signal(semaphore) }

    /// Waits for a signal. Blocks.
    package func wait() { roost_semaphore_wait(semaphore) }

    /// Waits for a signal, at most for the given time. Blocks.
    ///
    /// - Returns: Whether there was a signal.
    package func wait(atMost time: Duration) -> Bool {
        // The nanoseconds of more than a century would overflow.
        let (seconds, attoseconds) = min(max(time, .zero), .seconds(3_000_000_000)).components
        return roost_semaphore_wait_for(semaphore, seconds * 1_000_000_000 + attoseconds / 1_000_000_000) == 1
    }
}
