import Foundation
import NIOConcurrencyHelpers
import RoostAPI

/// Keeps other processes out of a folder, as long as it exists. Within one process any number may have it: their databases take turns.
final class FolderLock: Sendable {
    /// A lock of this process: what holds it, and how many have it.
    private struct Held {
        var descriptor: Int32
        var count = 1
        /// Whether the folder is about to be deleted.
        var isGoing = false
    }

    private static let held = NIOLockedValueBox<[String: Held]>([:])
    private let path: String
    private let isGivenBack = NIOLockedValueBox(false)

    /// - Parameter folder: It has to be there.
    /// - Throws: `RoostError` with `unavailable` if another process has it, or this one is deleting it; `POSIXError` if it can't be locked at
    ///   all.
    init(_ folder: URL) throws {
        let path = folder.resolvingSymlinksInPath().appending(component: "lock").path
        self.path = path
        try Self.held.withLockedValue { held in
            if let known = held[path] {
                guard !known.isGoing else { throw Self.isGoing(path) }
                held[path]?.count += 1
                return
            }
            held[path] = Held(descriptor: try Self.lock(path, of: folder))
        }
    }

    private static func lock(_ path: String, of folder: URL) throws -> Int32 {
        while true {
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
            // Who had the folder may have deleted it between our opening and locking: the next process would lock another file.
            var (own, current) = (stat(), stat())
            if fstat(descriptor, &own) == 0, stat(path, &current) == 0, own.st_ino == current.st_ino { return descriptor }
            close(descriptor)
        }
    }

    /// Lets other processes have the folder, for a while. Whatever of this process has it lets go of it with that.
    func giveWay() {
        Self.held.withLockedValue { held in
            if let own = held[path] { _ = flock(own.descriptor, LOCK_UN) }
        }
    }

    /// Keeps other processes out again.
    ///
    /// - Throws: `RoostError` with `unavailable` if one of them has the folder.
    func takeBack() throws {
        try Self.held.withLockedValue { held in
            guard let own = held[path], flock(own.descriptor, LOCK_EX | LOCK_NB) != 0 else { return }
            throw RoostError(.unavailable, "Another process has this user's files open: \(path).")
        }
    }

    /// Whether something else in this process has the folder too.
    var isShared: Bool { Self.held.withLockedValue { ($0[path]?.count ?? 0) > 1 } }

    /// Deletes the folder while nothing else can begin to use it, and gives the lock back. Once that is done, it does nothing.
    ///
    /// - Parameter prepare: What comes before: letting go of the files.
    /// - Throws: `RoostError` with `unavailable` if something else in this process has the folder; what `prepare` and the file system throw.
    func deleteFolder(after prepare: @Sendable () async throws -> Void = {}) async throws {
        guard !isGivenBack.withLockedValue({ $0 }) else { return }
        try Self.held.withLockedValue { held in
            guard let own = held[path], own.count == 1 else {
                throw RoostError(.unavailable, "Another chat of this process has this user's files open: \(path).")
            }
            guard !own.isGoing else { throw Self.isGoing(path) }
            held[path]?.isGoing = true
        }
        do {
            try await prepare()
            try FileManager.default.removeItem(at: URL(filePath: path).deletingLastPathComponent())
        } catch {
            Self.held.withLockedValue { $0[path]?.isGoing = false }
            throw error
        }
        Self.held.withLockedValue { held in
            if let own = held.removeValue(forKey: path) { close(own.descriptor) }
            isGivenBack.withLockedValue { $0 = true }
        }
    }

    private static func isGoing(_ path: String) -> RoostError {
        RoostError(.unavailable, "This process is deleting this user's files: \(path).")
    }

    deinit {
        guard !isGivenBack.withLockedValue({ $0 }) else { return }
        Self.held.withLockedValue { held in
            guard var own = held[path] else { return }
            own.count -= 1
            held[path] = own.count > 0 ? own : nil
            if own.count == 0 { close(own.descriptor) }
        }
    }
}
