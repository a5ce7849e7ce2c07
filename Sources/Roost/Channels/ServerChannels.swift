import RoostAPI

/// Channels that only the server can find, page by page: channels that the user isn't a member of, deleted ones, and those with certain members.
///
/// The pages are kept in memory, and requested again after each reconnect. Channels that this device follows are taken from its store: their rows,
/// whether they match, and new matches. The pages are requested again for changes that the store can't answer: when a member, or the user, joins or
/// leaves, if the query names members, and when a channel begins to match that the store doesn't know enough about.
@MainActor
final class ServerChannels: ChannelSource {
    private let query: ChannelQuery
    private let pageSize: Int
    private let chat: Chat
    private let turn: @MainActor (@escaping @MainActor () async throws -> Void) async throws -> Void
    private let ask: @MainActor () -> Void
    let asksServer = true
    private(set) var items: [ChannelItem]?
    private var views: [ChannelID: ChannelView] = [:]
    /// The users whom the rows show, as the store knows them.
    private var users: [UserID: UserSummary] = [:]
    private var nextCursor: String?
    private var isLoaded = false
    /// The stored channels that matched when the server was last asked, each with whether the user was a member. For a channel that begins to match,
    /// or whose membership changed, the server is asked once.
    private var matching: [ChannelID: Bool] = [:]
    /// What has changed since all pages were requested; nil when no request is running.
    private var changedMeanwhile: StoreChange?
    /// Whether a change couldn't be processed, and the server hasn't been asked since.
    private var hasMissedChange = false

    /// A channel as stored.
    private struct StoredChannel: Sendable {
        let view: ChannelView
        /// Nil if it doesn't match.
        let match: StoredMatch?
        let isFollowed: Bool

        var id: ChannelID { view.channel.channelId }
    }

    /// - Parameters:
    ///   - turn: Runs the processing of an answer in its turn among the calls that don't ask the server.
    ///   - ask: Schedules a call of ``connected()`` in a moment, one for everything that happens until then.
    init(
        _ query: ChannelQuery, pageSize: Int, chat: Chat,
        turn: @escaping @MainActor (@escaping @MainActor () async throws -> Void) async throws -> Void,
        ask: @escaping @MainActor () -> Void
    ) {
        self.query = query
        self.turn = turn
        self.pageSize = min(pageSize, Limits.channelPage.max)
        self.chat = chat
        self.ask = ask
    }

    var hasMore: Bool { nextCursor != nil }
    var number: Int { 0 }
    var difference: ListUpdate<ChannelItem>? { nil }
    var isPartial: Bool { false }
    var nextEnd: Timestamp? {
        let now = chat.driver.environment.now()
        return views.values.compactMap { $0.channel.nextEnd(after: now) }.min()
    }
    var shownUsers: [UserID: Int64] { users.mapValues(\.version) }
    private var namesUsers: Bool { query.exactUsers != nil || query.includingUsers != nil }
    var unreadCount: Int { Int(clamping: views.values.reduce(0) { $0 + Int64(query.place(of: $1).countedUnread) }) }

    func follow(_ change: StoreChange) async throws {
        changedMeanwhile?.merge(change)
        // Changes before the first answer are part of it. If the change is of everything, only the ids that it names count: everything changes at the
        // beginning, and with another epoch, after which the server is asked.
        guard isLoaded else { return }
        do {
            try await show(change)
        } catch {
            // Only asking for everything finds what the change was about. If it was cancelled, the app has asked for something else.
            hasMissedChange = true
            if !(error is CancellationError) { ask() }
            throw error
        }
        if hasMissedChange { ask() }
    }

    private func show(_ change: StoreChange) async throws {
        // The user's own membership changes with each message that they read. The store can tell whether it makes a filter match.
        var mustAskAgain = namesUsers && !(change.members.isEmpty && change.renewed.isEmpty)
        var isConcerned = change.isEverything || change.users.contains { users[$0] != nil }
        for channel in try await stored(change.channels) where channel.isFollowed || change.memberships.contains(channel.id) {
            let before = views[channel.id]
            if show(channel) { mustAskAgain = true }
            if views[channel.id] != before { isConcerned = true }
        }
        if mustAskAgain { ask() }
        // Most changes are of channels that aren't listed, and of users who aren't shown.
        if isConcerned { try await refreshUsers() }
    }

