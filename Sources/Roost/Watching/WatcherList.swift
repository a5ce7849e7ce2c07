public import Observation
public import RoostAPI

/// The connected users who watch a channel, members or not, as a live collection (ST-14).
///
/// The pages come from the server, again after each reconnect and when the user leaves or rejoins the channel. While the user also watches the
/// channel (``LiveChannel/watch(limit:watchersLimit:)``), the list follows watchers as they come and go; otherwise it stays as loaded (``asOf``). If
/// the user loses the right to watch, the phase is `refused` and the list is empty.
@MainActor @Observable
public final class WatcherList {
    /// The watchers in the order they began, as many pages as were loaded.
    public private(set) var items: [UserSummary] = []
    /// The most recent watchers, the last to begin first (ST-15): all of them if ``items`` has all, otherwise one page of them and those who have
    /// come since. Their activity in the channel doesn't count. ``updates`` reports ``items`` alone.
    ///
    /// The server has no page beyond 10,000 watchers (`Limits.watcherOffset`): if there are more, only those who come from now on are known.
    public private(set) var lastActiveWatchers: [UserSummary] = []
    /// The number of all users who watch the channel, as last reported by the server.
    public private(set) var watcherCount = 0
    /// When the list was last known to be right, by this device's clock. Nil while the user also watches the channel
    /// (``LiveChannel/watch(limit:watchersLimit:)``), because the list is current, before the first page, and if the list is refused and empty.
    ///
    /// If the user doesn't watch the channel, it is the time of the oldest page; after their watch or the connection has ended, it is the last moment
    /// at which the list was current.
    public var asOf: Timestamp? { freshness.asOf }
    /// Whether ``loadMore()`` would add anything.
    public var hasMore: Bool { roster.hasMore }
    /// The phase of the list: before it is loaded, an empty list means nothing.
    public var phase: LivePhase { follower.phase }

    /// Returns once the server has answered. Before the first connection, this waits for one.
    ///
    /// - Throws: `RoostError` with `not_connected` if no connection can be made, otherwise the error of ``phase``; `CancellationError`.
    public func loaded() async throws { try await follower.loaded() }

    @ObservationIgnored private let channel: ChannelID
    @ObservationIgnored private let chat: Chat
    @ObservationIgnored private let pageSize: Int
    private var roster = WatcherRoster()
    private var freshness = Freshness()
    @ObservationIgnored private let answer: ChannelAnswer
    @ObservationIgnored private let follower: Follower
    /// The changes received while pages are being fetched, which may be older; nil while none are.
    @ObservationIgnored private var receivedMeanwhile: [WatcherChange]?
    /// Whether the server has answered.
    @ObservationIgnored private var isAnswered = false
    @ObservationIgnored private let observers = ListObservers<UserSummary>()
    @ObservationIgnored private var following: ObservationToken?

    init(of channel: ChannelID, pageSize: Int, in chat: Chat) {
        self.channel = channel
        self.chat = chat
        self.pageSize = min(max(1, pageSize), Limits.watcherPage.max)
        follower = Follower(chat.driver)
        answer = ChannelAnswer(of: channel, chat.driver, needing: .channelWatch)
        follower.follow(
            .channel(channel), connected: { [weak self] in await self?.ask() }, away: { true },
            ended: { [weak self] in self?.forget() },
            changed: { [weak self] change in
                // A watch that ends with the membership ends without notice. When the server is asked again, it says whether the user may see the watchers.
                if await self?.answer.hasChannelRestarted() == true { self?.askSoon() }
                guard let self, change.isEverything || !change.users.isDisjoint(with: roster.shown) else { return }
                await work { try await $0.refreshUsers(change.isEverything ? nil : change.users) }
            })
        following = chat.driver.signals.follow(channel, .watchingChanged) { [weak self] in await self?.take($0) }
    }

    private func take(_ notice: SignalFeed.Notice) async {
        switch notice.news {
        case .signal(let signal): if let change = signal.watching { await take(change) }
        // Changes between the pages and the user's own watch weren't sent.
        case .watching: askSoon()
        case .stoppedWatching, .disconnected: freshness.interrupt(at: notice.time)
        case .unwatched, .missed:
            freshness.interrupt(at: notice.time)
            // If the user may no longer see the watchers, the server says so.
            askSoon()
        case .wrote, .left: break
        }
    }

    /// The list after each change, with the difference from the previous one; the first update inserts everything (AM-30).
    public var updates: ListUpdates<UserSummary> { observers.updates(of: self, startingWith: follower.hasAnswer ? items : nil) }

    /// Calls back with the list and its difference after each change, until the token is invalidated or released (AM-29).
    public func observe(_ callback: @escaping @MainActor (ListUpdate<UserSummary>) -> Void) -> ObservationToken {
        observers.add(startingWith: follower.hasAnswer ? items : nil, callback)
    }

