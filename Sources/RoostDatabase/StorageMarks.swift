import Dispatch
import Foundation
import Synchronization

/// Keeps `roost.state` up to date while a server runs: at once when a checkpoint is complete and when a log has its first commit, and within a second
/// after other commits, beside the lane, so no commit waits for it.
///
/// If the disk is full a mark stays due, and is tried again each second: the state is a lower bound, so an older one is still true but says less. On
/// a copy-on-write file system, the state can run out of space while the other files still have room.
final class StorageMarks: Sendable {
    private struct Values {
        var state: StorageState
        /// A mark is due, which will include the commits until then.
        var isPending = false
        var isStopped = false
        /// The log may restart with the next commit, or has restarted: its salts are read at each commit until they change.
        ///
        /// It doesn't restart while a reader still uses it. Commits until then follow the frames of the complete checkpoint, and stay unmarked: those
        /// frames are in the database already, so the loss of a log that is truncated there couldn't be recognised.
        var awaitsNewLog = true
        /// A failure other than a full disk.
        var failure: DatabaseFailure?
    }

    private let values: Mutex<Values>
    private let file: StateFile
    private let logPath: String
    /// All writes use this queue, so the newest state is written last.
    private let queue = DispatchQueue(label: "roost.state")

    /// How long a commit may stay unmarked.
    private static let delay = DispatchTimeInterval.seconds(1)

    init(state: StorageState, file: StateFile, logPath: String) {
        values = Mutex(Values(state: state))
        self.file = file
        self.logPath = logPath
    }

    var state: StorageState { values.withLock { $0.state } }
    /// The failure to write the state, if any.
    var failure: DatabaseFailure? { values.withLock { $0.failure } }

    /// Records that the database is open, before the first commit.
    func begin() throws {
        try change { state in
            // A closed database has no log, and a process that begins one takes random salts: the last ones mean nothing.
            if state.phase == .closed { state.pastSalts = nil }
            state.phase = state.phase == .new ? .new : .open
        }
    }

    /// Records that the database matches the state: from here on a start compares the two.
    func started() throws {
        try change { state in
            state.phase = .open
            // The log is empty, and a process that opens an empty log begins it with random salts: the last ones mean nothing.
            state.pastSalts = nil
            if let lineage = state.nextLineage { (state.lineage, state.nextLineage) = (lineage, nil) }
        }
    }

    /// Records a transaction that is on disk, with this many frames in the log.
    func committed(logFrames: Int32) {
        let (isFirst, isNewLog) = values.withLock { values in
            let awaitedNewLog = values.awaitsNewLog
            if values.awaitsNewLog, let salts = salts() {
                values.awaitsNewLog = salts == values.state.pastSalts
                if !values.awaitsNewLog { (values.state.logSalts, values.state.pastSalts) = (salts, nil) }
            }
            values.state.logFrames = values.state.logSalts == nil ? 0 : Int64(logFrames)
            defer { values.isPending = true }
            return (!values.isPending && !values.isStopped, awaitedNewLog && !values.awaitsNewLog && !values.isStopped)
        }
        // Without its salts the log could be mistaken for one without commits.
        if isNewLog { queue.async { [self] in try? writeOrOwe() } }
        if isFirst { writeLater() }
    }

    /// Records a complete checkpoint: all frames of the log are in the database, and the next commit may restart it.
    func completed(generation: UInt32) throws {
        values.withLock { values in
            values.awaitsNewLog = true
            values.state.generation = generation
            (values.state.pastSalts, values.state.logSalts) = (values.state.logSalts ?? values.state.pastSalts, nil)
            values.state.logFrames = 0
        }
        try queue.sync { try writeOrOwe() }
    }

    /// Records that the log is empty and nothing more will be written. This fails on a full disk too: the log is removed next, and a state that
    /// doesn't record that would report it missing.
    func closed() throws { try change { $0.phase = .closed } }

    /// Writes a mark of the current commits.
    func mark() throws { try change { _ in } }

    func stop() {
        values.withLock { $0.isStopped = true }
        wait()
    }

    /// Waits for work that has started.
    func wait() { queue.sync {} }

    func change(_ body: (inout StorageState) -> Void) throws {
        values.withLock { body(&$0.state) }
        try queue.sync { try writeNow() }
    }

    // MARK: On the queue

    private func writeNow() throws {
        let state = values.withLock { values in
            var state = values.state
            state.sequence += 1
            return state
        }
        do {
            try file.write(state)
        } catch {
            let failure = error as? DatabaseFailure ?? DatabaseFailure(message: "\(error)", kind: .fatal)
            if failure.obstacle != .fullDisk { values.withLock { $0.failure = failure } }
            throw failure
        }
        values.withLock { $0.state.sequence = state.sequence }
    }

    /// Writes a mark, or leaves it due if the disk is full.
    private func writeOrOwe() throws {
        do {
            try writeNow()
        } catch let failure as DatabaseFailure where failure.obstacle == .fullDisk {
            let isFirst = values.withLock { values in
                defer { values.isPending = true }
                return !values.isPending && !values.isStopped
            }
            if isFirst { writeLater() }
        }
    }

    /// Schedules the due mark in a second.
    private func writeLater() {
        queue.asyncAfter(deadline: .now() + Self.delay) { [self] in
            let isStopped = values.withLock { values in
                values.isPending = false
                return values.isStopped
            }
            if !isStopped { try? writeOrOwe() }
        }
    }

    private func salts() -> UInt64? {
        let descriptor = open(logPath, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 8)
        guard bytes.withUnsafeMutableBytes({ pread(descriptor, $0.baseAddress, $0.count, 16) }) == bytes.count else { return nil }
        return bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }
}
