public import Observation
public import RoostAPI

/// Channels as a live collection: those that match a query, in its order (AM-30, R08).
///
/// A list of the user's own channels is read from this device's store. It is complete and right offline too, and follows every event by moving the
/// one row that it concerns. Lists that only the server can answer are fetched page by page, and again after each reconnect: channels that the user
/// isn't a member of (`membership` `all` or `notMember`), deleted ones (`includeDeleted`), and channels by their members (`exactUsers`,
/// `includingUsers`), which are requested again whenever a member of one of the user's channels joins or leaves. In between, the user's own channels
/// enter, change and leave such a list as the filters say; other channels stay as they were. Offline it shows its last rows.
@MainActor @Observable
public final class ChannelList {
    /// The channels in the order of the query, as many pages as have been loaded.
    public private(set) var items: [ChannelItem] = []
    /// The number of unread messages in all channels of the list (AM-44), including stored channels that aren't loaded as rows, and excluding
    /// channels that the user has muted (D-29). The first rows may be shown before it: it is right once the list is loaded.
    public private(set) var totalUnreadCount = 0
    /// Whether ``loadMore()`` would add rows.
    public private(set) var hasMore = false
    /// The phase of the list: before it is loaded, an empty list means nothing; `refused` if the server, or a limit, refuses the query.
    public var phase: LivePhase { follower.phase }

    /// Returns once the device's store, or the server for lists that need it, has answered: the rows and the total are complete.
    ///
    /// - Throws: The `RoostError` of ``phase``; `CancellationError`.
    public func loaded() async throws { try await follower.loaded() }

    /// The query of the list. After a change the list keeps its rows, in the ``phase`` `loading`, until the rows of the new query arrive; observers
    /// get the difference. A query that exceeds its limits is refused: the rows stay as they are, and aren't updated until the query changes again.
    @ObservationIgnored public var query: ChannelQuery { didSet { if query.withoutPage != oldValue.withoutPage { ask() } } }
    @ObservationIgnored private let chat: Chat
    @ObservationIgnored private let pageSize: Int
    @ObservationIgnored private var source: (any ChannelSource)?
    /// The number of the source's rows that are shown.
    @ObservationIgnored private var shown = 0
    @ObservationIgnored private var isShown = false
    @ObservationIgnored private let follower: Follower
    @ObservationIgnored private let observers = ListObservers<ChannelItem>()
    /// Waits for the next end of a silence or rate limit in the list.
    @ObservationIgnored private var expiry: ObservationToken?
    @ObservationIgnored private var awaitedEnd: Timestamp?

    init(_ query: ChannelQuery, pageSize: Int, in chat: Chat) {
        self.query = query
        self.chat = chat
        self.pageSize = max(1, pageSize)
        follower = Follower(chat.driver)
        makeSource()
        follower.follow(
            .channels, connected: { [weak self] in await self?.connected() },
            away: { [weak self] in self?.query.isLocal == false },
            ended: { [weak self] in self?.forget() },
            changed: { [weak self] change in
                await self?.work(isQuery: self?.query.isLocal ?? false) { try await $0.follow(change) }
            })
    }

    /// Creates the source of the query's rows, unless a limit refuses the query.
    private func makeSource() {
        source = nil
        let query = query.withoutPage
        do {
            try query.validate()
        } catch {
            return follower.refused(error)
        }
        if query.isLocal {
            source = StoredChannels(query, pageSize: pageSize, driver: chat.driver)
        } else {
            source = ServerChannels(
                query, pageSize: pageSize, chat: chat, turn: { [weak self] step in try await self?.follower.turn(step) },
                ask: { [weak self] in self?.askSoon() })
        }
    }

    /// Loads the rows of another query.
    private func ask() {
        follower.abandonWork()
        makeSource()
        guard source != nil else { return }
        shown = 0
        follower.beginLoading()
        Task { [weak self, isLocal = query.isLocal] in
            if isLocal { await self?.work { try await $0.follow(.everything) } } else { await self?.connected() }
            await self?.follower.lookForConnection()
        }
    }