    /// Adds a page of watchers. Does nothing if there are no more.
    ///
    /// - Throws: `RoostError` with `not_connected` while offline, `limit_exceeded` beyond `Limits.watcherOffset`, and the errors of
    ///   ``Chat/call(_:isolation:)``.
    public func loadMore() async throws {
        guard hasMore else { return }
        try await follower.take(asksServer: true) {
            self.receivedMeanwhile = []
            defer { self.receivedMeanwhile = nil }
            let known = self.roster
            let page = try await self.page(of: self.pageSize, after: known)
            // Signals haven't reported yet who has stopped.
            guard known.isContinued(by: page) else { return try await self.load(known.users.count + self.pageSize) }
            try await self.follower.turn {
                self.roster.add(page)
                for change in self.receivedMeanwhile ?? [] { self.roster.apply(change) }
                try await self.refreshUsers(Set(page.watchers.map(\.userId)))
            }
        }
        show()
    }

    /// Updates what is shown, without a request for the list itself.
    private func work(_ step: @escaping @MainActor (WatcherList) async throws -> Void) async {
        await follower.work(isQuery: false) { try await step(self) }
        show()
    }

    private func ask() async {
        // A limit doesn't revoke the right to see the watchers.
        if case .refused(let error) = await follower.work(asksServer: true, { try await self.refresh() }),
            error.code != .limitExceeded
        {
            roster = WatcherRoster()
            freshness.forget()
        }
        show()
    }

    /// Asks for as many watchers as are shown.
    private func refresh() async throws {
        try await answer.ask()
        try await load(max(pageSize, roster.users.count))
    }

    /// Loads the list anew from its beginning, with a number of watchers.
    private func load(_ count: Int) async throws {
        let signals = chat.driver.signals
        let request = freshness.ask(at: chat.driver.environment.now(), isWatched: signals.isWatched(channel))
        receivedMeanwhile = []
        defer { receivedMeanwhile = nil }
        var fresh = try await firstPages(count)
        if let offset = fresh.offsetOfLatest(pageSize) { fresh.addLatest(try await page(behind: offset, limit: pageSize)) }
        try await follower.turn { [self, fresh] in
            roster = fresh
            for change in receivedMeanwhile ?? [] { roster.apply(change) }
            try await refreshUsers()
            isAnswered = true
            // Together with the rows that it describes.
            freshness.answered(request, isWatched: signals.isWatched(channel))
            show()
        }
    }

    /// How many times in a row a list starts over because watchers have stopped between its pages.
    private static let restartsMax = 3

    /// Requests pages until they have a number of watchers, or all that there are. They are as large as the server allows: fewer watchers stop between
    /// fewer pages.
    private func firstPages(_ count: Int) async throws -> WatcherRoster {
        var (fresh, restarts, isComplete) = (WatcherRoster(), 0, false)
        while !isComplete {
            let page = try await page(of: count - fresh.users.count, after: fresh)
            if !fresh.isContinued(by: page), restarts < Self.restartsMax {
                restarts += 1
                fresh = WatcherRoster()
                // Pages that are requested from now on include these changes.
                receivedMeanwhile = []
                continue
            }
            let before = fresh.users.count
            fresh.add(page)
            // A page without new users would be returned again, and further ones would be refused.
            let isLast = fresh.users.count == before || fresh.users.count > Limits.watcherOffset
            isComplete = isLast || !fresh.hasMore || fresh.users.count >= count
        }
        return fresh
    }

    /// Requests a number of watchers after some rows. The page begins with the last of these, which shows whether that one still has its place.
    private func page(of count: Int, after known: WatcherRoster) async throws -> WatcherPage {
        let overlap = min(known.users.count, 1)
        let limit = min(count + overlap, Limits.watcherPage.max)
        return try await page(behind: known.users.count - overlap, limit: limit)
    }

    private func page(behind offset: Int, limit: Int) async throws -> WatcherPage {
        try await chat.call(ListWatchers(channel: channel, limit: limit, offset: offset))
    }

    /// Clears the list when the user has logged out: the server isn't asked again.
    private func forget() {
        roster = WatcherRoster()
        freshness.forget()
        isAnswered = true
        show()
    }

    private func take(_ change: WatcherChange) async {
        guard !follower.hasEnded else { return }
        receivedMeanwhile?.append(change)
        await work { list in
            list.roster.apply(change)
            try await list.refreshUsers(Set(change.started))
        }
        // The change doesn't name everyone, or too few of the latest watchers are left. This applies to other watchers too, so the requests are spread.
        if !change.isWhole || roster.lacksLatest(pageSize) { askWithinSeconds() }
    }

    private func askSoon() {
        answer.markOutdated()
        follower.soon { [weak self] in await self?.askIfOutdated() }
    }

    /// Asks because of a change that was sent to all watchers at the same moment.
    private func askWithinSeconds() {
        answer.markOutdated()
        follower.withinSeconds { [weak self] in await self?.askIfOutdated() }
    }

