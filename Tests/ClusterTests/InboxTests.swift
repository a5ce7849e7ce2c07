import Foundation
import Testing

@testable import RoostServer

@Suite("A thread's inbox")
struct InboxTests {
    private let second = Duration.seconds(1)

    @Test(
        "I18 elements beyond the limits are dropped, and one element stands for all of them",
        arguments: [(count: 2, sizeBytes: 1000), (100, 15)])
    func overflow(limits: (count: Int, sizeBytes: Int)) {
        let inbox = Inbox<String>(room: .init(count: limits.count, sizeBytes: limits.sizeBytes, overflow: "more"))
        for _ in 0..<2 {
            for number in 1...5 { inbox.offer("\(number)", sizeBytes: 10) }
            inbox.put("put")
            #expect(inbox.take(within: second) == ["1", "2", "more", "put"])
        }
        inbox.close()
        #expect(inbox.take(within: second) == nil)
    }

    @Test("without limits everything is queued")
    func noLimits() {
        let inbox = Inbox<Int>()
        for number in 0..<1000 { inbox.offer(number, sizeBytes: 1 << 40) }
        #expect(inbox.take(within: second) == Array(0..<1000))
        #expect(inbox.take(within: .milliseconds(1)) == [])
    }

    @Test("a wait ends with an element put by any thread, or with nothing at its time limit and not before")
    func waiting() async {
        let inbox = Inbox<Int>()
        let count = 4000
        let (taken, isEmptyInTime) = await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                var taken: [Int] = []
                let end = ContinuousClock.now + .seconds(60)
                // Some of these waits time out as an element is put.
                while taken.count < count, ContinuousClock.now < end { taken += inbox.take(within: .microseconds(50)) ?? [] }
                let started = ContinuousClock.now
                let rest = inbox.take(within: .milliseconds(30))
                let isEmptyInTime = rest == [] && ContinuousClock.now - started >= .milliseconds(30)
                continuation.resume(returning: (taken, isEmptyInTime))
            }
            for thread in 0..<4 {
                Thread.detachNewThread { for number in stride(from: thread, to: count, by: 4) { inbox.put(number) } }
            }
        }
        #expect(taken.sorted() == Array(0..<count))
        #expect(isEmptyInTime)
        // A wait that nothing ends would take a minute, and fail here.
        let last = await withCheckedContinuation { continuation in
            Thread.detachNewThread { continuation.resume(returning: inbox.take(within: .seconds(60))) }
            inbox.put(-1)
        }
        #expect(last == [-1])
    }

    @Test("a closed inbox ends every wait and pause, and an open one with elements doesn't end a pause")
    func closing() async {
        let inbox = Inbox<Int>()
        inbox.put(1)
        let started = ContinuousClock.now
        inbox.pause(for: .milliseconds(30))
        #expect(ContinuousClock.now - started >= .milliseconds(30))
        #expect(inbox.take(within: second) == [1])
        let taken = await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                let taken = inbox.take(within: .seconds(3600))
                for _ in 0..<2 { inbox.pause(for: .seconds(3600)) }
                continuation.resume(returning: taken)
            }
            inbox.close()
        }
        #expect(taken == nil)
    }
}
