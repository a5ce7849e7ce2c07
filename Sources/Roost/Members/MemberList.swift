public import Observation
public import RoostAPI

/// Members of a channel as a live collection (AM-39, MN-14).
///
/// The pages are fetched from the server, again after each reconnect, and when the user leaves the channel or comes back to it. Without a connection
/// the list starts with the members that this device knows, in the phase `unavailable`: these may be some of them or none. In a channel that the user
/// is a member of, events update members who join, leave or get another role; searches and lists of muted and banned members are requested again a
/// moment later. Online states are updated while the user watches the channel (``LiveChannel/watch(limit:watchersLimit:)``).
@MainActor @Observable
public final class MemberList {
    /// The request to the server.
    enum Request: Hashable, Sendable {
        case list(ListMembers)
        case search(SearchMembers)
    }

    /// The members in the list's order, as many pages as have been loaded.
    public private(set) var items: [MemberItem] = []
    /// When the rows' ``MemberItem/isOnline`` was last right, by this device's clock. Nil while it is kept up to date, because the channel is watched
    /// (``LiveChannel/watch(limit:watchersLimit:)``), and before the first page.
    ///
    /// If the channel isn't watched, it is the time of the oldest page; after a watch or a connection has ended, it is the last known moment.
    public var presenceAsOf: Timestamp? { presence.asOf }
    private var presence = Freshness()
    /// Whether ``loadMore()`` would add members.
    public private(set) var hasMore = false
    /// The phase of the list: before it is loaded, an empty list means nothing; `refused` if the server, or a limit, refuses it.
    public var phase: LivePhase { follower.phase }

    /// Returns once the server has answered. Before the first connection, this waits for one.
    ///
    /// - Throws: `RoostError` with `not_connected` if no connection can be made; otherwise that of ``phase``; `CancellationError`.
    public func loaded() async throws { try await follower.loaded() }

    @ObservationIgnored private let chat: Chat
    @ObservationIgnored private let request: Request
    @ObservationIgnored private let pageSize: Int
    @ObservationIgnored private var roster: MemberRoster
    /// The members' names and pictures, as stored.
    @ObservationIgnored private var users: [UserID: UserSummary] = [:]
    /// Whether there is something to show: the server's answer, or the members known before it.
    @ObservationIgnored private var isShown = false
    /// Whether the roster has a page from the server.
    @ObservationIgnored private var isAnswered = false
    /// The seq of the channel after which members' rows in the store are new to the list.
    @ObservationIgnored private var seen: Seq?
    @ObservationIgnored private let answer: ChannelAnswer
    /// Changes of presence while pages, which may be older, are on their way; nil while none are.
    @ObservationIgnored private var receivedMeanwhile: [PresenceChange]?
    @ObservationIgnored private let follower: Follower
    @ObservationIgnored private let observers = ListObservers<MemberItem>()
    @ObservationIgnored private var following: ObservationToken?

    init(_ request: Request, pageSize: Int, in chat: Chat) {
        self.chat = chat
        follower = Follower(chat.driver)
        self.request = request
        self.pageSize = min(max(1, pageSize), Limits.memberPage.max)
        switch request {
        case .list(let list): roster = MemberRoster(sort: list.sort ?? .firstCreated, order: list.order, roles: list.roles)
        case .search(let search): roster = MemberRoster(sort: .lastCreated, roles: search.roles)
        }
        answer = ChannelAnswer(of: Self.channel(of: request), chat.driver)
        follower.follow(
            .channel(channel), connected: { [weak self] in await self?.work(asksServer: true) { try await $0.refresh() } },
            away: { [weak self] in
                await self?.showKnown()
                return true
            },
            ended: { [weak self] in self?.forget() },
            changed: { [weak self] change in
                // Rows here don't show who joined and left before the user was back.
                if await self?.answer.hasChannelRestarted() == true { self?.askSoon() }
                if !change.members.isEmpty { await self?.work(isQuery: false) { try await $0.follow() } }
                if self?.roster.users.isDisjoint(with: change.users) == false {
                    await self?.work(isQuery: false) { try await $0.refreshUsers(anew: change.users) }
                }
            })
        following = chat.driver.signals.follow(channel, .presenceChanged) { [weak self] in self?.take($0) }
    }

