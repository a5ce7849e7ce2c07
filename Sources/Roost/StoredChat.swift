public import Foundation
import GRDB
import Logging
public import RoostAPI

/// A user's chat as it is stored on this device, for an app's extension: it reads even while the app has the files open, writes nothing and
/// doesn't connect.
///
///     let stored = try StoredChat(user: "ann", at: server, in: .directory(group))
///     let channels = try await stored.channels()
///
/// Each answer shows a single moment: that of the app's last connection. What the app stores later is in the next answer. Messages on their way
/// to the server aren't included.
///
/// It is over once its file is deleted or replaced, as by ``Chat/logOut(discardingUnsent:)`` in the app or where the file was damaged: each function throws
/// `unavailable` then. Make another one.
public struct StoredChat: Sendable {
    /// The user that the chat belongs to.
    public let user: UserID
    private let queue: DatabaseQueue
    private let path: String
    /// The number of the file that is open, which nothing else has as long as it is.
    private let number: UInt64

    /// Opens the files of a user.
    ///
    /// This opens a database on the calling thread, and waits up to 5 seconds if another process has locked it. Don't call it on the main actor.
    ///
    /// - Parameters:
    ///   - user: The user of the chat that stored them.
    ///   - url: The server, as it was given to the chat.
    ///   - storage: The same that the chat was configured with. An app and its extensions share the directory of an App Group.
    /// - Throws: `RoostError` with `unavailable` if nothing is stored, it can't be read, or it was stored by another version of this package:
    ///   the extension shows what it can without it.
    public init(user: UserID, at url: URL, in storage: Chat.Storage = .standard) throws {
        self.user = user
        do {
            guard let file = try SyncFiles.cache(of: user, at: url, in: storage), let number = FolderLock.number(at: file.path)
            else {
                throw RoostError(.unavailable, "Nothing is stored of \(user) on this device.")
            }
            path = file.path
            self.number = number
            queue = try Store.openForReading(file)
        } catch let error as RoostError {
            throw error
        } catch {
            throw RoostError(.unavailable, "What is stored on this device can't be read: \(error)")
        }
    }

    /// Returns the user's first channels, in the order of the query.
    ///
    /// - Parameters:
    ///   - query: Filters and order; with none, the one with the newest message first, hidden ones left out. Its `limit` and `cursor` are ignored.
    ///   - limit: The most channels, at least 1.
    /// - Throws: `RoostError` with `invalid_argument` for a query that only the server can answer, the code of a limit, and `unavailable`
    ///   if the files can't be read.
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
    /// - Throws: `RoostError` with `unavailable` if the files can't be read.
    public func channel(_ id: ChannelID) async throws -> ChannelItem? {
        try await read { database in try database.channelRow(id, now: Timestamp(Date())).map(ChannelItem.init) }
    }

    /// The newest stored messages of a channel, oldest first.
    ///
    /// - Parameters:
    ///   - channel: The channel's id.
    ///   - limit: The most messages, 1 to 300.
    /// - Throws: `RoostError` with `unavailable` if the files can't be read.
    public func messages(in channel: ChannelID, limit: Int = 30) async throws -> [MessageItem] {
        try await read { database in
            var window = MessageWindow(pageSize: min(max(1, limit), MessageList.rowsMax))
            try window.read(.newest, of: channel, in: database)
            return window.shownRows.map(\.item)
        }
    }

    /// A stored message of a channel by its id, such as the one that a push names.
    ///
    /// A push may be there before the app has stored its message: then this is nil.
    ///
    /// - Returns: The message as ``messages(in:limit:)`` returns it, without content if it was deleted. Nil if it isn't stored, or the user may not see it.
    /// - Throws: `RoostError` with `unavailable` if the files can't be read.
    public func message(_ id: MessageID, in channel: ChannelID) async throws -> MessageItem? {
        try await read { database in try database.listedMessage(id, in: channel) }
    }

    /// Returns the unread total of all of the user's channels, for a badge.
    ///
    /// - Throws: `RoostError` with `unavailable` if the files can't be read.
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
            throw RoostError(.unavailable, "What is stored on this device can't be read: \(error)")
        }
        // It may have been deleted meanwhile, and what is open can be read as long as it is.
        try requireSameFile()
        return value
    }

    /// - Throws: `RoostError` with `unavailable` if the file that is open was deleted or replaced.
    private func requireSameFile() throws {
        guard FolderLock.number(at: path) == number else {
            throw RoostError(
                .unavailable, "What was stored of \(user) was deleted or replaced. A new StoredChat reads what there is now.")
        }
    }
}
