import GRDB
import NIOConcurrencyHelpers
import RoostAPI

/// The source of a list of channels. Takes one call at a time; while the server answers one, other calls that don't ask it.
@MainActor
protocol ChannelSource: AnyObject {
    /// The rows to show, in their order. Nil before the first answer.
    var items: [ChannelItem]? { get }
    /// Counts the calls.
    var number: Int { get }
    /// The difference from the rows before the last call, if it is known.
    var difference: ListUpdate<ChannelItem>? { get }
    /// Whether ``extend()`` would add something.
    var hasMore: Bool { get }
    /// The unread messages of all channels that the query holds; not yet while ``isPartial``.
    var unreadCount: Int { get }
    /// Users whom rows that came with the last call show, each with the version that is known.
    var shownUsers: [UserID: Int64] { get }
    /// Whether ``complete()`` has something to do once the rows are shown.
    var isPartial: Bool { get }
    /// When ``endStates()`` may have something to do: when the next silence, rate limit or mute that is shown ends. Nil if none does.
    var nextEnd: Timestamp? { get }

    /// Applies a change of the store.
    func follow(_ change: StoreChange) async throws
    /// Whether ``connected()`` and ``extend()`` ask the server.
    var asksServer: Bool { get }
    /// Takes in that there is a connection, and everything that was missed is stored.
    func connected() async throws
    /// Adds a page of rows.
    func extend() async throws
    /// Does what the first rows didn't have to wait for.
    func complete() async throws
    /// Reads the rows again of channels in which a silence, a rate limit or a mute has ended since.
    func endStates() async throws
}

/// The user's own channels, from this device's store: complete and right offline too.
///
/// The list is kept and changed where the store is read, off the main actor, which only gets the rows.
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
    /// The order whose index would have found the first rows, and may have to be made; nil once it is asked for.
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
        // If it found them, it is there.
        guard !isPartial else { return }
        let driver = driver
        // The rows are there: nobody waits for whoever writes at this moment, and if it fails the next list tries it.
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
        // If this fails, nobody waits for an end: the next change has all rows read again.
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
            // Also where the step didn't come to the store: what changed would be shown no more.
            list.withLockedValue { $0.reset() }
            throw error
        }
        (items, difference, nextEnd) = (shown.items, shown.difference, shown.nextEnd)
        (hasMore, unreadCount, isPartial, shownUsers) = (shown.hasMore, shown.unreadCount, shown.isPartial, shown.users)
    }
}
