import Foundation
import RoostAPI
import Synchronization

/// Keeps other processes out of a folder, as long as it exists. Within one process any number may have it: their databases take turns.
final class FolderLock: Sendable {
    /// A lock of this process: what holds it, and how many have it.
    private struct Held {
        var descriptor: Int32
        var count = 1
    }

    private static let held = Mutex<[String: Held]>([:])
    private let path: String

    /// - Parameter folder: It has to be there.
    /// - Throws: `RoostError` with `unavailable` if another process has it; `POSIXError` if it can't be locked at all.
    init(_ folder: URL) throws {
        let path = folder.resolvingSymlinksInPath().appending(component: "lock").path
        self.path = path
        try Self.held.withLock { held in
            if let known = held[path] {
                held[path] = Held(descriptor: known.descriptor, count: known.count + 1)
                return
            }
            let descriptor = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
            // The lock goes with the process, however that ends.
            guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
                let code = errno
                close(descriptor)
                // A file system without locks isn't another process.
                guard code == EWOULDBLOCK else { throw POSIXError(POSIXErrorCode(rawValue: code) ?? .EIO) }
                throw RoostError(.unavailable, "Another process has this user's files open: \(folder.path).")
            }
            held[path] = Held(descriptor: descriptor)
        }
    }

    deinit {
        Self.held.withLock { held in
            guard var own = held[path] else { return }
            own.count -= 1
            held[path] = own.count > 0 ? own : nil
            if own.count == 0 { close(own.descriptor) }
        }
    }
}