    /// Another request may have been made meanwhile.
    private func askIfOutdated() async { if answer.isOutdated { await ask() } }

    /// Reads the watchers' summaries: those of all, or of some users.
    private func refreshUsers(_ users: Set<UserID>? = nil) async throws {
        let shown = roster.shown
        let ids = users.map { shown.intersection($0) } ?? shown
        guard !ids.isEmpty else { return }
        let stored = try await chat.driver.files().store.read { database in try ids.map { try database.summary(of: $0) } }
        roster.refreshUsers(stored)
    }

    private func show() {
        guard isAnswered else { return }
        let sorted = roster.sorted
        follower.shows(sorted)
        let latest = Array(roster.latest.reversed())
        if roster.hasMore { follower.shows(latest) }
        if lastActiveWatchers != latest { lastActiveWatchers = latest }
        if watcherCount != roster.count { watcherCount = roster.count }
        guard !follower.hasAnswer || sorted != items else { return follower.answered() }
        let before = items
        items = sorted
        follower.answered()
        observers.notify(sorted, after: before)
    }
}

/// The rows of a list of watchers, from pages and signals.
struct WatcherRoster {
    /// The watchers loaded so far, in the server's order.
    private(set) var users: [UserID] = []
    private var known: Set<UserID> = []
    /// The last watchers in that order, without a gap, while there are more than ``users``.
    private var last: [UserID] = []
    private(set) var summaries: [UserID: UserSummary] = [:]
    /// The number of all watchers, shown or not.
    private(set) var count = 0

    var hasMore: Bool { users.count < count }
    var sorted: [UserSummary] { users.map(summary) }
    /// The most recent watchers, in the server's order.
    var latest: [UserSummary] { (hasMore ? last : users).map(summary) }
    /// All users whose names are shown.
    var shown: Set<UserID> { known.union(last) }

    private func summary(of user: UserID) -> UserSummary { summaries[user] ?? UserSummary(userId: user) }

    /// The offset of the page with the most recent watchers; nil if they are loaded already or can't be requested.
    func offsetOfLatest(_ pageSize: Int) -> Int? {
        let offset = max(0, count - pageSize)
        return hasMore && offset <= Limits.watcherOffset ? offset : nil
    }

    /// Whether so many have stopped that less than a page of the most recent watchers is left, though it could be requested.
    func lacksLatest(_ pageSize: Int) -> Bool { last.count < min(pageSize, count) && offsetOfLatest(pageSize) != nil }

    /// Takes the page with the most recent watchers.
    mutating func addLatest(_ page: WatcherPage) {
        last = page.watchers.map(\.userId)
        for user in page.watchers { summaries[user.userId] = user }
    }

    /// Whether a page that was requested from the last row on begins with it. Otherwise the watchers have other places by now: if some of those
    /// before it have stopped, others have moved up and may be on no page.
    func isContinued(by page: WatcherPage) -> Bool { users.isEmpty || page.watchers.first?.userId == users.last }

    /// Appends a page. Users who have a row already, like the last one, with whom the page begins, keep it.
    mutating func add(_ page: WatcherPage) {
        let last = users.last
        let isAfterAll = page.watchers.allSatisfy { $0.userId == last }
        for user in page.watchers {
            append(user.userId)
            summaries[user.userId] = user
        }
        count = isAfterAll ? users.count : max(page.watcherCount, users.count)
    }

    /// Applies a change of who watches.
    mutating func apply(_ change: WatcherChange) {
        let wasWhole = !hasMore
        users.removeAll { change.stopped.contains($0) }
        known.subtract(change.stopped)
        // New watchers come last: they are shown if the list reaches that far.
        if wasWhole { for user in change.started { append(user) } }
        last.removeAll { change.stopped.contains($0) }
        last += change.started.filter { !last.contains($0) }
        last.removeFirst(max(0, last.count - Limits.watcherPage.max))
        count = max(change.watcherCount, users.count)
        // Users who are no longer among the most recent are named again by a page. In a busy channel their number is unlimited.
        let shown = shown
        if summaries.count > 2 * max(shown.count, Limits.watcherPage.max) {
            summaries = summaries.filter { shown.contains($0.key) }
        }
    }

    private mutating func append(_ user: UserID) { if known.insert(user).inserted { users.append(user) } }

    /// Takes this device's own summaries of users where they are newer.
    mutating func refreshUsers(_ known: [UserSummary]) {
        for user in known where user.version > summaries[user.userId]?.version ?? 0 { summaries[user.userId] = user }
    }
}

extension LiveChannel {
    /// The connected users who watch the channel, as a live list. Each call creates a new one; keep it while it is shown.
    ///
    /// - Parameter pageSize: 1 to `Limits.watcherPage.max`.
    public func watchers(pageSize: Int = 30) -> WatcherList { WatcherList(of: id, pageSize: pageSize, in: chat) }
}