    /// The list after each change, with the difference from the one before; the first update inserts everything (AM-30).
    public var updates: ListUpdates<ChannelItem> { observers.updates(of: self, startingWith: isShown ? items : nil) }

    /// Calls back with the list and its difference after each change, until the token is invalidated or released (AM-29). The difference is empty if
    /// only ``totalUnreadCount`` has changed, or if another ``query`` has the same rows as the one before.
    public func observe(_ callback: @escaping @MainActor (ListUpdate<ChannelItem>) -> Void) -> ObservationToken {
        observers.add(startingWith: isShown ? items : nil, callback)
    }

    /// Adds a page of rows. Does nothing if there are no more (SB-23).
    ///
    /// - Throws: The errors of ``Chat/call(_:isolation:)`` if the server is asked; otherwise `RoostError` with `storage_failed` if the store
    ///   can't be read.
    public func loadMore() async throws {
        guard hasMore, let source else { return }
        do {
            try await follower.take(asksServer: source.asksServer) { try await source.extend() }
        } catch {
            // The app has asked for something else meanwhile, which has its own pages.
            guard source === self.source else { return }
            throw error
        }
        show()
    }

    private func connected() async {
        // Rows from the store don't depend on the connection, which says nothing about whether they can be read.
        guard source?.asksServer == true else { return }
        await work(asksServer: true) { try await $0.connected() }
    }

    private func work(
        isQuery: Bool = true, asksServer: Bool = false,
        _ step: @escaping @MainActor (any ChannelSource) async throws -> Void
    ) async {
        guard let source else { return }
        await follower.work(isQuery: isQuery, asksServer: asksServer) { [weak self] in
            do {
                try await step(source)
            } catch {
                guard self?.source === source else { throw CancellationError() }
                throw error
            }
            // The app may have asked for something else meanwhile: this outcome says nothing about that.
            guard self?.source === source else { throw CancellationError() }
        }
        guard source === self.source else { return }
        show()
        if source.isPartial { await work { try await $0.complete() } }
    }

    /// The user has logged out: rows from the server are removed, and those left of an earlier query. The store's rows follow the store.
    private func forget() {
        if source == nil {
            (hasMore, totalUnreadCount) = (false, 0)
            show([], nil, isAnswer: true)
        }
        (source as? ServerChannels)?.forget()
        show()
    }

    private func show() {
        guard let source, let items = source.items else { return }
        if hasMore != source.hasMore { hasMore = source.hasMore }
        // The first rows don't wait for the places of all others, which make up the total.
        let (isAnswer, total) = (!source.isPartial, totalUnreadCount)
        if isAnswer, total != source.unreadCount { totalUnreadCount = source.unreadCount }
        // A difference is useful only if the rows before it are the ones shown.
        let difference = source.number == shown + 1 ? source.difference : nil
        shown = source.number
        follower.shows(source.shownUsers)
        waitForEnd(source.nextEnd)
        show(items, difference, isAnswer: isAnswer, hasTotalChanged: totalUnreadCount != total)
    }

    private func show(
        _ items: [ChannelItem], _ difference: ListUpdate<ChannelItem>?, isAnswer: Bool, hasTotalChanged: Bool = false
    ) {
        let (before, phaseBefore) = (self.items, phase)
        let isChanged = !isShown || difference.map { !$0.isEmpty } ?? (items != before)
        if isChanged { (isShown, self.items) = (true, items) }
        if isAnswer { follower.answered() }
        // The total follows the rows, and another query may have the same rows.
        guard isChanged || hasTotalChanged || phase != phaseBefore else { return }
        observers.notify(items, after: before, difference)
    }

    /// Silences, rate limits and mutes end without an event: the list is updated when the next of them ends.
    private func waitForEnd(_ end: Timestamp?) {
        guard end != awaitedEnd else { return }
        awaitedEnd = end
        expiry = end.map { end in
            chat.driver.environment.waiting(until: end) { [weak self] in
                // The clock used for waiting and the time of day may differ a little: then it waits once more.
                self?.awaitedEnd = nil
                await self?.work(isQuery: false) { try await $0.endStates() }
            }
        }
    }

    private func askSoon() {
        follower.soon { [weak self] in await self?.connected() }
    }
}
