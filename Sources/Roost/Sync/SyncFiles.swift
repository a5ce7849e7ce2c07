package import Foundation
import Logging
package import RoostAPI

/// The two files of one user on one server, which no other process has open.
package struct SyncFiles: Sendable {
    let store: Store
    let outbox: Outbox
    /// This device's id.
    let device: DeviceID
    private let lock: FolderLock?
    /// Every write to the two files passes through it.
    private let gate: WriteGate

    /// Opens both, off any actor.
    ///
    /// - Throws: If the outbox can't be opened, or another process has the files. A cache that can't be opened is replaced by one in memory: it only
    ///   has to be fetched again.
    @concurrent
    static func open(_ environment: SyncDriver.Environment) async throws -> SyncFiles {
        let folder = try folder(of: environment.user, at: environment.url, in: environment.storage)
        if let folder { try StoreFolder.make(folder) }
        let lock = try folder.map(FolderLock.init)
        let logger = environment.logger
        let report = environment.onStorageProblem
        let gate = WriteGate()
        // Both wait for the disk at the same time: the first rows of an app's start need both.
        async let outbox = Outbox(
            url: folder?.appending(component: "outbox.sqlite"), gate: gate, begun: lock?.begun ?? BegunMessages(),
            chat: lock?.ownNumber ?? 0, logger: logger, report: report)
        let cache = folder?.appending(component: cacheName)
        let store: Store
        do {
            store = try Store(
                url: cache, user: environment.user, gate: gate, sizeBytesMax: environment.cacheSizeBytesMax, logger: logger,
                report: report)
        } catch {
            logger.error("The cache can't be opened; continuing without one.", metadata: ["error": "\(error)"])
            report(StorageProblem(.cacheNotKept, cache, error))
            store = try Store(url: nil, user: environment.user, logger: logger)
        }
        return SyncFiles(store: store, outbox: try await outbox, device: DeviceFile.id(in: folder), lock: lock, gate: gate)
    }

    /// Refuses writes until ``resume()``, and releases the lock on the files (``FolderLock/giveWay()``) once the writes in progress have ended. The
    /// files can still be read. If ``resume()`` is called before these writes have ended, the lock is kept.
    func suspend(isolation: isolated (any Actor)? = #isolation) async { await gate.close { lock?.giveWay() } }

    /// Takes the lock back, and allows writes to the files again.
    ///
    /// - Throws: `RoostError` with `storage_in_use` if another process has them, and with `storage_gone` if one has deleted them.
    func resume() throws { try gate.open { try lock?.takeBack() } }

    /// Whether another chat of this process has the files too.
    var isShared: Bool { lock?.isShared == true }

    /// Calls back each time another chat of this process has released the files.
    func whenReleased(_ action: @escaping @Sendable () -> Void) { lock?.whenReleased(action) }

    /// - Throws: `RoostError` with `storage_in_use` if another process has the files after they were released to others.
    func requireFree() throws { try lock?.requireFree() }

    /// Deletes the files of a chat that has ended, off any actor. Later reads find nothing.
    ///
    /// - Throws: `RoostError` with `storage_not_deleted`, also if another chat has opened them since the chat was checked: nothing else says that it
    ///   has ended.
    @concurrent
    func erase() async throws {
        do {
            @Sendable func detachFile() async throws {
                // Live objects reread both once the store notifies them.
                try await outbox.detachFile()
                try await store.detachFile()
            }
            guard let lock else { return try await detachFile() }
            try await lock.deleteFolder(after: detachFile)
        } catch {
            throw Self.notDeleted(because: error)
        }
    }

    /// Deletes a user's files that no chat has open.
    ///
    /// - Throws: `RoostError` with `storage_in_use` if a chat of this process, or another process, has them; `storage_not_deleted`.
    @concurrent
    static func erase(_ user: UserID, at url: URL, in storage: Chat.Storage) async throws {
        do {
            guard let folder = try folder(of: user, at: url, in: storage), FileManager.default.fileExists(atPath: folder.path)
            else {
                return
            }
            try await FolderLock(folder).deleteFolder()
        } catch let error as RoostError {
            throw error
        } catch {
            throw notDeleted(because: error)
        }
    }

    private static func notDeleted(because failure: any Error) -> RoostError {
        let reason = (failure as? RoostError)?.message ?? "\(failure)"
        return RoostError(.storageNotDeleted, "The files of this device can't be deleted: \(reason)")
    }

    private static let cacheName = "cache.sqlite"

    /// The file of the cache, whether it exists or not; nil if nothing is written.
    static func cache(of user: UserID, at url: URL, in storage: Chat.Storage) throws -> URL? {
        try folder(of: user, at: url, in: storage)?.appending(component: cacheName)
    }

    private static func folder(of user: UserID, at url: URL, in storage: Chat.Storage) throws -> URL? {
        try storage.directory?.appending(component: folderName(of: user, at: url), directoryHint: .isDirectory)
    }

    /// A folder for each user and server, so no account sees another's messages or sends them.
    ///
    /// File systems limit a name to 255 bytes, and some don't distinguish upper from lower case, so the name is a readable prefix and a hash.
    ///
    /// The scheme isn't part of it: a server that gets a certificate is the same one, and its outbox must be found. Two servers of one host that
    /// differ only by the scheme share a folder. They are distinguished by the epoch and the name in their welcome: rows of another epoch are erased,
    /// and operations meant for another name aren't sent.
    package static func folderName(of user: UserID, at url: URL) -> String {
        // The default path means the same as none.
        let path = [Address.defaultPath, "/"].contains(url.path()) ? "" : url.path()
        let whole = "\(user.rawValue)@\(url.host() ?? ""):\(url.port ?? 0)\(path)"
        let readable = user.rawValue.unicodeScalars.prefix(40).map { scalar in
            scalar.isASCII && (scalar.properties.isAlphabetic || scalar.properties.numericType != nil) ? Character(scalar) : "_"
        }
        // FNV-1a: the name must be the same in every run, unlike with Swift's own hashes.
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in whole.utf8 { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 }
        return String(readable) + "-" + String(hash, radix: 16)
    }
}
