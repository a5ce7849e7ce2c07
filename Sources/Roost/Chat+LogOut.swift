public import Foundation
public import RoostAPI

extension Chat {
    /// Ends the chat and deletes the user's files from this device.
    ///
    /// Afterwards live objects are empty, and calls throw `unauthenticated`. To sign in again, as the same user or another, make another chat. The
    /// server isn't notified, and the user's tokens stay valid until they expire.
    ///
    /// An outbox that was set aside because a newer version wrote it (``StorageProblem/Kind/outboxSetAside``) counts as unsent, because that version
    /// would send it. An outbox that was set aside because it was damaged doesn't: no version can send it, and it is deleted with the other files. To
    /// keep it, the app must move it away first.
    /// - Parameter discardingUnsent: Whether messages and other changes that haven't reached the server, or that it refused, are deleted too.
    /// - Throws: ``UnsentOperations`` if there are such changes and `discardingUnsent` is false; `RoostError` with `unavailable` if another chat of
    ///   this process, or another process, has the files open, or if they can't be opened or read. In these cases nothing has changed. Also
    ///   `unavailable` if the files can't be deleted: the chat has ended, and calling this again retries the deletion.
    public func logOut(discardingUnsent: Bool = false) async throws { try await driver.logOut(discardingUnsent: discardingUnsent) }

    /// Deletes the files of a user who has no open chat, including changes that haven't reached the server. Does nothing if there are none.
    ///
    /// - Parameters:
    ///   - user: The user whose files are deleted.
    ///   - url: The server's address, as given to the chat.
    ///   - storage: The storage that the chat was configured with.
    /// - Throws: `RoostError` with `unavailable` if a chat of this process, or another process, has the files open, or if they can't be
    ///   deleted.
    public static func erase(_ user: UserID, at url: URL, in storage: Storage = .standard) async throws {
        try await SyncFiles.erase(user, at: url, in: storage)
    }
}