    private func take(_ notice: SignalFeed.Notice) {
        switch notice.news {
        case .signal(let signal): if let change = signal.presence { take(change) }
        // Changes between the pages and the watch weren't sent.
        case .watching: askSoon()
        case .unwatched, .stoppedWatching, .disconnected: presence.interrupt(at: notice.time)
        case .missed:
            presence.interrupt(at: notice.time)
            askSoon()
        case .wrote, .left: break
        }
    }

    private func take(_ change: PresenceChange) {
        receivedMeanwhile?.append(change)
        if isAnswered, roster.apply(change, at: chat.driver.environment.now()) { show() }
        // Some changes of presence weren't sent by name, to any client. A page on its way may be older.
        if !change.isWhole, isAnswered || receivedMeanwhile != nil { askWithinSeconds() }
    }

    /// The list after each change, with the difference from the one before; the first update inserts everything (AM-30).
    public var updates: ListUpdates<MemberItem> { observers.updates(of: self, startingWith: isShown ? items : nil) }

    /// Calls back with the list and its difference after each change, until the token is invalidated or released (AM-29). The difference is empty if
    /// the list becomes loaded with the rows that it started with.
    public func observe(_ callback: @escaping @MainActor (ListUpdate<MemberItem>) -> Void) -> ObservationToken {
        observers.add(startingWith: isShown ? items : nil, callback)
    }

    /// Adds a page of members. Does nothing if there are no more.
    ///
    /// - Throws: `RoostError` with `not_connected` while offline, and the errors of ``Chat/call(_:isolation:)``.
    public func loadMore() async throws {
        guard hasMore else { return }
        try await follower.take(asksServer: true) {
            guard let cursor = self.roster.nextCursor else { return }
            self.receivedMeanwhile = []
            defer { self.receivedMeanwhile = nil }
            let page = try await self.page(after: cursor)
            try await self.follower.turn {
                self.roster.add(page, isFirst: false)
                self.applyReceivedMeanwhile(to: &self.roster)
                try await self.refreshUsers()
            }
        }
        show()
    }

    private var channel: ChannelID { Self.channel(of: request) }

    private static func channel(of request: Request) -> ChannelID {
        switch request {
        case .list(let list): list.channel
        case .search(let search): search.channel
        }
    }

    /// Whether rows from events decide who is in the list.
    private var followsEvents: Bool {
        if case .list(let list) = request { return list.states ?? [.member] == [.member] }
        return false
    }

    private func work(
        isQuery: Bool = true, asksServer: Bool = false, _ step: @escaping @MainActor (MemberList) async throws -> Void
    ) async {
        await follower.work(isQuery: isQuery, asksServer: asksServer) { try await step(self) }
        show()
    }

    /// Requests as many members as are shown.
    private func refresh() async throws {
        try await answer.ask()
        let channel = channel
        let seen = try await chat.driver.files().store.read { try $0.cursor(of: channel) }
        let count = isAnswered ? max(pageSize, roster.count) : pageSize
        let signals = chat.driver.signals
        let request = presence.ask(at: chat.driver.environment.now(), isWatched: signals.isWatched(channel))
        receivedMeanwhile = []
        defer { receivedMeanwhile = nil }
        // Rows that events deliver meanwhile are read again below.
        var pages = roster
        pages.forgetUpdates()
        pages.add(try await page(after: nil), isFirst: true)
        var pageCount = 1
        while let cursor = pages.nextCursor, pages.count < count, pageCount < PageCount.max(forRows: count, of: pageSize) {
            pages.add(try await page(after: cursor), isFirst: false)
            pageCount += 1
        }
        try await follower.turn { [self, pages] in
            var fresh = pages
            applyReceivedMeanwhile(to: &fresh)
            (roster, self.seen) = (fresh, seen)
            try await refreshUsers(anew: roster.users)
            // Until there is an answer, the roster doesn't take changes of presence itself: more may have arrived during the read.
            if !isAnswered { applyReceivedMeanwhile(to: &roster) }
            isAnswered = true
            // Other changes meanwhile are reported after this, and requested then.
            if followsEvents, seen != nil { try await follow() }
            // Together with the rows that it is about.
            presence.answered(request, isWatched: signals.isWatched(channel))
            show()
        }
    }

