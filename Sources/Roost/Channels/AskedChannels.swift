import RoostAPI

/// Channels that only the server can find, page by page: those of others, deleted ones, and those with certain members.
///
/// The pages are kept in memory, and requested again after each reconnect. In between, rows of channels that this device follows come from
/// its store. Lists by members, of whom the store knows only a part, are requested again when a member joins or leaves.
@MainActor
final class AskedChannels: ChannelSource {
    private let query: ChannelQuery
    private let pageSize: Int
    private let chat: Chat
    private let ask: @MainActor () -> Void
    private var views: [ChannelID: ChannelView] = [:]
    /// The users whom they name, as the store knows them.
    private var users: [UserID: UserSummary] = [:]
    private var nextCursor: String?
    private var isLoaded = false
    private var askedFor: [ChannelID: AskedState] = [:]

    /// The state of a channel outside the list when it last caused a request to the server. One that came into the list has none.
    private struct AskedState: Hashable {
        var isMember: Bool
        var isDeleted: Bool
    }

    /// - Parameter ask: Has ``connected()`` called in a moment, once for all that happens until then.
    init(_ query: ChannelQuery, pageSize: Int, chat: Chat, ask: @escaping @MainActor () -> Void) {
        self.query = query
        self.pageSize = min(pageSize, Limits.channelPage.max)
        self.chat = chat
        self.ask = ask
    }

    var items: [ChannelItem]? {
        guard isLoaded else { return nil }
        let now = chat.driver.environment.now()
        let placed = views.values.map { (place: query.place(of: $0), view: $0) }
        let sorted = placed.sorted { query.isReversed ? $1.place.isBefore($0.place) : $0.place.isBefore($1.place) }
        return sorted.map { ChannelItem($0.view, users, now: now) }
    }

    var hasMore: Bool { nextCursor != nil }
    var number: Int { 0 }
    var difference: ListUpdate<ChannelItem>? { nil }
    var isPartial: Bool { false }
    var shownUsers: [UserID: Int64] { users.mapValues(\.version) }
    var unreadCount: Int { Int(clamping: views.values.reduce(0) { $0 + Int64(query.place(of: $1).countedUnread) }) }

    func follow(_ change: StoreChange) async throws {
        // What changed before the first answer is part of it. Of a change of everything, only what it names counts: everything changes at
        // the beginning, and with another epoch, after which the server is asked.
        guard isLoaded else { return }
        let ids = change.channels
        let stored = try await chat.driver.files().store.read { database in
            try ids.compactMap { id in
                try database.channelView(id).map { (view: $0, isFollowed: try database.cursor(of: id) != nil) }
            }
        }
        let namesUsers = query.exactUsers != nil || query.includingUsers != nil
        var mustAskAgain = namesUsers && !change.members.union(change.memberships).isEmpty
        for (view, isFollowed) in stored {
            let id = view.channel.channelId
            guard views[id] != nil else {
                // Another one may belong here now: one that was joined, left or deleted. The server is asked only once, since a membership
                // also changes with every reading.
                let asked = AskedState(isMember: view.membership?.state == .member, isDeleted: view.channel.deletedAt != nil)
                if change.memberships.contains(id) || asked.isDeleted, askedFor[id] != asked {
                    askedFor[id] = asked
                    mustAskAgain = true
                }
                continue
            }
            if isFollowed || change.memberships.contains(id) { views[id] = holds(view) ? view : nil }
        }
        if mustAskAgain { ask() }
        try await introduce()
    }

    /// Reads the users whom the rows name. Those whom a page brought are stored before it is here.
    private func introduce() async throws {
        let ids = Set(views.values.flatMap { [$0.lastMessage?.sender, $0.invitation?.inviter].compactMap { $0 } })
        users = try await chat.driver.files().store.read { database in
            Dictionary(uniqueKeysWithValues: try ids.map { ($0, try database.summary(of: $0)) })
        }
    }

    /// Returns whether a row that matched the query still does, as far as this device knows.
    private func holds(_ view: ChannelView) -> Bool {
        if view.channel.deletedAt != nil, query.includeDeleted != true { return false }
        let isMember = view.membership?.state == .member
        return switch query.membership ?? .member {
        case .all: true
        case .member: isMember
        case .notMember: !isMember
        }
    }

    /// Asks for as many rows as are shown.
    func connected() async throws {
        (views, nextCursor) = try await rows(after: nil, atLeast: max(pageSize, views.count))
        for id in views.keys { askedFor[id] = nil }
        try await introduce()
        isLoaded = true
    }

    func complete() async throws {}

    /// The user has logged out: nobody is asked any more.
    func forget() { (views, users, nextCursor, isLoaded) = ([:], [:], nil, true) }

    func extend() async throws {
        guard let nextCursor else { return }
        let more = try await rows(after: nextCursor, atLeast: 1)
        views.merge(more.views) { _, new in new }
        for id in more.views.keys { askedFor[id] = nil }
        self.nextCursor = more.nextCursor
        try await introduce()
    }

    /// A page can be empty and not the last: then more are requested.
    private func rows(
        after start: String?, atLeast count: Int
    ) async throws -> (views: [ChannelID: ChannelView], nextCursor: String?) {
        var views: [ChannelID: ChannelView] = [:]
        var page = query
        page.limit = pageSize
        page.cursor = start
        for _ in 0..<PageCount.max(forRows: count, of: pageSize) {
            let answer = try await chat.call(page)
            for view in answer.items { views[view.channel.channelId] = view }
            page.cursor = answer.nextCursor
            if page.cursor == nil || views.count >= count { break }
        }
        return (views, page.cursor)
    }
}

/// The users of its pages are stored.
extension QueryChannels: CachedOperation {
    var cacheEffect: Sync.CacheEffect { .users }
}
