public import Observation
public import RoostAPI

/// The messages of a channel as a live collection, oldest first, the user's own that are on their way last (AM-30).
///
/// It never has a hole: it shows the channel's newest messages back to some place, and ``loadOlder()`` moves that place.
@MainActor @Observable
public final class MessageList {
    /// The messages, oldest first.
    public private(set) var items: [MessageItem] = []
    /// Whether ``loadOlder()`` would add something.
    public private(set) var hasOlder = false
    /// Whether the device's store has been asked: before that, empty means nothing.
    public private(set) var isLoaded = false

    /// The channel whose messages these are.
    @ObservationIgnored public nonisolated let channelId: ChannelID
    @ObservationIgnored private let user: UserID
    @ObservationIgnored private let driver: SyncDriver
    @ObservationIgnored private let pageSize: Int
    /// Messages of the channel to show, and the oldest one that is shown: new messages don't push it out.
    @ObservationIgnored private var limit: Int
    @ObservationIgnored private var lowest: Seq?
    /// The messages of the channel that are shown.
    @ObservationIgnored private var known: [CachedMessage] = []
    @ObservationIgnored private var hasOlderCached = false
    @ObservationIgnored private var isFilling = false
    @ObservationIgnored private let follower: Follower
    @ObservationIgnored private let observers = Observers<[MessageItem]>()

    init(of channel: ChannelID, pageSize: Int, in chat: Chat) {
        channelId = channel
        user = chat.user
        driver = chat.driver
        self.pageSize = min(max(pageSize, 1), Limits.historyPage.max)
        limit = self.pageSize
        follower = Follower(chat.driver)
        // A channel that was joined a moment ago has no messages here: the first page is fetched once there is a connection.
        follower.follow(
            .channel(channel), connected: { [weak self] in await self?.fillFirstPage() },
            reload: { [weak self] _ in try await self?.reload() })
    }

    /// The list after each change, with the difference to the one before; the first update inserts everything.
    public var updates: ListUpdates<MessageItem> { observers.updates(startingWith: isLoaded ? items : nil) }

    /// Calls back with the list and its difference after each change, until the token is invalidated or released.
    public func observe(_ callback: @escaping @MainActor (ListUpdate<MessageItem>) -> Void) -> ObservationToken {
        observers.addDifferences(startingWith: isLoaded ? items : nil, callback)
    }

    /// Adds a page of older messages, from this device where they are cached, else from the server. Does nothing when there are
    /// none.
    ///
    /// - Throws: `RoostError` with `not_connected` while offline, `not_member` when the channel isn't one of the user's.
    public func loadOlder() async throws {
        guard hasOlder else { return }
        if !hasOlderCached { try await driver.loadOlder(in: channelId, limit: pageSize) }
        await follower.work {
            self.limit = max(self.limit, self.shownCount) + self.pageSize
            try await self.reload()
        }
    }

    /// Tries a refused message again. Does nothing for any other.
    public func retry(_ clientId: ClientID) async {
        await driver.post(.retry(MessageKey(channel: channelId, clientId: clientId)))
    }

    /// Gives up a message that is on its way. One that the server has taken meanwhile stays.
    public func discard(_ clientId: ClientID) async {
        await driver.post(.discard(MessageKey(channel: channelId, clientId: clientId)))
    }

    private func reload() async throws {
        let (channel, limit, lowest, known) = (channelId, limit, lowest, known)
        let files = try await driver.prepare()
        // The outbox first: a message leaves it after it is in the cache, so that read in this order, none can be missed.
        let pending = try await files.outbox.items(of: channel)
        let cached = try await files.store.read { try $0.messages(of: channel, from: lowest, limit: limit, known: known) }
        show(MessageItem.merge(cached.rows.map(\.item), pending: pending, user: user), cached)
        if cached.rows.count < pageSize { Task { [weak self] in await self?.fillFirstPage() } }
    }

    private var shownCount: Int { known.count }

    private func show(_ items: [MessageItem], _ cached: CachedMessages) {
        known = cached.rows
        lowest = known.first?.seq
        hasOlderCached = cached.hasOlderCached
        if hasOlder != cached.hasOlder { hasOlder = cached.hasOlder }
        guard !isLoaded || items != self.items else { return }
        isLoaded = true
        self.items = items
        observers.notify(items)
    }

    private func fillFirstPage() async {
        guard isLoaded, hasOlder, !hasOlderCached, items.count < pageSize, !isFilling, driver.statuses.current == .online else {
            return
        }
        isFilling = true
        // Without a connection there will be another occasion.
        try? await driver.loadOlder(in: channelId, limit: pageSize)
        isFilling = false
    }
}
