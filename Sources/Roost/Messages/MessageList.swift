public import Observation
public import RoostAPI

/// The messages of a channel as a live collection, oldest first, the user's own that are on their way last (AM-30).
///
/// It shows a part of the channel's messages that never has a hole: at first the newest page. It grows by what arrives, ``loadOlder()``
/// and ``loadNewer()``, and holds ``rowsMax`` messages at most, however far one scrolls: beyond that it lets go of messages at the end
/// that is farther from the last call. After ``loadOlder()`` these are the newest, ``hasNewer`` says so, and neither messages that arrive
/// nor those on their way are shown until ``loadNewer()`` or ``showNewest()`` brings the list back to them. Before ``loadOlder()`` and
/// after those two, these are the oldest.
@MainActor @Observable
public final class MessageList {
    /// The most messages that a list holds, besides those on their way.
    public nonisolated static let rowsMax = 300

    /// The messages, oldest first.
    public private(set) var items: [MessageItem] = []
    /// Whether ``loadOlder()`` would add something.
    public private(set) var hasOlder = false
    /// Whether ``loadNewer()`` would add something: the list ends before the channel's newest message.
    public private(set) var hasNewer = false
    /// How far the list has come: before it is loaded, empty means nothing.
    public var phase: LivePhase { follower.phase }

    /// Returns once the device's store was asked.
    ///
    /// - Throws: The `RoostError` of ``phase``; `CancellationError`.
    public func loaded() async throws { try await follower.loaded() }

    /// The channel whose messages these are.
    @ObservationIgnored public nonisolated let channelId: ChannelID
    @ObservationIgnored private let user: UserID
    @ObservationIgnored private let driver: SyncDriver
    @ObservationIgnored private let pageSize: Int
    @ObservationIgnored private var window: MessageWindow
    /// The messages in the outbox, and whether it changed since they were read.
    @ObservationIgnored private var pending: [MessageItem] = []
    @ObservationIgnored private var isOutboxChanged = true
    @ObservationIgnored private var isFilling = false
    @ObservationIgnored private var isOpened = false
    @ObservationIgnored private let follower: Follower
    @ObservationIgnored private let observers = ListObservers<MessageItem>()

    init(of channel: ChannelID, pageSize: Int, in chat: Chat) {
        channelId = channel
        user = chat.user
        driver = chat.driver
        self.pageSize = min(max(pageSize, 1), Limits.historyPage.max)
        window = MessageWindow(pageSize: self.pageSize)
        follower = Follower(chat.driver)
        // A channel that was joined a moment ago has no messages here: the first page is fetched once there is a connection.
        follower.follow(
            .messages(channel), connected: { [weak self] in await self?.fillFirstPage() },
            reload: { [weak self] change in try await self?.reload(change) })
    }

    /// The list after each change, with the difference to the one before; the first update inserts everything.
    public var updates: ListUpdates<MessageItem> { observers.updates(of: self, startingWith: follower.hasAnswer ? items : nil) }

    /// Calls back with the list and its difference after each change, until the token is invalidated or released.
    public func observe(_ callback: @escaping @MainActor (ListUpdate<MessageItem>) -> Void) -> ObservationToken {
        observers.add(startingWith: follower.hasAnswer ? items : nil, callback)
    }

    /// Adds a page of older messages, from this device where they are cached, else from the server. Does nothing when there are
    /// none.
    ///
    /// - Throws: `RoostError` with `not_connected` while offline, `not_member` when the channel isn't one of the user's.
    public func loadOlder() async throws {
        guard hasOlder else { return }
        if !window.hasOlderCached { try await driver.loadOlder(in: channelId, limit: pageSize) }
        await follower.work { try await self.read(.older) }
    }

    /// Adds a page of newer messages where ``hasNewer`` says that there are any. They are on this device.
    ///
    /// An app calls it whenever the last row becomes visible: from then on the list follows the newest messages again.
    public func loadNewer() async { await follower.work { try await self.read(.newer) } }

    /// Shows the newest page, and follows the newest messages from then on. Does nothing else if the list has them already.
    public func showNewest() async { await follower.work { try await self.read(.newest) } }

    /// Tries a refused message again. Does nothing for any other.
    public func retry(_ clientId: ClientID) async {
        await driver.request(.retry(MessageKey(channel: channelId, clientId: clientId)))
    }

    /// Gives up a message that is on its way. One that the server has taken meanwhile stays.
    public func discard(_ clientId: ClientID) async {
        await driver.request(.discard(MessageKey(channel: channelId, clientId: clientId)))
    }

    private func reload(_ change: StoreChange) async throws {
        if change.isEverything || change.outbox.contains(channelId) { isOutboxChanged = true }
        try await read(.stay)
        if window.rows.count < pageSize { Task { [weak self] in await self?.fillFirstPage() } }
    }

    private func read(_ move: MessageWindow.Move) async throws {
        let files = try await driver.files()
        // The outbox first: a message leaves it after it is in the cache, so that read in this order, none can be missed.
        if isOutboxChanged {
            let items = try await files.outbox.items(of: channelId)
            pending = items.map { MessageItem($0, user: user) }
            isOutboxChanged = false
        }
        let (channel, window, pending) = (channelId, window, pending)
        let read = try await files.store.read { database in
            var window = window
            try window.read(move, of: channel, in: database)
            // One that is in both is the channel's: its row in the outbox is about to be removed.
            return (window: window, pending: try pending.filter { try !database.holdsOwnMessage($0.clientId, in: channel) })
        }
        self.window = read.window
        show(read.window.rows.map(\.item) + (read.window.hasNewer ? [] : read.pending))
        guard !isOpened else { return }
        isOpened = true
        try await files.store.noteOpening(of: channelId)
    }

    private func show(_ items: [MessageItem]) {
        if hasOlder != window.hasOlder { hasOlder = window.hasOlder }
        if hasNewer != window.hasNewer { hasNewer = window.hasNewer }
        defer { follower.answered() }
        guard !follower.hasAnswer || items != self.items else { return }
        let before = self.items
        self.items = items
        observers.notify(items, after: before)
    }

    private func fillFirstPage() async {
        let isShort = window.rows.count < pageSize && !window.hasOlderCached
        guard follower.hasAnswer, hasOlder, isShort, !isFilling, driver.statuses.current == .online else { return }
        isFilling = true
        // Without a connection there will be another occasion.
        try? await driver.loadOlder(in: channelId, limit: pageSize)
        isFilling = false
    }
}
