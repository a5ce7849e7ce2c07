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
        let before = [3999, 4000].map { checkpoints.isDue(frames: $0) }
        let numbers = run(&checkpoints, isComplete: true, frames: 4000)
        // The log is in the database, and goes on if somebody still reads it. Then it restarts.
        let after = [4000, 4999, 5000, 12, 4000].map { checkpoints.isDue(frames: $0) }
        #expect(before == [false, true])
        #expect(numbers == [8, 8, 8])
        #expect(after == [false, false, true, false, true])
    }

    @Test("a log that readers hold up is tried again after some more frames, under a new number")
    func heldUp() {
        var checkpoints = Checkpoints(generation: 7)
        let before = checkpoints.isDue(frames: 4500)
        let held = run(&checkpoints, isComplete: false, frames: 4500)
        let after = [5499, 5500].map { checkpoints.isDue(frames: $0) }
        let again = run(&checkpoints, isComplete: true, frames: 5500)
        #expect(before)
        #expect(held == [8, 0, 7])
        #expect(after == [false, true])
        #expect(again == [9, 9, 9])
    }
}
