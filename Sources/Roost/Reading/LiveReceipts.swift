public import Observation
public import RoostAPI

/// How far the members of a channel have read, as a live object (SB-02): for ticks beside a message, and for a list of its readers.
///
/// It is fetched from the server, again after each reconnect, when the user leaves the channel, comes back to it or may read it again, and when a
/// watch of it begins, and within a few seconds after a member has joined or left. In a channel of up to `Limits.receiptMembers` it then follows every
/// change; in a larger one, only while the channel is watched (``LiveChannel/watch(limit:watchersLimit:)``). Members who don't share their reading
/// aren't included. For a user who may not list the members, only their own position is fetched; others are added when they read, until it is fetched
/// again. The phase is `refused` with `feature_disabled` if the channel's policy has no `readEvents`, and in a channel of more than
/// `Limits.largeChannelMembers`.
@MainActor @Observable
public final class LiveReceipts {
    /// How far each member has read, including the user.
    public private(set) var positions: [UserID: ReadPosition] = [:]
    /// The phase of the live object: before it is loaded, an empty value means nothing.
    public var phase: LivePhase { follower.phase }

    /// Returns once the server has answered. Before the first connection, this waits for one.
    ///
    /// - Throws: `RoostError` with `not_connected` if no connection can be made; otherwise that of ``phase``; `CancellationError`.
    public func loaded() async throws { try await follower.loaded() }

    /// A member with a position, as this device knows them: only the id until their name arrives, and for any other user.
    ///
    ///     let names = receipts.readers(of: item).map { receipts.user($0).name }
    public func user(_ id: UserID) -> UserSummary { users[id] ?? UserSummary(userId: id) }

    /// The members with a position whose summaries have been read.
    private var users: [UserID: UserSummary] = [:]
    /// Updates received since the last request.
    @ObservationIgnored private var receivedMeanwhile: [UserID: ReadPosition] = [:]
    @ObservationIgnored private let channel: ChannelID
    @ObservationIgnored private let chat: Chat
    @ObservationIgnored private let answer: ChannelAnswer
    @ObservationIgnored private let follower: Follower
    @ObservationIgnored private let observers = Observers<[UserID: ReadPosition]>()
    @ObservationIgnored private var following: ObservationToken?

    init(of channel: ChannelID, in chat: Chat) {
        self.channel = channel
        self.chat = chat
        follower = Follower(chat.driver)
        answer = ChannelAnswer(of: channel, chat.driver)
        follower.follow(
            .channel(channel), connected: { [weak self] in await self?.refresh() }, away: { true },
            ended: { [weak self] in self?.forget() },
            changed: { [weak self] change in
                // Former members aren't shown, and new members count as having read up to the seq at which they joined. There are no updates about
                // the time before the user was back.
                if await self?.answer.hasChannelRestarted() == true {
                    self?.askSoon()
                } else if !change.isEverything, !change.members.isEmpty {
                    await self?.askAboutMembers()
                }
                self?.refreshUsers(after: change)
            })
        following = chat.driver.signals.follow(channel, .readUpdated) { [weak self] in self?.take($0) }
    }

    private func take(_ notice: SignalFeed.Notice) {
        switch notice.news {
        case .signal(let signal): if let update = signal.read { take(update) }
        // In a larger channel, reading before the watch wasn't reported.
        case .watching: askSoon()
        case .missed: if !isDisabled { askSoon() }
        case .wrote, .left, .unwatched, .stoppedWatching, .disconnected: break
        }
    }

    /// Whether the server doesn't list readers here. Signals about members who read still arrive.
    private var isDisabled: Bool {
        if case .refused(let error) = phase { error.code == .featureDisabled } else { false }
    }

    /// The positions from now on, starting with the current ones. If only a name changes (``user(_:)``), they are repeated.
    public var updates: AsyncStream<[UserID: ReadPosition]> {
        observers.values(of: self, startingWith: follower.hasAnswer ? positions : nil)
    }

    /// Calls back with the positions, and again on every change, including one of a name (``user(_:)``), until the token is invalidated or released
    /// (AM-29).
    public func observe(_ callback: @escaping @MainActor ([UserID: ReadPosition]) -> Void) -> ObservationToken {
        observers.add(startingWith: follower.hasAnswer ? positions : nil, callback)
    }

