public import Foundation
public import RoostAPI

extension Chat {
    /// Ends the chat and deletes the user's files from this device.
    ///
    /// Afterwards live objects are empty, and calls throw `unauthenticated`. To sign in again, as the same user or another, make another chat.
    /// The server isn't told, and the user's tokens stay valid until they expire.
    ///
    /// An outbox that was set aside because a newer version had written it (``StorageProblem/Kind/outboxSetAside``) counts as unsent: that version would send it. One
    /// that was set aside because it was damaged doesn't. No version sends it, and it is deleted with the other files; an app that wants to keep it moves it away
    /// before.
    /// - Parameter discardingUnsent: Whether messages and other changes that haven't reached the server, or that it refused, are deleted too.
    /// - Throws: ``UnsentOperations`` if there are such changes and they aren't to be discarded, and `RoostError` with `unavailable` if another
    ///   chat of this process, or another process, has the files open, or they can't be opened or read. Nothing has changed then. Also `unavailable` if
    ///   the files can't be deleted: the chat has ended, and calling this again retries the deletion.
    public func logOut(discardingUnsent: Bool = false) async throws { try await driver.logOut(discardingUnsent: discardingUnsent) }

    /// Deletes the files of a user without an open chat, including changes that haven't reached the server. Does nothing if there are none.
    ///
    /// - Parameters:
    ///   - user: The user whose files are deleted.
    ///   - url: The server, as it was given to the chat.
    ///   - storage: The same that the chat was configured with.
    /// - Throws: `RoostError` with `unavailable` if a chat of this process, or another process, has the files open, or if they can't be
    ///   deleted.
    public static func erase(_ user: UserID, at url: URL, in storage: Storage = .standard) async throws {
        try await SyncFiles.erase(user, at: url, in: storage)
    }
}
