import Testing

@testable import RoostDatabase

/// When the write-ahead log is written into the database.
@Suite("Checkpoints")
struct CheckpointTests {
    /// Runs a checkpoint with an outcome, and returns its number and the last complete one's.
    private func run(_ checkpoints: inout Checkpoints, isComplete: Bool, frames: Int32) -> [UInt32] {
        let number = checkpoints.begin()
        let completed = checkpoints.end(isComplete: isComplete, frames: frames)
        return [number, completed ?? 0, checkpoints.generation]
    }

    @Test("after a complete checkpoint the next one waits for the log to restart, or to grow")
    func afterComplete() {
        var checkpoints = Checkpoints(generation: 7)
        let before = [15_999, 16_000].map { checkpoints.isDue(frames: $0, isIdle: false) }
        let numbers = run(&checkpoints, isComplete: true, frames: 16_000)
        // The log is in the database, and continues while a reader still uses it. Then it restarts.
        let after = [16_000, 19_999, 20_000, 12, 16_000].map { checkpoints.isDue(frames: $0, isIdle: false) }
        #expect(before == [false, true])
        #expect(numbers == [8, 8, 8])
        #expect(after == [false, false, true, false, true])
    }

    @Test("a log held up by readers is retried after some more frames, under a new number")
    func heldUp() {
        var checkpoints = Checkpoints(generation: 7)
        let before = checkpoints.isDue(frames: 16_500, isIdle: false)
        let held = run(&checkpoints, isComplete: false, frames: 16_500)
        let after = [20_499, 20_500].map { checkpoints.isDue(frames: $0, isIdle: false) }
        let again = run(&checkpoints, isComplete: true, frames: 20_500)
        #expect(before)
        #expect(held == [8, 0, 7])
        #expect(after == [false, true])
        #expect(again == [9, 9, 9])
    }

    @Test("while idle a small log is due, and once it is in the database only further frames are")
    func idle() {
        var checkpoints = Checkpoints(generation: 7)
        let before = [255, 256].map { checkpoints.isDue(frames: $0, isIdle: true) }
        let whoWaits = checkpoints.isDue(frames: 256, isIdle: false)
        let numbers = run(&checkpoints, isComplete: true, frames: 256)
        // The log grows to 512 frames, and then restarts.
        let after = [256, 300, 511, 512, 12, 256].map { checkpoints.isDue(frames: $0, isIdle: true) }
        #expect(before == [false, true] && !whoWaits && numbers == [8, 8, 8])
        #expect(after == [false, false, false, true, false, true])
    }
}
