public import Foundation
import GRDB
import Logging
public import RoostAPI

/// A user's chat as stored on this device, for an app's extension: it can be read even while the app has the files open, writes nothing and doesn't
/// connect.
///
///     let stored = try StoredChat(user: "ann", at: server, in: .shared(group))
///     let channels = try await stored.channels()
///
/// Each answer shows a single moment: the state as of the app's last connection. Later changes that the app stores appear in the next answer.
/// Messages still on their way to the server aren't included.
///
/// It becomes invalid once its file is deleted or replaced, for instance by ``Chat/logOut(discardingUnsent:signingOutDevice:)`` in the app, or because
/// the file was damaged: each function then throws `storage_gone`. Make a new one.
public struct StoredChat: Sendable {
    /// The user that the chat belongs to.
    public let user: UserID
    private let queue: DatabaseQueue
    private let path: String
    /// The number of the open file; no other file can have it while this one is open.
    private let number: UInt64

    /// Opens the files of a user.
    ///
    /// Opens a database on the calling thread, and waits up to 5 seconds if another process has locked it. Don't call it on the main actor.
    ///
    /// - Parameters:
    ///   - user: The user whose files they are.
    ///   - url: The server's address, as given to the chat.
    ///   - storage: The storage that the chat was configured with; for an extension, ``Chat/Storage/shared(_:)`` with the directory of an App Group.
    /// - Throws: `RoostError` with `storage_gone` if nothing is stored, or it was stored by another version of this package, until the app has opened
    ///   its chat; `storage_failed` if it can't be read. The extension then has to do without it.
    public init(user: UserID, at url: URL, in storage: Chat.Storage = .standard) throws {
        self.user = user
        do {
            guard let file = try SyncFiles.cache(of: user, at: url, in: storage), let number = FolderLock.number(at: file.path)
            else {
                throw RoostError(.storageGone, "No data of \(user) is stored on this device.")
            }
            path = file.path
            self.number = number
            queue = try Store.openForReading(file)
        } catch let error as RoostError {
            throw error
        } catch {
            throw RoostError(.storageFailed, "The data stored on this device can't be read: \(error)")
        }
    }

    /// Returns the user's first channels, in the order of the query.
    ///
    /// - Parameters:
    ///   - query: Filters and order; by default the channel with the newest message comes first, and hidden ones are left out. Its `limit` and
    ///     `cursor` are ignored.
    ///   - limit: The maximum number of channels, at least 1.
    /// - Throws: `RoostError` with `invalid_argument` for a query that only the server can answer, the code of a limit, `storage_failed`
    ///   if the files can't be read, and `storage_gone` if they were deleted or replaced.
    public func channels(matching query: ChannelQuery = ChannelQuery(), limit: Int = 50) async throws -> [ChannelItem] {
        let query = query.withoutPage
        try query.validate()
        guard query.isLocal else { throw RoostError.invalidArgument("query", "asks for channels that only the server knows") }
        return try await read { database in
            var list = ListedChannels(query, pageSize: max(1, limit))
            try list.apply(.everything, in: database, now: Timestamp(Date()))
            return list.shown.items ?? []
        }
    }

    /// A channel with the user's membership and its newest message; nil if it isn't stored.
    ///
    /// - Throws: `RoostError` with `storage_failed` if the files can't be read, and `storage_gone` if they were deleted or replaced.
    public func channel(_ id: ChannelID) async throws -> ChannelItem? {
        try await read { database in try database.channelRow(id, now: Timestamp(Date())).map(ChannelItem.init) }
    }

    /// The newest stored messages of a channel, oldest first.
    ///
    /// - Parameters:
    ///   - channel: The channel's id.
    ///   - limit: The maximum number of messages, 1 to 300.
    /// - Throws: `RoostError` with `storage_failed` if the files can't be read, and `storage_gone` if they were deleted or replaced.
    public func messages(in channel: ChannelID, limit: Int = 30) async throws -> [MessageItem] {
        try await read { database in
            var window = MessageWindow(pageSize: min(max(1, limit), MessageList.rowsMax))
            try window.read(.newest, of: channel, in: database)
            return window.shownRows.map(\.item)
        }
    }

    /// A stored message of a channel by its id, such as the id in a push.
    ///
    /// A push may arrive before the app has stored its message; this is nil then.
    ///
    /// - Returns: The message as ``messages(in:limit:)`` returns it, without content if it was deleted. Nil if it isn't stored, or if the user may
    ///   not see it.
    /// - Throws: `RoostError` with `storage_failed` if the files can't be read, and `storage_gone` if they were deleted or replaced.
    public func message(_ id: MessageID, in channel: ChannelID) async throws -> MessageItem? {
        try await read { database in try database.listedMessage(id, in: channel) }
    }

    /// Returns the unread total of all of the user's channels, for a badge.
    ///
    /// - Throws: `RoostError` with `storage_failed` if the files can't be read, and `storage_gone` if they were deleted or replaced.
    public func unread() async throws -> TotalUnread {
        try await read { database in
            var totals = UnreadTotals()
            try totals.apply(.everything, in: database)
            return totals.total
        }
    }

    private func read<Value: Sendable>(_ query: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        try requireSameFile()
        let value: Value
        do {
            value = try await queue.read(query)
        } catch is CancellationError {
            throw CancellationError()
        } catch {
            throw RoostError(.storageFailed, "The data stored on this device can't be read: \(error)")
        }
        // The file may have been deleted meanwhile; a file that is open stays readable.
        try requireSameFile()
        return value
    }

    /// - Throws: `RoostError` with `storage_gone` if the open file was deleted or replaced.
    private func requireSameFile() throws {
        guard FolderLock.number(at: path) == number else {
            throw RoostError(
                .storageGone, "The stored data of \(user) was deleted or replaced. Make a new StoredChat.")
        }
    }
}
