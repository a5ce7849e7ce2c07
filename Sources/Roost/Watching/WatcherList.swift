public import Observation
public import RoostAPI

/// The connected users who watch a channel, members or not, as a live collection (ST-14).
///
/// The pages come from the server, again after each reconnect, and when the user leaves the channel or comes back to it. While the user watches the
/// channel too (``LiveChannel/watch(limit:watchersLimit:)``), the list follows who comes and goes; otherwise it stays as it was when it was loaded
/// (``asOf``). If the user loses the right to watch, the phase is `refused`, and the list shows nobody.
@MainActor @Observable
public final class WatcherList {
    /// The watchers, in the order in which they began, as many pages as were loaded.
    public private(set) var items: [UserSummary] = []
    /// Those who began to watch last, the last one first (ST-15): all of them where ``items`` has all, else as many as a page has, and those who have come since.
    /// What they do in the channel doesn't count. ``updates`` tell of ``items`` alone.
    ///
    /// The server has no page behind 10,000 watchers (`Limits.watcherOffset`): where there are more, those who come from now on are known.
    public private(set) var lastActiveWatchers: [UserSummary] = []
    /// The number of all users who watch the channel, as the server last told it.
    public private(set) var watcherCount = 0
    /// When the list was right, by this device's clock. Nil while it is right at this moment, because the user watches the channel too
    /// (``LiveChannel/watch(limit:watchersLimit:)``), before the first page, and if the list is refused and shows nobody.
    ///
    /// Where the user doesn't watch the channel, it is the time of the oldest page; after their watch or the connection has ended, it is the last moment that is known.
    public var asOf: Timestamp? { freshness.asOf }
    /// Whether ``loadMore()`` would add something.
    public var hasMore: Bool { roster.hasMore }
    /// How far the list has come: before it is loaded, empty means nothing.
    public var phase: LivePhase { follower.phase }

    /// Returns once the server has answered. Before the first connection, this waits for one.
    ///
    /// - Throws: `RoostError` with `not_connected` when no connection can be made; else that of ``phase``; `CancellationError`.
    public func loaded() async throws { try await follower.loaded() }

    @ObservationIgnored private let channel: ChannelID
    @ObservationIgnored private let chat: Chat
    @ObservationIgnored private let pageSize: Int
    private var roster = WatcherRoster()
    private var freshness = Freshness()
    @ObservationIgnored private let answer: ChannelAnswer
    @ObservationIgnored private let follower: Follower
    /// Who began and stopped while pages were on their way, which may be older; nil while none are.
    @ObservationIgnored private var toldMeanwhile: [WatcherChange]?
    /// Whether the server has answered.
    @ObservationIgnored private var isAnswered = false
    @ObservationIgnored private let observers = ListObservers<UserSummary>()
    @ObservationIgnored private var following: ObservationToken?

    init(of channel: ChannelID, pageSize: Int, in chat: Chat) {
        self.channel = channel
        self.chat = chat
        self.pageSize = min(max(1, pageSize), Limits.watcherPage.max)
        follower = Follower(chat.driver)
        answer = ChannelAnswer(of: channel, chat.driver)
        follower.follow(
            .channel(channel), connected: { [weak self] in await self?.ask() }, away: { true },
            ended: { [weak self] in self?.forget() },
            changed: { [weak self] change in
                // A watch that ends with the membership ends without a word of the server's. When it is asked, it says whether the user may see who watches.
                if await self?.answer.hasBegunAfresh() == true { self?.askSoon() }
                guard let self, change.isEverything || !change.users.isDisjoint(with: roster.shown) else { return }
                await work { try await $0.introduce(change.isEverything ? nil : change.users) }
            })
        following = chat.driver.signals.follow(channel, .watchingChanged) { [weak self] in await self?.take($0) }
    }

