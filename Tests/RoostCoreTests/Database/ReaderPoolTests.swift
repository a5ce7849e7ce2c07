import Foundation
import RoostAPI
import RoostTestSupport
import Synchronization
import Testing

@testable import RoostDatabase

/// The connections for reading, which threads share.
@Suite("Reader pool")
struct ReaderPoolTests {
    @Test("a thread that returns a reader and takes one again queues after the waiting threads")
    func inTurn() async throws {
        let pool = ReaderPool<Int>()
        pool.add(1)
        let order = Mutex<[String]>([])
        let isHeld = DispatchSemaphore(value: 0)
        let results = await onThreads(2) { thread in
            failure {
                if thread == 0 {
                    try pool.withReader { _ in
                        isHeld.signal()
                        try waitUntil { pool.waitingCount == 1 }
                    }
                    try pool.withReader { _ in order.withLock { $0.append("again") } }
                } else {
                    isHeld.wait()
                    try pool.withReader { _ in order.withLock { $0.append("waited") } }
                }
            }
        }
        #expect(results == [nil, nil])
        #expect(order.withLock { $0 } == ["waited", "again"])
    }

    @Test("a pool that is being drained takes back lent readers, and refuses new requests")
    func drained() async throws {
        let pool = ReaderPool<Int>()
        for reader in [1, 2] { pool.add(reader) }
        let (isHeld, isRefused) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let results = await onThreads(3) { thread in
            failure {
                switch thread {
                case 0:
                    try pool.withReader { first in
                        try pool.withReader { second in
                            #expect(Set([first, second]) == [1, 2])
                            isHeld.signal()
                            _ = isRefused.wait(timeout: .now() + 20)
                        }
                    }
                case 1:
                    isHeld.wait()
                    #expect(pool.drain(2).sorted() == [1, 2])
                default:
                    try waitUntil { pool.waitingCount == 1 }
                    defer { isRefused.signal() }
                    try pool.withReader { _ in }
                }
            }
        }
        #expect(results[0] == nil && results[1] == nil)
        #expect(results[2]?.contains("The database is closed.") == true)
        #expect(throws: DatabaseFailure.self) { try pool.withReader { _ in } }
    }

    @Test("a reader is lent without waiting only while one is free, and not after the pool was drained")
    func atOnce() throws {
        let pool = ReaderPool<Int>()
        pool.add(1)
        let inside = pool.withFreeReader { first in [first, pool.withFreeReader { $0 } ?? 0] }
        #expect(inside == [1, 0])
        #expect(throws: RoostError.self) {
            try pool.withFreeReader { _ in throw RoostError(.notFound, "It isn't there.") }
        }
        #expect(pool.withFreeReader { $0 } == 1, "it was given back")
        #expect(pool.drain(1) == [1])
        #expect(pool.withFreeReader { $0 } == nil)
    }
}
