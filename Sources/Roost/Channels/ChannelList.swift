public import Observation
public import RoostAPI

/// Channels as a live collection: those that a query holds, in its order (AM-30, R08).
///
/// A list of the user's own channels comes from this device's store. It is complete and right offline too, and follows every event by
/// moving the one row that it concerns. Lists that only the server can make come from it page by page, and again after each reconnect:
/// channels of others (`membership` `all` or `notMember`), deleted ones (`includeDeleted`), and channels by their members (`exactUsers`,
/// `includingUsers`), which are requested again whenever a member of one of the user's channels joins or leaves. Offline such a list shows
/// its last rows.
@MainActor @Observable
public final class ChannelList {
    /// The channels in the order of the query, as many pages as were loaded.
    public private(set) var items: [ChannelItem] = []
    /// The sum of the unread messages over all channels of the list, those included that aren't loaded as rows from the store
    /// (AM-44).
    public private(set) var totalUnreadCount = 0
    /// Whether ``loadMore()`` would add something.
    public private(set) var hasMore = false
    /// Whether the device's store has answered, or the server for lists that need it: before that, an empty list means nothing.
    public private(set) var isLoaded = false
    /// Why the server, or a limit, refuses the query; nil once it is answered.
    public private(set) var refusal: RoostError?

    /// The query of the list.
    @ObservationIgnored public let query: ChannelQuery
    @ObservationIgnored private var source: (any ChannelSource)?
    /// The number of the rows that are shown.
    @ObservationIgnored private var shown = 0
    @ObservationIgnored private let follower: Follower
    @ObservationIgnored private let observers = ListObservers<ChannelItem>()

    init(_ query: ChannelQuery, pageSize: Int, in chat: Chat) {
        self.query = query
        follower = Follower(chat.driver)
        do {
            try query.validate()
        } catch {
            refusal = error
            return
        }
        if query.isLocal {
            source = StoredChannels(query, pageSize: max(1, pageSize), driver: chat.driver)
        } else {
            source = AskedChannels(query, pageSize: max(1, pageSize), chat: chat) { [weak self] in self?.askSoon() }
        }
        follower.follow(
            .channels, connected: { [weak self] in await self?.work { try await $0.connected() } },
            changed: { [weak self] change in await self?.work { try await $0.follow(change) } })
    }

    /// The list after each change, with the difference to the one before; the first update inserts everything (AM-30).
    public var updates: ListUpdates<ChannelItem> { observers.updates(of: self, startingWith: isLoaded ? items : nil) }

    /// Calls back with the list and its difference after each change, until the token is invalidated or released (AM-29).
    public func observe(_ callback: @escaping @MainActor (ListUpdate<ChannelItem>) -> Void) -> ObservationToken {
        observers.add(startingWith: isLoaded ? items : nil, callback)
    }

    /// Adds a page of rows. Does nothing when there are none (SB-23).
    ///
    /// - Throws: `RoostError` as ``Chat/call(_:)`` does, where the server is asked.
    public func loadMore() async throws {
        guard hasMore, let source else { return }
        try await follower.take { try await source.extend() }
        show()
    }

    private func work(_ step: @escaping @MainActor (any ChannelSource) async throws -> Void) async {
        guard let source else { return }
        switch await follower.work({ try await step(source) }) {
        case .done: refusal = nil
        case .refused(let error): refusal = error
        case .failed: break
        }
        show()
        if source.isPartial { await work { try await $0.complete() } }
    }

    private func show() {
        guard let source, let items = source.items else { return }
        if hasMore != source.hasMore { hasMore = source.hasMore }
        if totalUnreadCount != source.unreadCount { totalUnreadCount = source.unreadCount }
        // A difference is of use if the rows before it are those that are shown.
        let difference = source.number == shown + 1 ? source.difference : nil
        shown = source.number
        guard !isLoaded || difference.map({ !$0.isEmpty }) ?? (items != self.items) else { return }
        isLoaded = true
        let before = self.items
        self.items = items
        observers.notify(items, after: before, difference)
    }

    private func askSoon() {
        follower.soon { [weak self] in await self?.work { try await $0.connected() } }
    }
}
