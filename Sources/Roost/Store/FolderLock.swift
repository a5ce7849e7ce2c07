import Foundation
import NIOConcurrencyHelpers
import RoostAPI

/// Keeps other processes out of a folder while it exists. Within one process, any number may hold it: their databases take turns.
final class FolderLock: Sendable {
    /// The locked file. If it is deleted and another process creates a new one, that is a different file: while the first is open here, no other file
    /// has its inode number.
    private struct LockFile: Hashable {
        var path: String
        var number: UInt64
    }

    /// A lock of this process: its descriptor, and the number of its holders.
    private struct Held {
        var descriptor: Int32
        var count = 1
        /// How many of the holders have given way.
        var away = 0
        /// Whether the folder is about to be deleted.
        var isGoing = false
        /// The callbacks of holders for when another one releases the folder, by their numbers.
        var released: [Int: @Sendable () -> Void] = [:]
        let begun = BegunMessages()
    }

    private static let held = NIOLockedValueBox<[LockFile: Held]>([:])
    private static let lastNumber = NIOLockedValueBox(0)
    private let file: LockFile
    /// Tracks which of the holders sends which message.
    let begun: BegunMessages
    /// Unique in this process.
    let ownNumber = FolderLock.lastNumber.withLockedValue { number in
        number += 1
        return number
    }
    private let isGivenBack = NIOLockedValueBox(false)
    private let isAway = NIOLockedValueBox(false)

    /// - Parameter folder: Made again if another process has deleted it meanwhile.
    /// - Throws: `RoostError` with `storage_in_use` if another process holds it, or this one is deleting it; `POSIXError` if it can't be locked at all;
    ///   the errors of ``StoreFolder/make(_:)``.
    init(_ folder: URL) throws {
        let path = folder.resolvingSymlinksInPath().appending(component: "lock").path
        let own = try FolderLock.held.withLockedValue { held -> (file: LockFile, begun: BegunMessages) in
            guard !held.contains(where: { $0.key.path == path && $0.value.isGoing }) else { throw FolderLock.isGoing(path) }
            if let number = FolderLock.number(at: path) {
                let known = LockFile(path: path, number: number)
                if let own = held[known] {
                    // Another holder in this process may have given way to other processes.
                    try FolderLock.lock(own.descriptor, of: path)
                    held[known]?.count += 1
                    return (known, own.begun)
                }
            }
            let (descriptor, number) = try FolderLock.lock(path, of: folder)
            let file = LockFile(path: path, number: number)
            let new = Held(descriptor: descriptor)
            held[file] = new
            return (file, new.begun)
        }
        (file, begun) = (own.file, own.begun)
    }

    /// How often a folder is made again: a lock file that still can't be created then has another reason.
    private static let remakingsMax = 10

