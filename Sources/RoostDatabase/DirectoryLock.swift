public import Foundation

/// Keeps a data directory to one process: two of them writing one SQLite file would damage it.
///
/// The lock is the kernel's (`flock`), so that it ends with the process, however that ends.
public final class DirectoryLock: Sendable {
    private let descriptor: Int32

    /// Another process has the directory open.
    public struct Held: Error, CustomStringConvertible {
        public let directory: String
        public let process: String
        public var description: String {
            "The data directory \(directory) is in use by another Roost server (process \(process)). "
                + "Stop that one first, or give this one another directory with --data."
        }
    }

    public init(directory: URL) throws {
        let path = directory.appending(path: "roost.lock").path
        descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw DatabaseFailure(message: "Can't open \(path): \(String(cString: strerror(errno))).", kind: .fatal)
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let process = (try? String(contentsOfFile: path, encoding: .utf8))?.trimmingCharacters(in: .whitespacesAndNewlines)
            close(descriptor)
            throw Held(directory: directory.path, process: process ?? "unknown")
        }
        let text = Array("\(getpid())\n".utf8)
        ftruncate(descriptor, 0)
        _ = text.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, 0) }
    }

    deinit { close(descriptor) }
}
