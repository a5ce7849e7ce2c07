/// When checkpoints are due, and which is the last that is complete.
struct Checkpoints {
    /// The last that is complete.
    private(set) var generation: UInt32
    /// The last that was tried.
    private var begun: UInt32
    private let logFrames: Int32
    private var dueAtFrames: Int32
    private var dueWhenIdleAtFrames = Checkpoints.idleLogFrames
    private var lastFrames: Int32 = 0

    /// Frames of the log, of 4 KiB, at which it is written into the database, whoever waits: 64 MB. The end of a checkpoint holds up those who wait
    /// for the lane, by its fsyncs, so that few of them are better than many.
    static let logFrames: Int32 = 16_000
    /// The same while nobody waits: 1 MB.
    static let idleLogFrames: Int32 = 256

    /// The size to which a file of the log that has grown beyond it is cut off when the next log begins in it, where logs are due at so many frames.
    ///
    /// It is half as much again as is due: a log that went on growing while it was copied leaves the file as it is, and commits into a file that keeps its
    /// size are on disk sooner.
    static func logSizeBytesMax(dueAtFrames frames: Int32) -> Int64 { DataFiles.logSizeBytes(frames: frames &+ frames / 2) }

    /// Frames of the log for whose index the start takes room: those of a log of that size.
    static let indexedFrames: Int32 = logFrames + logFrames / 2

    /// Frames that the lane itself writes into the database while operations wait. Writing them takes less than a millisecond.
    static let framesOnLane: Int32 = 128
    /// A log that grows as quickly as it is copied is completed on the lane all the same.
    static let copiesMax = 4

    /// Whether frames of the log that weren't copied yet are copied beside the lane before it completes the checkpoint.
    static func isCopiedFirst(frames: Int32, copies: Int) -> Bool { frames > framesOnLane && copies < copiesMax }

    /// - Parameter logFrames: The frames at which a log is due, whoever waits.
    init(generation: UInt32, logFrames: Int32 = Checkpoints.logFrames) {
        (self.logFrames, dueAtFrames) = (logFrames, logFrames)
        self.generation = generation
        begun = generation
    }

    /// - Parameter isIdle: Whether nobody has waited for a while.
    mutating func isDue(frames: Int32, isIdle: Bool) -> Bool {
        // The log has restarted.
        if frames < lastFrames { (dueAtFrames, dueWhenIdleAtFrames) = (logFrames, Self.idleLogFrames) }
        lastFrames = frames
        return frames >= (isIdle ? dueWhenIdleAtFrames : dueAtFrames)
    }

    /// The number of the next checkpoint. Each try has its own.
    mutating func begin() -> UInt32 {
        begun &+= 1
        return begun
    }

    /// The number of the checkpoint if it is complete.
    mutating func end(isComplete: Bool, frames: Int32) -> UInt32? {
        // A log that readers hold up is tried again when it has grown by some more.
        dueAtFrames = max(logFrames, frames &+ logFrames / 4)
        dueWhenIdleAtFrames = frames &+ Self.idleLogFrames
        lastFrames = max(0, frames)
        guard isComplete else { return nil }
        generation = begun
        return begun
    }
}
