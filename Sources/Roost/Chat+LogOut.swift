public import Foundation
public import RoostAPI

extension Chat {
    /// Ends the chat and deletes the user's files from this device.
    ///
    /// Afterwards live objects are empty, and calls throw `unauthenticated`. To sign in again, as the same user or another, make another chat.
    ///
    /// With `signingOutDevice`, the server is asked to sign out this device, as ``signOut(device:)`` does for others: it is removed from the user's list
    /// (``devices()``), and the token that it last connected with is revoked if it has a `jti`, for anyone else who uses it too. Without a connection, or
    /// if the server doesn't answer within 5 seconds, the user is logged out all the same, and the device stays listed. Without `signingOutDevice` the
    /// server isn't notified: the device stays listed, its tokens stay valid until they expire, and the next sign-in here is another device, with another
    /// id. The token provider isn't called any more in either case.
    ///
    /// An outbox that was set aside because a newer version wrote it (``StorageProblem/Kind/outboxSetAside``) counts as unsent, because that version
    /// would send it. An outbox that was set aside because it was damaged doesn't: no version can send it, and it is deleted with the other files. To
    /// keep it, the app must move it away first.
    /// - Parameters:
    ///   - discardingUnsent: Whether messages and other changes that haven't reached the server, or that it refused, are deleted too.
    ///   - signingOutDevice: Whether this device is signed out on the server, if it can be reached.
    /// - Throws: ``UnsentOperations`` if there are such changes and `discardingUnsent` is false; `RoostError` with `storage_in_use` if another chat of
    ///   this process, or another process, has the files open, and with `storage_failed` if they can't be opened or read. In these cases nothing has
    ///   changed. With `storage_not_deleted` the chat has ended, and its files couldn't be deleted: calling this again retries the deletion.
    public func logOut(discardingUnsent: Bool = false, signingOutDevice: Bool = false) async throws {
        try await driver.logOut(discardingUnsent: discardingUnsent, signingOutDevice: signingOutDevice)
    }

    /// Deletes the files of a user who has no open chat, including changes that haven't reached the server. Does nothing if there are none.
    ///
    /// - Parameters:
    ///   - user: The user whose files are deleted.
    ///   - url: The server's address, as given to the chat.
    ///   - storage: The storage that the chat was configured with.
    /// - Throws: `RoostError` with `storage_in_use` if a chat of this process, or another process, has the files open, and with `storage_not_deleted` if
    ///   they can't be deleted.
    public static func erase(_ user: UserID, at url: URL, in storage: Storage = .standard) async throws {
        try await SyncFiles.erase(user, at: url, in: storage)
    }
}
