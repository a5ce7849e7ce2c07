/// When checkpoints are due, and which is the last that is complete.
struct Checkpoints {
    /// The last that is complete.
    private(set) var generation: UInt32
    /// The last that was tried.
    private var begun: UInt32
    private var dueAtFrames = Checkpoints.logFrames
    private var lastFrames: Int32 = 0

    /// Frames of the log, of 4 KiB, at which it is written into the database: 16 MB, off most commits, and the file is still small. Smaller ones
    /// make no acknowledgement earlier: their fsyncs take as long.
    static let logFrames: Int32 = 4000

    init(generation: UInt32) {
        self.generation = generation
        begun = generation
    }

    mutating func isDue(frames: Int32) -> Bool {
        // The log has restarted.
        if frames < lastFrames { dueAtFrames = Self.logFrames }
        lastFrames = frames
        return frames >= dueAtFrames
    }

    /// The number of the next checkpoint. Each try has its own.
    mutating func begin() -> UInt32 {
        begun &+= 1
        return begun
    }

    /// The number of the checkpoint if it is complete.
    mutating func end(isComplete: Bool, frames: Int32) -> UInt32? {
        // A log that readers hold up is tried again when it has grown by some more.
        dueAtFrames = max(Self.logFrames, frames &+ Self.logFrames / 4)
        lastFrames = max(0, frames)
        guard isComplete else { return nil }
        generation = begun
        return begun
    }
}
