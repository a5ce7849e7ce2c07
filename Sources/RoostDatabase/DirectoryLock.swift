public import Foundation
import Synchronization

/// Reserves a data directory for one process: two processes writing one SQLite file would damage it.
///
/// The locks are the kernel's (`flock`), so they end with the process, however it ends. One is on the file `roost.lock`, which names its owner; the
/// other is on the directory itself, and holds even if the file is removed.
public final class DirectoryLock: Sendable {
    /// The descriptors of the directory and of the file; empty after the release.
    private let descriptors: Mutex<[Int32]>
    private let path: String

    /// Another process has the directory open.
    public struct Held: Error, CustomStringConvertible {
        public let directory: String
        public let process: String
        public var description: String {
            "The data directory \(directory) is in use by another Roost server (process \(process)). "
                + "Stop that one first, or give this one another directory with --data."
        }
    }

    /// - Throws: ``Held``; ``DatabaseFailure`` if the directory or the file can't be opened, as if the file is a link: what it leads to isn't this
    ///   directory's, and stays as it is.
    public init(directory: URL) throws {
        self.path = directory.path
        let path = directory.appending(path: "roost.lock").path
        let directoryDescriptor = open(directory.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directoryDescriptor >= 0 else { throw DatabaseFailure.system("Can't open \(directory.path)") }
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else {
            let failure = errno == ELOOP ? DataFiles.refusal(ofLink: path) : DatabaseFailure.system("Can't open \(path)")
            close(directoryDescriptor)
            throw failure
        }
        guard flock(directoryDescriptor, LOCK_EX | LOCK_NB) == 0, flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            // A network file system may not support such locks at all.
            let failure = errno == EWOULDBLOCK ? nil : DatabaseFailure.system("Can't lock \(directory.path)")
            let text = (try? String(contentsOfFile: path, encoding: .utf8))?.trimmingCharacters(in: .whitespacesAndNewlines) ?? ""
            close(descriptor)
            close(directoryDescriptor)
            if let failure { throw failure }
            throw Held(directory: directory.path, process: text.isEmpty ? "unknown" : text)
        }
        descriptors = Mutex([directoryDescriptor, descriptor])
        let text = Array("\(getpid())\n".utf8)
        ftruncate(descriptor, 0)
        _ = text.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, 0) }
    }

    /// Syncs the directory's entries to disk.
    func syncDirectory() throws {
        let isSynced = descriptors.withLock { $0.first.map { FileSync.sync($0, path) } }
        guard isSynced == true else { throw DatabaseFailure.system("Can't sync the data directory") }
    }

    /// Releases the directory to other processes.
    package func release() {
        descriptors.withLock { descriptors in
            // The file's lock is released last: processes that wait for the directory wait for that one.
            for descriptor in descriptors { close(descriptor) }
            descriptors = []
        }
    }

    deinit { release() }
}
