import GRDB
import NIOConcurrencyHelpers
import RoostAPI

/// The source of a list of channels. It handles one call at a time, except that calls that don't ask the server can run while the server answers
/// another one.
@MainActor
protocol ChannelSource: AnyObject {
    /// The rows to show, in order. Nil before the first answer.
    var items: [ChannelItem]? { get }
    /// The number of calls so far.
    var number: Int { get }
    /// The difference from the rows before the last call, if it is known.
    var difference: ListUpdate<ChannelItem>? { get }
    /// Whether ``extend()`` would add rows.
    var hasMore: Bool { get }
    /// The number of unread messages in all channels that match the query; not yet known while ``isPartial``.
    var unreadCount: Int { get }
    /// Users shown by rows that the last call added, each with the known version.
    var shownUsers: [UserID: Int64] { get }
    /// Whether ``complete()`` has something to do once the rows are shown.
    var isPartial: Bool { get }
    /// When ``endStates()`` may have something to do: when the next silence, rate limit or mute that is shown ends. Nil if none does.
    var nextEnd: Timestamp? { get }

    /// Applies a change of the store.
    func follow(_ change: StoreChange) async throws
    /// Whether ``connected()`` and ``extend()`` ask the server.
    var asksServer: Bool { get }
    /// Handles that there is a connection and everything missed is stored.
    func connected() async throws
    /// Adds a page of rows.
    func extend() async throws
    /// Does the work that the first rows didn't have to wait for.
    func complete() async throws
    /// Rereads the rows of channels in which a silence, a rate limit or a mute has ended since.
    func endStates() async throws
}

/// The user's own channels, from this device's store: complete and right offline too.
///
/// The list is kept and changed off the main actor, where the store is read; the main actor only gets the rows.
@MainActor
final class StoredChannels: ChannelSource {
    private let driver: SyncDriver
    private nonisolated let list: NIOLockedValueBox<ListedChannels>
    let asksServer = false
    private(set) var items: [ChannelItem]?
    private(set) var number = 0
    private(set) var difference: ListUpdate<ChannelItem>?
    private(set) var hasMore = false
    private(set) var unreadCount = 0
    private(set) var isPartial = false
    private(set) var shownUsers: [UserID: Int64] = [:]
    private(set) var nextEnd: Timestamp?
    /// The order whose index would have found the first rows, and may have to be created; nil once it has been requested.
    private var order: ChannelSort?

    init(_ query: ChannelQuery, pageSize: Int, driver: SyncDriver) {
        self.driver = driver
        order = ListedChannels.usesIndex(query, pageSize: pageSize) ? query.effectiveSort : nil
        list = NIOLockedValueBox(ListedChannels(query, pageSize: pageSize))
    }

    func follow(_ change: StoreChange) async throws {
        try await perform { try $0.apply(change, in: $1, now: $2) }
        guard let order else { return }
        self.order = nil
        // If the index found them, it exists.
        guard !isPartial else { return }
        let driver = driver
        // The rows are shown already: nothing waits for the store's current writer, and if it fails the next list tries again.
        Task { try? await driver.files().store.makeIndex(for: order) }
    }
    func connected() {}
    func extend() async throws { try await perform { try $0.extend(in: $1, now: $2) } }
    func complete() async throws { try await perform { try $0.complete(in: $1, now: $2) } }
    func endStates() async throws { try await perform { try $0.endStates(in: $1, now: $2) } }

    private func perform(
        _ step: @escaping @Sendable (inout ListedChannels, Database, Timestamp) throws -> Void
    ) async throws {
        let now = driver.environment.now
        // If this fails, no end is waited for: the next change rereads all rows.
        (isPartial, difference, nextEnd) = (false, nil, nil)
        number += 1
        let shown: ListedChannels.Shown
        do {
            shown = try await driver.files().store.read { database in
                try self.list.withLockedValue { list in
                    try step(&list, database, now())
                    return list.shown
                }
            }
        } catch {
            // Also if the step didn't reach the store: otherwise its change would never be shown.
            list.withLockedValue { $0.reset() }
            throw error
        }
        (items, difference, nextEnd) = (shown.items, shown.difference, shown.nextEnd)
        (hasMore, unreadCount, isPartial, shownUsers) = (shown.hasMore, shown.unreadCount, shown.isPartial, shown.users)
    }
}