    /// Shows a channel as stored, or removes it. Returns whether the server must be asked, because only it can tell whether the channel belongs here.
    private func show(_ channel: StoredChannel) -> Bool {
        let id = channel.id
        guard let match = channel.match else {
            (views[id], matching[id]) = (nil, nil)
            return false
        }
        // The user can find all of their own channels. A filter by members, or a channel that the user has left, is up to the server.
        let isCertain = match.isMember && !namesUsers && isInPages(channel.view)
        let isListed = views[id] != nil
        if isListed || isCertain { views[id] = channel.view }
        if match.isMember, isListed || isCertain {
            matching[id] = true
            return false
        }
        // The server's answer wouldn't include pending operations: it is asked once it has them, which is another change.
        guard matching[id] != match.isMember, !match.hasOverlay else { return false }
        matching[id] = match.isMember
        return true
    }

    /// Whether a channel's place is before the last row. Beyond it, only the server knows where the next page starts.
    private func isInPages(_ view: ChannelView) -> Bool {
        guard nextCursor != nil else { return true }
        let place = query.place(of: view)
        return views.values.contains { isPlace(place, before: query.place(of: $0)) }
    }

    private func isPlace(_ place: ChannelPlace, before other: ChannelPlace) -> Bool {
        query.isReversed ? other.isBefore(place) : place.isBefore(other)
    }

    /// Reads channels from the store. Those that aren't stored are left out.
    private func stored(_ ids: Set<ChannelID>) async throws -> [StoredChannel] {
        let (query, now) = (query, chat.driver.environment.now())
        return try await chat.driver.files().store.read { database in
            try ids.compactMap { id in
                try database.channelView(id, now: now).map { view in
                    StoredChannel(
                        view: view, match: try query.storedMatches(in: database, only: id).first,
                        isFollowed: try database.isOwnChannelFollowed(id))
                }
            }
        }
    }

    /// Reads the users whom the rows show, and makes the rows. Users of a page are stored before the page arrives here.
    private func refreshUsers() async throws {
        let ids = Set(views.values.flatMap { [$0.lastMessage?.sender, $0.invitation?.inviter].compactMap { $0 } })
        users = try await chat.driver.files().store.read { database in
            Dictionary(uniqueKeysWithValues: try ids.map { ($0, try database.summary(of: $0)) })
        }
        makeRows()
    }

    private func makeRows() {
        let now = chat.driver.environment.now()
        let placed = views.values.map { (place: query.place(of: $0), view: $0) }
        let sorted = placed.sorted { isPlace($0.place, before: $1.place) }
        items = sorted.map { ChannelItem($0.view, users, now: now) }
    }

    /// Requests as many rows as are shown.
    func connected() async throws {
        let query = query
        // Read first, so a change while the server answers is noticed.
        let matches = try await chat.driver.files().store.read { try query.storedMatches(in: $0) }
        changedMeanwhile = StoreChange()
        defer { changedMeanwhile = nil }
        let (found, cursor) = try await pages(after: nil, atLeast: max(pageSize, views.count))
        try await turn { [self] in
            (views, nextCursor) = (try await asStored(found), cursor)
            matching = [:]
            for match in matches where !match.hasOverlay { matching[match.id] = match.isMember }
            try await refreshUsers()
            (isLoaded, hasMissedChange) = (true, false)
            guard let change = changedMeanwhile else { return }
            changedMeanwhile = nil
            try await follow(change)
        }
    }

    func complete() async throws {}
    func endStates() async throws { if isLoaded { makeRows() } }

    /// The user has logged out: the server isn't asked any longer.
    func forget() { (items, views, users, matching, nextCursor, isLoaded) = ([], [:], [:], [:], nil, true) }

    func extend() async throws {
        guard let nextCursor else { return }
        let (found, cursor) = try await pages(after: nextCursor, atLeast: 1)
        try await turn { [self] in
            let more = try await asStored(found)
            views.merge(more) { _, new in new }
            self.nextCursor = cursor
            try await refreshUsers()
        }
    }

    /// A page can be empty without being the last: then more are requested.
    private func pages(
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

    /// The channels of the pages as they are now: the store is ahead of the server by the user's pending operations, and by later events.
    private func asStored(_ found: [ChannelID: ChannelView]) async throws -> [ChannelID: ChannelView] {
        var views = found
        for channel in try await stored(Set(views.keys)) where channel.isFollowed {
            views[channel.id] = channel.match == nil ? nil : channel.view
        }
        return views
    }
}

/// The users of its pages are stored.
extension QueryChannels: UserNaming {
    static func users(in page: Page<ChannelView>) -> [UserSummary] { page.users ?? [] }
}