    private func take(_ notice: SignalFeed.Notice) async {
        switch notice.news {
        case .signal(let signal): if let change = signal.watching { await take(change) }
        // Who began and stopped between the pages and the user's own watch wasn't told.
        case .watching: askSoon()
        case .stoppedWatching, .disconnected: freshness.interrupt(at: notice.time)
        case .unwatched, .missed:
            freshness.interrupt(at: notice.time)
            // If the user may not see the watchers any more, the server says so.
            askSoon()
        case .wrote, .left: break
        }
    }

    /// The list after each change, with the difference from the one before; the first update inserts everything (AM-30).
    public var updates: ListUpdates<UserSummary> { observers.updates(of: self, startingWith: follower.hasAnswer ? items : nil) }

    /// Calls back with the list and its difference after each change, until the token is invalidated or released (AM-29).
    public func observe(_ callback: @escaping @MainActor (ListUpdate<UserSummary>) -> Void) -> ObservationToken {
        observers.add(startingWith: follower.hasAnswer ? items : nil, callback)
    }

    /// Adds a page of watchers. Does nothing when there are none.
    ///
    /// - Throws: `RoostError` with `not_connected` while offline, `limit_exceeded` beyond `Limits.watcherOffset`, and as ``Chat/call(_:isolation:)`` does.
    public func loadMore() async throws {
        guard hasMore else { return }
        try await follower.take(asksServer: true) {
            self.toldMeanwhile = []
            defer { self.toldMeanwhile = nil }
            let page = try await self.page(behind: self.roster.users.count)
            try await self.follower.turn {
                self.roster.add(page)
                for change in self.toldMeanwhile ?? [] { self.roster.apply(change) }
                try await self.introduce(Set(page.watchers.map(\.userId)))
            }
        }
        show()
    }

    /// Changes something of what is shown, on no question of the list's.
    private func work(_ step: @escaping @MainActor (WatcherList) async throws -> Void) async {
        await follower.work(isQuestion: false) { try await step(self) }
        show()
    }

    private func ask() async {
        // A limit says nothing of the right to see who watches.
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
        let signals = chat.driver.signals
        let question = freshness.ask(at: chat.driver.environment.now(), isWatched: signals.isWatched(channel))
        let count = max(pageSize, roster.users.count)
        var fresh = WatcherRoster()
        var before = 0
        toldMeanwhile = []
        defer { toldMeanwhile = nil }
        repeat {
            before = fresh.users.count
            fresh.add(try await page(behind: before))
            // The same page would come again after one that brought nobody new.
        } while fresh.hasMore && fresh.users.count < count && fresh.users.count > before
        if let offset = fresh.offsetOfLatest(pageSize) { fresh.addLatest(try await page(behind: offset)) }
        try await follower.turn { [self, fresh] in
            roster = fresh
            for change in toldMeanwhile ?? [] { roster.apply(change) }
            try await introduce()
            isAnswered = true
            // With the rows that it is about.
            freshness.answered(question, isWatched: signals.isWatched(channel))
            show()
        }
    }

    private func page(behind offset: Int) async throws -> WatcherPage {
        try await chat.call(ListWatchers(channel: channel, limit: pageSize, offset: offset))
    }

    /// The user has logged out: nobody is asked any more.
    private func forget() {
        roster = WatcherRoster()
        freshness.forget()
        isAnswered = true
        show()
    }

    private func take(_ change: WatcherChange) async {
        guard !follower.hasEnded else { return }
        toldMeanwhile?.append(change)
        await work { list in
            list.roster.apply(change)
            try await list.introduce(Set(change.started))
        }
        // Some of those who began or stopped weren't named, or too few are left of those who came last: for others who watch as well.
        if !change.isWhole || roster.lacksLatest(pageSize) { askWithinSeconds() }
    }

    private func askSoon() {
        answer.outdate()
        follower.soon { [weak self] in await self?.askIfOutdated() }
    }

    /// Asks because of what all who watch the channel were told at the same moment.
    private func askWithinSeconds() {
        answer.outdate()
        follower.withinSeconds { [weak self] in await self?.askIfOutdated() }
    }

