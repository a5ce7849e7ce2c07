public import Observation
public import RoostAPI

/// The other users who are typing in a channel, as a live object (SB-02).
///
/// The server notifies the channel's members; in a channel of more than `Limits.largeChannelMembers`, only its watchers. Users disappear from the list when
/// they have sent a message or left the channel, when nothing was heard of them for `Limits.typingSeconds`, and while there is no connection.
@MainActor @Observable
public final class LiveTyping {
    /// The other users who are typing, in the order they started, at most `Limits.typingUsers`.
    public private(set) var users: [UserSummary] = []
    /// Whether more people are typing than ``users`` has.
    public private(set) var hasMore = false
    /// The phase of the live object.
    public var phase: LivePhase { follower.phase }

    /// Returns once this device's store has answered, without waiting for a connection: while there is none, the list is empty.
    ///
    /// - Throws: The `RoostError` of ``phase``; `CancellationError`.
    public func loaded() async throws { try await follower.loaded() }

    /// The typing users, and whether there are more, as last sent by the server. Both are shown once the users' summaries are read.
    @ObservationIgnored private var ids: [UserID] = []
    @ObservationIgnored private var receivedHasMore = false
    @ObservationIgnored private let channel: ChannelID
    @ObservationIgnored private let chat: Chat
    @ObservationIgnored private let follower: Follower
    @ObservationIgnored private let observers = Observers<[UserSummary]>()
    @ObservationIgnored private var following: ObservationToken?
    @ObservationIgnored private var expiry: ObservationToken?

    init(_ channel: ChannelID, in chat: Chat) {
        self.channel = channel
        self.chat = chat
        follower = Follower(chat.driver)
        follower.follow(
            .own,
            reload: { [weak self] change in
                guard let self, change.isEverything || !change.users.isDisjoint(with: ids) else { return }
                try await refreshUsers()
            })
        following = chat.driver.signals.follow(channel, .typingChanged) { [weak self] in await self?.take($0.news) }
    }

    /// The typing users from now on, starting with the current ones. If only ``hasMore`` changes, they are repeated.
    public var updates: AsyncStream<[UserSummary]> { observers.values(of: self, startingWith: follower.hasAnswer ? users : nil) }

    /// Calls back with the typing users, and again on every change, including one of ``hasMore``, until the token is invalidated or released (AM-29).
    public func observe(_ callback: @escaping @MainActor ([UserSummary]) -> Void) -> ObservationToken {
        observers.add(startingWith: follower.hasAnswer ? users : nil, callback)
    }

    private func take(_ news: SignalFeed.News) async {
        switch news {
        case .signal(let signal):
            guard let typing = signal.typing else { return }
            await show(typing.users.filter { $0 != chat.driver.environment.user }, hasMore: typing.hasMore)
        case .wrote(let user, _): await end([user])
        case .left(let users, _): await end(users)
        // Some may have stopped since. Those who are still typing are reported again within seconds.
        case .disconnected, .missed: await show([], hasMore: false)
        case .watching, .unwatched, .stoppedWatching: break
        }
    }

    /// Removes users who have stopped, if they are shown.
    private func end(_ users: [UserID]) async {
        let others = ids.filter { !users.contains($0) }
        if others != ids { await show(others, hasMore: receivedHasMore) }
    }

    private func show(_ users: [UserID], hasMore: Bool) async {
        (ids, receivedHasMore) = (users, hasMore)
        expiry = nil
        if !users.isEmpty || hasMore {
            let clock = chat.driver.environment.clock
            expiry = ObservationToken(
                task: Task { [weak self] in
                    do { try await clock.sleep(for: .seconds(Limits.typingSeconds)) } catch { return }
                    // A later signal may have arrived while this waited for the main actor.
                    guard !Task.isCancelled else { return }
                    await self?.show([], hasMore: false)
                })
        }
        await follower.work { [weak self] in try await self?.refreshUsers() }
    }

    /// Reads the users' summaries from the store.
    private func refreshUsers() async throws {
        let ids = ids
        let stored = try await chat.driver.files().store.read { database in try ids.map { try database.summary(of: $0) } }
        // If the typing users have changed meanwhile, another call shows them.
        guard ids == self.ids else { return }
        follower.shows(stored)
        guard !follower.hasAnswer || stored != users || receivedHasMore != hasMore else { return follower.answered() }
        (users, hasMore) = (stored, receivedHasMore)
        follower.answered()
        observers.notify(stored)
    }
}

extension LiveChannel {
    /// The other users who are typing here, as a live object. Each call creates a new one; keep it while it is shown.
    public func typing() -> LiveTyping { LiveTyping(id, in: chat) }

    /// Notifies the others that the user is typing. Call it on each change of the text: the server is notified at most once a second. It is notified
    /// that the user has stopped when ``stopTyping()`` is called, a message is sent, nothing is typed for 7 seconds, or this object is released.
    ///
    /// Does nothing without a connection, or if the user may not send.
    public func startTyping() { typingReporter.types(in: self) }

    /// Notifies the others that the user has stopped typing, for example because they deleted their text or left the screen.
    public func stopTyping() { typingReporter.stops() }
}

/// Reports the user's typing in one channel.
@MainActor
final class TypingReporter {
    private var lastSentAt: Timestamp?
    private var pause: ObservationToken?
    /// Set while the others are notified that the user is typing. Its release reports the end, also when this object is released.
    private var reportedTyping: ObservationToken?

    /// The minimum time between two calls, in milliseconds.
    private static let interval: Int64 = 1000
    /// After this time without a keystroke, the user counts as having stopped (Stream's rule).
    private static let idleTime = Duration.seconds(7)

    fileprivate func types(in channel: LiveChannel) {
        let (driver, environment, id) = (channel.chat.driver, channel.chat.driver.environment, channel.id)
        let clock = environment.clock
        pause = ObservationToken(
            task: Task { [weak self] in
                do { try await clock.sleep(for: Self.idleTime) } catch { return }
                // A key may have been pressed while this waited for the main actor.
                guard !Task.isCancelled else { return }
                self?.stops()
            })
        let now = environment.now()
        if let lastSentAt, now >= lastSentAt, now.milliseconds - lastSentAt.milliseconds < Self.interval { return }
        lastSentAt = now
        Task { _ = try? await driver.call(StartTyping(channel: id)) }
        // On the main actor like the start: the calls keep their order.
        if reportedTyping == nil {
            reportedTyping = ObservationToken { Task { @MainActor in _ = try? await driver.call(StopTyping(channel: id)) } }
        }
    }

    /// Does nothing if no typing was reported.
    func stops() {
        (pause, lastSentAt, reportedTyping) = (nil, nil, nil)
    }
}