    private func refresh() async {
        await follower.work { [weak self] in
            guard let self else { return }
            try await answer.ask()
            receivedMeanwhile = [:]
            var fresh: [UserID: ReadPosition] = [:]
            var request = ListReaders(channel: channel, limit: Limits.memberPage.max)
            for _ in 0..<PageCount.max(forRows: Limits.largeChannelMembers, of: Limits.memberPage.max) {
                let page = try await chat.call(request)
                for position in page.items { fresh[position.userId] = position }
                request.cursor = page.nextCursor
                if request.cursor == nil { break }
            }
            // Signals that arrived meanwhile may be newer than the page. Earlier positions aren't kept: a member may have stopped sharing theirs.
            for (user, position) in receivedMeanwhile { fresh[user] = fresh[user]?.merged(with: position) }
            show(fresh)
        }
    }

    /// The user has logged out: the server isn't asked any longer.
    private func forget() {
        receivedMeanwhile = [:]
        show([:])
    }

    private func take(_ update: ReadUpdate) {
        guard !follower.hasEnded else { return }
        var changed = positions
        for position in update.readers {
            receivedMeanwhile[position.userId] = receivedMeanwhile[position.userId]?.merged(with: position) ?? position
            changed[position.userId] = changed[position.userId]?.merged(with: position) ?? position
        }
        if follower.hasAnswer || phase.error == nil { show(changed, isAnswer: false) }
        // Some members who have read further weren't sent by name, to any client.
        if !update.isWhole, !isDisabled { askWithinSeconds() }
    }

    private func show(_ changed: [UserID: ReadPosition], isAnswer: Bool = true) {
        let isNew = changed != positions || isAnswer && !follower.hasAnswer
        if isNew { positions = changed }
        if isAnswer { follower.answered() }
        if isNew, follower.hasAnswer { observers.notify(changed) }
        if users.contains(where: { changed[$0.key] == nil }) { users = users.filter { changed[$0.key] != nil } }
        readUsers(Set(changed.keys.filter { users[$0] == nil }))
    }

    private func refreshUsers(after change: StoreChange) {
        readUsers(change.isEverything ? Set(positions.keys) : change.users.intersection(positions.keys))
    }

    /// Reads the summaries of some members from the store: in a separate task, because positions are shown without waiting for names.
    private func readUsers(_ ids: Set<UserID>) {
        guard !ids.isEmpty else { return }
        Task { [weak self] in await self?.showUsers(ids) }
    }

    private func showUsers(_ ids: Set<UserID>) async {
        await follower.work(isQuery: false) { [weak self] in try await self?.reloadUsers(ids) }
    }

    private func reloadUsers(_ ids: Set<UserID>) async throws {
        guard !follower.hasEnded else { return }
        let stored = try await chat.driver.files().store.read { database in try ids.map { try database.summary(of: $0) } }
        // Some may no longer have a position.
        let shown = stored.filter { positions[$0.userId] != nil }
        follower.shows(shown)
        let areNew = shown.contains { $0 != user($0.userId) }
        for user in shown where users[user.userId] != user { users[user.userId] = user }
        if areNew, follower.hasAnswer { observers.notify(positions) }
    }

    private func askSoon() {
        answer.markOutdated()
        follower.soon { [weak self] in
            // A new connection may have asked meanwhile.
            if self?.answer.isOutdated == true { await self?.refresh() }
        }
    }

    /// Asks the server again after a signal or an event that all its recipients received at the same moment.
    private func askWithinSeconds() {
        answer.markOutdated()
        follower.withinSeconds { [weak self] in
            // It may have been refused meanwhile, perhaps for a size that the channel had before the event.
            if let self, answer.isOutdated, await mayListReaders() { await refresh() }
        }
    }

    /// Asks the server again after members have changed, unless it doesn't list readers here.
    private func askAboutMembers() async {
        if await mayListReaders() { askWithinSeconds() }
    }

    /// Whether the server lists readers here, as far as is known: it hasn't refused that, or only because of a size that the channel no longer has.
    private func mayListReaders() async -> Bool {
        guard case .refused(let error) = phase, error.code == .featureDisabled else { return true }
        // Only a refusal because of the channel's size has a limit.
        guard error.limit != nil else { return false }
        let channel = channel
        let count = try? await chat.driver.files().store.read { try $0.channel(channel)?.counters.memberCount }
        guard let count else { return false }
        return count <= Limits.largeChannelMembers
    }
}

extension ListReaders: UserNaming {
    static func users(in page: Page<ReadPosition>) -> [UserSummary] { page.users ?? [] }
}

extension LiveChannel {
    /// How far the members have read, as a live object. Each call makes a new one; keep it while it is shown.
    public func receipts() -> LiveReceipts { LiveReceipts(of: id, in: chat) }
}
