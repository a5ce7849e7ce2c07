public import Observation
import RoostAPI

/// How many of a channel's members are online, as a live object (SB-63, D-38).
///
/// It watches the channel while it is kept, because the server sends presence only to watchers. It watches again after each reconnect, and when the
/// user rejoins the channel or, as a member, may watch it again. ``LiveChannel/unwatch()`` doesn't end that. A list of members shows who is online (``MemberList``,
/// ``MemberItem/isOnline``). Members who don't share their presence always appear offline to others.
@MainActor @Observable
public final class LivePresence {
    /// The number of members who are online, including the user. 0 until it is loaded.
    public private(set) var onlineCount = 0
    /// When ``onlineCount`` was last known to be right, by this device's clock. Nil while the channel is watched, because the count is current, and
    /// before it is loaded.
    ///
    /// After the watch or the connection has ended, it is the last moment at which the count was current.
    public private(set) var asOf: Timestamp?
    /// The phase of the live object.
    public var phase: LivePhase { follower.phase }

    /// Returns once the server has answered. Before the first connection, this waits for one.
    ///
    /// - Throws: `RoostError` with `not_connected` if no connection can be made, otherwise the error of ``phase``; `CancellationError`.
    public func loaded() async throws { try await follower.loaded() }

    @ObservationIgnored private let channel: ChannelID
    @ObservationIgnored private let chat: Chat
    @ObservationIgnored private let answer: ChannelAnswer
    @ObservationIgnored private let follower: Follower
    @ObservationIgnored private let observers = Observers<Int>()
    @ObservationIgnored private var following: ObservationToken?
    @ObservationIgnored private let hold: WatchHold
    /// Counts the signals: if one arrives while the server is asked, the answer may be older.
    @ObservationIgnored private var signalCount = 0
    /// Whether a request to the server is in flight.
    @ObservationIgnored private var isAsking = false

    init(of channel: ChannelID, in chat: Chat) {
        self.channel = channel
        self.chat = chat
        follower = Follower(chat.driver)
        answer = ChannelAnswer(of: channel, chat.driver, needing: .channelWatch)
        hold = WatchHold(chat.driver)
        follower.follow(
            .channel(channel), connected: { [weak self] in await self?.refresh() }, away: { true },
            ended: { [weak self] in self?.forget() },
            changed: { [weak self] _ in
                // The watch has ended with the membership or with the right to watch.
                if await self?.answer.hasChannelRestarted() == true { self?.askSoon() }
            })
        following = chat.driver.signals.follow(channel, .presenceChanged) { [weak self] in self?.take($0) }
    }

    private func take(_ notice: SignalFeed.Notice) {
        guard !follower.hasEnded else { return }
        switch notice.news {
        case .signal(let signal):
            guard let change = signal.presence else { return }
            signalCount += 1
            show(change.onlineCount)
            // The signal has the absolute count, whatever was missed before.
            if asOf != nil, chat.driver.signals.isWatched(channel) { asOf = nil }
        // Changes before the app's own watch weren't sent. If this object is asking already, that answer includes them.
        case .watching: if asOf != nil, !isAsking { askSoon() }
        case .stoppedWatching, .disconnected: stopFollowing(at: notice.time)
        case .unwatched, .missed:
            stopFollowing(at: notice.time)
            // The server says why it ended the watch when it is asked again.
            askSoon()
        case .wrote, .left: break
        }
    }

    /// No more changes arrive: the count shown was right until then.
    private func stopFollowing(at time: Timestamp) { if follower.hasAnswer, asOf == nil { asOf = time } }

    /// Clears the count when the user has logged out: the server isn't asked again.
    private func forget() {
        asOf = nil
        show(0)
    }

    /// The count from now on, starting with the current one.
    public var updates: AsyncStream<Int> { observers.values(of: self, startingWith: follower.hasAnswer ? onlineCount : nil) }

    /// Calls back with the count, and again on every change, until the token is invalidated or released (AM-29).
    public func observe(_ callback: @escaping @MainActor (Int) -> Void) -> ObservationToken {
        observers.add(startingWith: follower.hasAnswer ? onlineCount : nil, callback)
    }

    private func refresh() async {
        await follower.work { [weak self] in
            guard let self else { return }
            try await answer.ask()
            let (before, time) = (signalCount, chat.driver.environment.now())
            isAsking = true
            defer { isAsking = false }
            let state = try await hold.watch(channel)
            guard !follower.hasEnded else { return }
            // The count is current from this answer on, unless the watch has ended since.
            asOf = chat.driver.signals.isWatched(channel) ? nil : time
            show(signalCount == before ? state.online : onlineCount)
        }
    }

    private func askSoon() {
        answer.markOutdated()
        follower.soon { [weak self] in
            // A reconnect may have asked meanwhile.
            if self?.answer.isOutdated == true { await self?.refresh() }
        }
    }

    private func show(_ count: Int) {
        guard !follower.hasAnswer || count != onlineCount else { return follower.answered() }
        onlineCount = count
        follower.answered()
        observers.notify(count)
    }
}

extension LiveChannel {
    /// The number of members who are online, as a live object that watches the channel. Each call creates a new one; keep it while it is shown.
    public func presence() -> LivePresence { LivePresence(of: id, in: chat) }
}
