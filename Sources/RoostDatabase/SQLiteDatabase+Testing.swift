import GRDB
import GRDBSQLite

/// For tests alone: what the server does in its own time, done or awaited now, and what only it can see.
extension SQLiteDatabase {
    /// Forgets what is kept between reads. Tests call it after writing rows without the rules.
    package func forgetReads() { memory.forget() }

    /// The size of what is kept between reads, and the number of users it belongs to.
    package var kept: (sizeBytes: Int, userCount: Int) { memory.extent }

    /// Records now what is committed, instead of within a second.
    package func markNow() throws { try marks.mark() }

    /// Waits for the record that is currently being written. Later marks aren't waited for.
    package func waitForMarks() { marks.wait() }

    /// Waits for the current copy of the log, if there is one.
    package func waitForCopy() { copier.wait() }

    /// Runs a checkpoint now, entirely on the calling thread.
    @discardableResult
    package func checkpointNow() throws -> Maintenance {
        copier.wait()
        return try writer.writeWithoutTransaction { try checkpoint($0, SQLITE_CHECKPOINT_PASSIVE) }
    }
}
