import RoostDatabase
import Testing

/// The only way in which threads of the server wait with a time limit.
@Suite("Monotonic semaphore")
struct MonotonicSemaphoreTests {
    @Test("a wait ends at its time limit, and not before")
    func timeout() async {
        let results = await onThread {
            let (semaphore, started) = (MonotonicSemaphore(), ContinuousClock.now)
            let results = [Duration.milliseconds(30), .zero, .seconds(-1)].map { semaphore.wait(atMost: $0) }
            return results + [ContinuousClock.now - started >= .milliseconds(30)]
        }
        #expect(results == [false, false, false, true])
    }

    @Test("each signal ends one wait, also one that begins later, whatever its time limit")
    func counted() async {
        let results = await onThread {
            let semaphore = MonotonicSemaphore()
            for _ in 0..<4 { semaphore.signal() }
            semaphore.wait()
            return [Duration.zero, .seconds(20), .seconds(Int64.max), .zero].map { semaphore.wait(atMost: $0) }
        }
        #expect(results == [true, true, true, false])
    }

    @Test("a signal of another thread ends a wait, with or without a time limit")
    func signalled() async {
        let (first, second) = (MonotonicSemaphore(), MonotonicSemaphore())
        let results = await onThreads(2) { thread in
            (0..<2000).allSatisfy { round in
                if thread == 0 {
                    first.signal()
                    return second.wait(atMost: .seconds(60))
                }
                if round.isMultiple(of: 2) { first.wait() } else if !first.wait(atMost: .seconds(60)) { return false }
                second.signal()
                return true
            }
        }
        #expect(results == [true, true])
    }

    @Test("no signal from many threads to many threads is lost")
    func many() async {
        let semaphore = MonotonicSemaphore()
        let results = await onThreads(8) { thread in
            (0..<1000).allSatisfy { _ in
                guard thread.isMultiple(of: 2) else { return semaphore.wait(atMost: .seconds(60)) }
                semaphore.signal()
                return true
            }
        }
        #expect(results == Array(repeating: true, count: 8))
        #expect(await onThread { semaphore.wait(atMost: .zero) } == false)
    }
}
