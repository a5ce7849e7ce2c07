public import Observation
public import RoostAPI

/// The connected users who watch a channel, members or not, as a live collection (ST-14).
///
/// The pages come from the server, again after each reconnect. While the user watches the channel too (``LiveChannel/watch(limit:watchersLimit:)``), the list follows who
/// comes and goes; otherwise it stays as it was when it was loaded.
@MainActor @Observable
public final class WatcherList {
    /// The watchers, in the order in which they began, as many pages as were loaded.
    public private(set) var items: [UserSummary] = []
    /// The same watchers in the reverse order: those who began to watch last come first (ST-15). What they do in the channel doesn't count.
    public var lastActiveWatchers: [UserSummary] { items.reversed() }
    /// The number of all users who watch the channel, as the server last told it.
    public private(set) var watcherCount = 0
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
    @ObservationIgnored private let follower: Follower
    /// Whether the server has answered.
    @ObservationIgnored private var isAnswered = false
    @ObservationIgnored private let observers = ListObservers<UserSummary>()
    @ObservationIgnored private var following: ObservationToken?

    init(of channel: ChannelID, pageSize: Int, in chat: Chat) {
        self.channel = channel
        self.chat = chat
        self.pageSize = min(max(1, pageSize), Limits.watcherPage.max)
        follower = Follower(chat.driver)
        follower.follow(
            .own, connected: { [weak self] in await self?.work { try await $0.refresh() } }, away: { true },
            ended: { [weak self] in self?.forget() },
            changed: { [weak self] change in
                guard let self, change.isEverything || !change.users.isDisjoint(with: roster.users) else { return }
                await work(isQuestion: false) { try await $0.introduce() }
            })
        let news = chat.driver.signals.news(of: channel)
        following = ObservationToken(
            task: Task { [weak self] in
                for await news in news {
                    guard let self else { return }
                    if case .signal(let signal) = news, let change = signal.watching { await take(change) }
                }
            })
    }

    /// The list after each change, with the difference from the one before; the first update inserts everything (AM-30).
    public var updates: ListUpdates<UserSummary> { observers.updates(of: self, startingWith: follower.hasAnswer ? items : nil) }

    /// Calls back with the list and its difference after each change, until the token is invalidated or released (AM-29).
    public func observe(_ callback: @escaping @MainActor (ListUpdate<UserSummary>) -> Void) -> ObservationToken {
        observers.add(startingWith: follower.hasAnswer ? items : nil, callback)
    }

    /// Adds a page of watchers. Does nothing when there are none.
    ///
    /// - Throws: `RoostError` with `not_connected` while offline, `limit_exceeded` beyond `Limits.watcherOffset`, and as ``Chat/call(_:)`` does.
    public func loadMore() async throws {
        guard hasMore else { return }
        try await follower.take {
            self.roster.add(try await self.page(behind: self.roster.users.count))
            try await self.introduce()
        }
        show()
    }

    private func work(isQuestion: Bool = true, _ step: @escaping @MainActor (WatcherList) async throws -> Void) async {
        await follower.work(isQuestion: isQuestion) { try await step(self) }
        show()
    }

    /// Asks for as many watchers as are shown.
    private func refresh() async throws {
        let count = max(pageSize, roster.users.count)
        var fresh = WatcherRoster()
        var before = 0
        repeat {
            before = fresh.users.count
            fresh.add(try await page(behind: before))
            // The same page would come again after one that brought nobody new.
        } while fresh.hasMore && fresh.users.count < count && fresh.users.count > before
        roster = fresh
        try await introduce()
        isAnswered = true
    }

    private func page(behind offset: Int) async throws -> WatcherPage {
        try await chat.call(ListWatchers(channel: channel, limit: pageSize, offset: offset))
    }

    /// The user has logged out: nobody is asked any more.
    private func forget() {
        roster = WatcherRoster()
        isAnswered = true
        show()
    }

    private func take(_ change: WatcherChange) async {
        guard !follower.hasEnded else { return }
        await work(isQuestion: false) { list in
            list.roster.apply(change)
            try await list.introduce()
        }
        // Some of those who began or stopped weren't named.
        if !change.isWhole { follower.soon { [weak self] in await self?.work { try await $0.refresh() } } }
    }

    private func introduce() async throws {
        let ids = roster.users
        let stored = try await chat.driver.files().store.read { database in try ids.map { try database.summary(of: $0) } }
        roster.introduce(stored)
    }

    private func show() {
        guard isAnswered else { return }
        defer { follower.answered() }
        let sorted = roster.sorted
        follower.shows(sorted)
        if watcherCount != roster.count { watcherCount = roster.count }
        guard sorted != items else { return }
        let before = items
        items = sorted
        observers.notify(sorted, after: before)
    }
}

/// The rows of a list of watchers, from pages and signals.
struct WatcherRoster {
    /// The watchers so far, in the order of the server.
    private(set) var users: [UserID] = []
    private var known: Set<UserID> = []
    private var summaries: [UserID: UserSummary] = [:]
    /// All of them, shown here or not.
    private(set) var count = 0

    var hasMore: Bool { users.count < count }
    var sorted: [UserSummary] { users.map { summaries[$0] ?? UserSummary(userId: $0) } }

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
        count = max(change.watcherCount, users.count)
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