    private static func lock(_ path: String, of folder: URL) throws -> (descriptor: Int32, number: UInt64) {
        var remakings = 0
        while true {
            let descriptor = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else {
                let code = errno
                // A log-out in another process deletes the whole folder, possibly just after it was made here.
                guard code == ENOENT, remakings < remakingsMax else { throw POSIXError(POSIXErrorCode(rawValue: code) ?? .EIO) }
                remakings += 1
                try StoreFolder.make(folder)
                continue
            }
            // The lock ends with the process, however that ends.
            guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
                let code = errno
                close(descriptor)
                // Other errors, such as of a file system without locks, don't mean another process.
                guard code == EWOULDBLOCK else { throw POSIXError(POSIXErrorCode(rawValue: code) ?? .EIO) }
                throw RoostError(.storageInUse, "Another process has this user's files open: \(folder.path).")
            }
            // The previous holder may have deleted the folder between our opening and locking: the next process would lock another file.
            var own = stat()
            if fstat(descriptor, &own) == 0, number(at: path) == UInt64(own.st_ino) { return (descriptor, UInt64(own.st_ino)) }
            close(descriptor)
        }
    }

    /// Locks an open file, which may be locked already.
    private static func lock(_ descriptor: Int32, of path: String) throws {
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            throw RoostError(.storageInUse, "Another process has this user's files open: \(path).")
        }
    }

    /// The inode number of the file now at a path; nil if there is none.
    static func number(at path: String) -> UInt64? {
        var current = stat()
        return stat(path, &current) == 0 ? UInt64(current.st_ino) : nil
    }

    /// Releases the folder to other processes for a while, once all its holders in this process have given way: those that haven't still write.
    func giveWay() {
        Self.held.withLockedValue { held in
            guard var own = held[file] else { return }
            if !isAway.withLockedValue({ $0 }) { own.away += 1 }
            isAway.withLockedValue { $0 = true }
            held[file] = own
            if own.away == own.count { _ = flock(own.descriptor, LOCK_UN) }
        }
    }

    /// Keeps other processes out again.
    ///
    /// - Throws: `RoostError` with `storage_in_use` if one of them holds the folder, and with `storage_gone` if one has deleted it: the files open here
    ///   are then orphaned.
    func takeBack() throws {
        try Self.held.withLockedValue { held in
            guard let own = held[file] else { return }
            try Self.lock(own.descriptor, of: file.path)
            // The folder and the files that exist now have another lock.
            guard Self.number(at: file.path) == file.number else {
                throw RoostError(
                    .storageGone, "Another process has deleted this user's files: \(file.path). A new chat begins with new ones.")
            }
            if isAway.withLockedValue({ $0 }) { held[file]?.away -= 1 }
            isAway.withLockedValue { $0 = false }
        }
    }

    /// Makes sure that no other process holds the folder, although this one had given way.
    ///
    /// - Throws: `RoostError` with `storage_in_use` if one holds it.
    func requireFree() throws {
        try Self.held.withLockedValue { held in if let own = held[file] { try Self.lock(own.descriptor, of: file.path) } }
    }

    /// Calls back each time another holder in this process has released the folder, while this one holds it.
    func whenReleased(_ action: @escaping @Sendable () -> Void) {
        Self.held.withLockedValue { $0[file]?.released[ownNumber] = action }
    }

    /// Whether the folder has another holder in this process.
    var isShared: Bool { Self.held.withLockedValue { ($0[file]?.count ?? 0) > 1 } }

    /// Deletes the folder while nothing else can start to use it, and releases the lock. Calling it again does nothing.
    ///
    /// - Parameter prepare: Runs first, to release the files.
    /// - Throws: `RoostError` with `storage_in_use` if the folder has another holder; the errors of `prepare` and of the file system.
    func deleteFolder(after prepare: @Sendable () async throws -> Void = {}) async throws {
        guard !isGivenBack.withLockedValue({ $0 }) else { return }
        try Self.held.withLockedValue { held in
            guard let own = held[file], own.count == 1 else {
                throw RoostError(.storageInUse, "Another chat of this process has this user's files open: \(file.path).")
            }
            guard !own.isGoing else { throw Self.isGoing(file.path) }
            try Self.lock(own.descriptor, of: file.path)
            held[file]?.isGoing = true
        }
        do {
            try await prepare()
            // A folder that another process has created in its place belongs to that process.
            if [nil, file.number].contains(Self.number(at: file.path)) {
                try Self.removeFolder(of: file.path)
            }
        } catch {
            Self.held.withLockedValue { $0[file]?.isGoing = false }
            throw error
        }
        Self.held.withLockedValue { held in
            if let own = held.removeValue(forKey: file) { close(own.descriptor) }
            isGivenBack.withLockedValue { $0 = true }
        }
    }

    /// Removes the folder of a lock, if it still exists.
    private static func removeFolder(of path: String) throws {
        do {
            try FileManager.default.removeItem(at: URL(filePath: path).deletingLastPathComponent())
        } catch let error as CocoaError where error.code == .fileNoSuchFile {
            return
        }
    }

    private static func isGoing(_ path: String) -> RoostError {
        RoostError(.storageInUse, "This process is deleting this user's files: \(path).")
    }

    deinit {
        begun.leave(ownNumber)
        guard !isGivenBack.withLockedValue({ $0 }) else { return }
        let others = Self.held.withLockedValue { held -> [@Sendable () -> Void] in
            guard var own = held[file] else { return [] }
            own.count -= 1
            own.released[ownNumber] = nil
            if isAway.withLockedValue({ $0 }) { own.away -= 1 }
            held[file] = own.count > 0 ? own : nil
            if own.count == 0 {
                close(own.descriptor)
            } else if own.away == own.count {
                _ = flock(own.descriptor, LOCK_UN)
            }
            return own.released.sorted { $0.key < $1.key }.map(\.value)
        }
        for released in others { released() }
    }
}