    /// Another question may have been asked meanwhile.
    private func askIfOutdated() async { if answer.isOutdated { await ask() } }

    /// Reads who the watchers are: all of them, or those of some users.
    private func introduce(_ users: Set<UserID>? = nil) async throws {
        let shown = roster.shown
        let ids = users.map { shown.intersection($0) } ?? shown
        guard !ids.isEmpty else { return }
        let stored = try await chat.driver.files().store.read { database in try ids.map { try database.summary(of: $0) } }
        roster.introduce(stored)
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
    /// The watchers so far, in the order of the server.
    private(set) var users: [UserID] = []
    private var known: Set<UserID> = []
    /// The last watchers in that order, without a gap, while there are more than ``users``.
    private var last: [UserID] = []
    private(set) var summaries: [UserID: UserSummary] = [:]
    /// All of them, shown here or not.
    private(set) var count = 0

    var hasMore: Bool { users.count < count }
    var sorted: [UserSummary] { users.map(summary) }
    /// Those who began last, in the order of the server.
    var latest: [UserSummary] { (hasMore ? last : users).map(summary) }
    /// All whose names are shown.
    var shown: Set<UserID> { known.union(last) }

    private func summary(of user: UserID) -> UserSummary { summaries[user] ?? UserSummary(userId: user) }

    /// Where a page with those begins who came last; nil where they are here already, or can't be asked for.
    func offsetOfLatest(_ pageSize: Int) -> Int? {
        let offset = max(0, count - pageSize)
        return hasMore && offset <= Limits.watcherOffset ? offset : nil
    }

    /// Whether so many have stopped that a page of those who came last isn't known any more, though it could be asked for.
    func lacksLatest(_ pageSize: Int) -> Bool { last.count < min(pageSize, count) && offsetOfLatest(pageSize) != nil }

    /// Takes in the page with those who came last.
    mutating func addLatest(_ page: WatcherPage) {
        last = page.watchers.map(\.userId)
        for user in page.watchers { summaries[user.userId] = user }
    }

    /// Appends a page. Somebody who stopped meanwhile has made others move up: they may be on two pages, and have one row.
    mutating func add(_ page: WatcherPage) {
        for user in page.watchers {
            append(user.userId)
            summaries[user.userId] = user
        }
        count = page.watchers.isEmpty ? users.count : max(page.watcherCount, users.count)
    }

    /// Takes in who began and who stopped since.
    mutating func apply(_ change: WatcherChange) {
        let wasWhole = !hasMore
        users.removeAll { change.stopped.contains($0) }
        known.subtract(change.stopped)
        // Newcomers come last: they are shown where the list reaches them.
        if wasWhole { for user in change.started { append(user) } }
        last.removeAll { change.stopped.contains($0) }
        last += change.started.filter { !last.contains($0) }
        last.removeFirst(max(0, last.count - Limits.watcherPage.max))
        count = max(change.watcherCount, users.count)
        // Whoever was the last for a while and isn't any more is named again with a page: in a busy channel they are any number.
        let shown = shown
        if summaries.count > 2 * max(shown.count, Limits.watcherPage.max) {
            summaries = summaries.filter { shown.contains($0.key) }
        }
    }

    private mutating func append(_ user: UserID) { if known.insert(user).inserted { users.append(user) } }

    /// Takes what this device knows of users, where it is newer.
    mutating func introduce(_ known: [UserSummary]) {
        for user in known where user.version > summaries[user.userId]?.version ?? 0 { summaries[user.userId] = user }
    }
}

extension LiveChannel {
    /// The connected users who watch the channel, as a live list. Each call makes a new one; keep it while it is shown.
    ///
    /// - Parameter pageSize: 1 to `Limits.watcherPage.max`.
    public func watchers(pageSize: Int = 30) -> WatcherList { WatcherList(of: id, pageSize: pageSize, in: chat) }
}
