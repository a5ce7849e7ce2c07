import Foundation
import Synchronization

/// Waits until the disk holds a file's content, or the names in a directory. Everything but the files that SQLite syncs itself is synced here.
package enum FileSync {
    /// The paths that a task has synced, in order. For tests: a missing sync shows only after a power failure.
    package final class Record: Sendable {
        private let paths = Mutex<[String]>([])

        package init() {}

        /// Returns the paths since the last call.
        package func take() -> [String] {
            paths.withLock { paths in
                defer { paths = [] }
                return paths
            }
        }

        fileprivate func add(_ path: String) { paths.withLock { $0.append(path) } }
    }

    /// What this task's syncs are recorded in; nil except in tests.
    @TaskLocal package static var record: Record?

    /// Syncs a file, or a directory with its names.
    ///
    /// - Parameter path: Its path, for the record.
    /// - Returns: Whether it is on disk. If it isn't, `errno` says why.
    package static func sync(_ descriptor: Int32, _ path: String) -> Bool {
        guard fsync(descriptor) == 0 else { return false }
        record?.add(path)
        return true
    }

    /// Syncs a file's content and its size, without its times.
    ///
    /// - Parameter path: Its path, for the record.
    /// - Returns: Whether it is on disk. If it isn't, `errno` says why.
    static func syncContent(_ descriptor: Int32, _ path: String) -> Bool {
        guard fdatasync(descriptor) == 0 else { return false }
        record?.add(path)
        return true
    }
}
