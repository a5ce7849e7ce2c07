import NIOCore
import Testing

@testable import RoostServer

/// Which reads an event loop runs itself.
@Suite struct LoopReadsTests {
    private let start = NIODeadline.uptimeNanoseconds(1_000_000_000)

    private func after(_ microseconds: Int64) -> NIODeadline { start + .microseconds(microseconds) }

    @Test("a loop reads for a quarter of a millisecond in one of its turns, and goes on in the next")
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

    @Test("after a read that takes more than half a millisecond a loop runs none for twenty times as long")
    func pauses() {
        var reads = LoopReads()
        reads.ran(from: start, to: after(500), isDone: true)
        reads.turnEnded()
        #expect(reads.mayRun(at: after(500)))
        reads.ran(from: after(500), to: after(2500), isDone: true)
        reads.turnEnded()
        #expect(!reads.mayRun(at: after(2500 + 39_999)))
        #expect(reads.mayRun(at: after(2500 + 40_000)))
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
