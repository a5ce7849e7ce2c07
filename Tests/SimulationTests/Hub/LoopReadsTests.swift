import NIOCore
import Testing

@testable import RoostServer

/// Which reads an event loop runs itself.
@Suite struct LoopReadsTests {
    private let start = NIODeadline.uptimeNanoseconds(1_000_000_000)

    private func after(_ microseconds: Int64) -> NIODeadline { start + .microseconds(microseconds) }

    @Test("a loop reads for a quarter of a millisecond in one of its turns, and continues in the next")
    func turns() {
        var reads = LoopReads()
        #expect(reads.mayRun(at: start))
        reads.ran(from: start, to: after(200), isDone: true)
        #expect(reads.mayRun(at: after(200)))
        reads.ran(from: after(200), to: after(260), isDone: true)
        #expect(!reads.mayRun(at: after(260)))
        reads.turnEnded()
        #expect(reads.mayRun(at: after(270)))
    }

    @Test("reads of more than half a millisecond take a loop a twentieth of its time, and five milliseconds at a time beyond that")
    func lateReads() {
        var reads = LoopReads()
        // However many brief ones there are.
        for number in 0..<100 as Range<Int64> {
            reads.ran(from: after(number * 500), to: after(number * 500 + 500), isDone: true)
            reads.turnEnded()
        }
        #expect(reads.mayRun(at: after(50_000)))
        reads.ran(from: after(50_000), to: after(55_000), isDone: true)
        reads.turnEnded()
        #expect(reads.mayRun(at: after(55_000)), "one alone changes nothing")
        reads.ran(from: after(55_000), to: after(57_000), isDone: true)
        reads.turnEnded()
        // 5 ms and 2 ms, of which 0.1 ms were theirs meanwhile.
        #expect(!reads.mayRun(at: after(57_000 + 37_999)))
        #expect(reads.mayRun(at: after(57_000 + 38_000)))

        // For a second it runs each as soon as it may.
        var (now, taken): (Int64, Int64) = (100_000, 0)
        while now < 1_100_000 {
            if reads.mayRun(at: after(now)) {
                reads.ran(from: after(now), to: after(now + 2000), isDone: true)
                reads.turnEnded()
                taken += 2000
                now += 2000
            } else {
                now += 100
            }
        }
        #expect((48_000...57_000).contains(taken))

        // A minute without reads saves nothing up.
        reads.ran(from: after(61_100_000), to: after(61_107_000), isDone: true)
        reads.turnEnded()
        #expect(!reads.mayRun(at: after(61_107_000)))
    }

    @Test("after a read that would have had to wait a loop runs none for twenty times as long")
    func gaveUp() {
        var reads = LoopReads()
        reads.ran(from: start, to: after(100), isDone: false)
        reads.turnEnded()
        #expect(!reads.mayRun(at: after(100 + 1999)))
        #expect(reads.mayRun(at: after(100 + 2000)))
    }
}