    /// The user has logged out: the server isn't asked any longer.
    private func forget() {
        roster.removeAll()
        (users, seen) = ([:], nil)
        presence.forget()
        isAnswered = true
        show()
    }

    private func applyReceivedMeanwhile(to roster: inout MemberRoster) {
        for change in receivedMeanwhile ?? [] { _ = roster.apply(change, at: chat.driver.environment.now()) }
    }

    /// Applies the rows that events have delivered since.
    private func follow() async throws {
        guard isAnswered else { return }
        guard followsEvents else { return askSoon() }
        // A channel that the user joined meanwhile is followed from here on.
        guard let seen else { return askSoon() }
        let channel = channel
        let members = try await chat.driver.files().store.read { try $0.members(of: channel, changedAfter: seen) }
        guard let last = members.last else { return }
        self.seen = max(seen, last.changeSeq)
        roster.apply(members)
        try await refreshUsers()
    }

    /// Reads the members' summaries. Known ones are reread only if they have changed. The users of a page were stored before it arrived here.
    private func refreshUsers(anew changed: Set<UserID> = []) async throws {
        let ids = roster.users
        // This list isn't notified about users who have left it. They may come back with another name.
        let known = users.filter { ids.contains($0.key) && !changed.contains($0.key) }
        let read = try await chat.driver.files().store.read { database in
            try ids.subtracting(known.keys).map { ($0, try database.summary(of: $0)) }
        }
        users = known.merging(read) { _, latest in latest }
    }

    private func page(after cursor: String?) async throws -> Page<MemberEntry> {
        switch request {
        case .list(var list):
            list.limit = pageSize
            list.cursor = cursor
            return try await chat.call(list)
        case .search(var search):
            search.limit = pageSize
            search.cursor = cursor
            return try await chat.call(search)
        }
    }

    /// Shows the members that this device knows, until the server can be asked.
    private func showKnown() async {
        guard !isAnswered, followsEvents else { return }
        let channel = channel
        guard let members = try? await chat.driver.files().store.read({ try $0.members(of: channel, changedAfter: -1) }),
            !isAnswered, !members.isEmpty
        else { return }
        roster.apply(members)
        guard (try? await refreshUsers()) != nil, !isAnswered else { return }
        show(roster.sorted, isAnswer: false)
    }

    private func show() {
        guard isAnswered else { return }
        if hasMore != (roster.nextCursor != nil) { hasMore = roster.nextCursor != nil }
        show(roster.sorted, isAnswer: true)
    }

    private func show(_ members: [MemberItem], isAnswer: Bool) {
        let sorted = members.map { item in
            var item = item
            if let user = users[item.id], user.version > item.user.version { item.user = user }
            return item
        }
        follower.shows(sorted.lazy.map(\.user))
        let (before, phaseBefore, isChanged) = (items, phase, !isShown || sorted != items)
        if isChanged { (isShown, items) = (true, sorted) }
        if isAnswer { follower.answered() }
        // The known members may have been all of them: observers are notified that the list is loaded then too.
        guard isChanged || phase != phaseBefore else { return }
        observers.notify(sorted, after: before)
    }

    private func askSoon() {
        answer.markOutdated()
        follower.soon { [weak self] in await self?.askIfOutdated() }
    }

    /// Asks the server again after a signal that all watchers of the channel received at the same moment.
    private func askWithinSeconds() {
        answer.markOutdated()
        follower.withinSeconds { [weak self] in await self?.askIfOutdated() }
    }

    private func askIfOutdated() async {
        // A new connection may have asked meanwhile.
        guard answer.isOutdated else { return }
        await work(asksServer: true) { try await $0.refresh() }
    }
}
