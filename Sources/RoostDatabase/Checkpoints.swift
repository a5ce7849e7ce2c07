/// Decides when checkpoints are due, and tracks the last complete one.
struct Checkpoints {
    /// The last complete checkpoint.
    private(set) var generation: UInt32
    /// The last checkpoint that was tried.
    private var begun: UInt32
    private let logFrames: Int32
    private var dueAtFrames: Int32
    private var dueWhenIdleAtFrames = Checkpoints.idleLogFrames
    private var lastFrames: Int32 = 0

    /// The number of log frames, of 4 KiB, at which the log is written into the database even if operations wait: 64 MB. The fsyncs at the end of a
    /// checkpoint hold up the lane, so a few checkpoints are better than many.
    static let logFrames: Int32 = 16_000
    /// Likewise while no operation waits: 1 MB.
    static let idleLogFrames: Int32 = 256

    /// The size to which a larger log file is truncated when the next log begins in it, if logs are due at the given number of frames.
    ///
    /// It is half as much again as what is due: a log that grew further while it was copied leaves the file as it is, and commits into a file that
    /// keeps its size reach the disk sooner.
    static func logSizeBytesMax(dueAtFrames frames: Int32) -> Int64 { DataFiles.logSizeBytes(frames: frames &+ frames / 2) }

    /// The number of log frames for whose index room is reserved at the start: those of a log of that size.
    static let indexedFrames: Int32 = logFrames + logFrames / 2

    /// The number of frames that the lane itself writes into the database while operations wait. Writing them takes less than a millisecond.
    static let framesOnLane: Int32 = 128
    /// The maximum number of copies. Each syncs the file less often than the one before, so little is left for the lane after that, unless readers
    /// have kept the copies from ending.
    static let copiesMax = 4

    /// Whether log frames that weren't copied yet are copied beside the lane before it completes the checkpoint.
    static func isCopiedFirst(frames: Int32, copies: Int) -> Bool { frames > framesOnLane && copies < copiesMax }

    /// - Parameter logFrames: The number of frames at which a log is due even if operations wait.
    init(generation: UInt32, logFrames: Int32 = Checkpoints.logFrames) {
        (self.logFrames, dueAtFrames) = (logFrames, logFrames)
        self.generation = generation
        begun = generation
    }

    /// - Parameter isIdle: Whether no operation has waited for a while.
    mutating func isDue(frames: Int32, isIdle: Bool) -> Bool {
        // The log has restarted.
        if frames < lastFrames { (dueAtFrames, dueWhenIdleAtFrames) = (logFrames, Self.idleLogFrames) }
        lastFrames = frames
        return frames >= (isIdle ? dueWhenIdleAtFrames : dueAtFrames)
    }

    /// The number of the next checkpoint. Each try has a different one.
    mutating func begin() -> UInt32 {
        begun &+= 1
        return begun
    }

    /// The number of the checkpoint if it is complete.
    mutating func end(isComplete: Bool, frames: Int32) -> UInt32? {
        // If readers hold up the log, the next try follows when it has grown further.
        dueAtFrames = max(logFrames, frames &+ logFrames / 4)
        dueWhenIdleAtFrames = frames &+ Self.idleLogFrames
        lastFrames = max(0, frames)
        guard isComplete else { return nil }
        generation = begun
        return begun
    }
}
