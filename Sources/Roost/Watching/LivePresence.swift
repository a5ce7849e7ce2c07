public import Observation
import RoostAPI

/// How many of a channel's members are online, as a live object (SB-63, D-38).
///
/// It watches the channel as long as it is kept, again after each reconnect and when the user comes back to the channel or may read it again, because the server tells only
/// watchers who comes and goes. ``LiveChannel/unwatch()`` doesn't end that. A list of members shows who they are (``MemberList``, ``MemberItem/isOnline``). Members who don't share it always appear offline to others.
@MainActor @Observable
public final class LivePresence {
    /// The number of members who are online, including the user. 0 until it is loaded.
    public private(set) var onlineCount = 0
    /// When ``onlineCount`` was right, by this device's clock. Nil while it is right at this moment, because the channel is watched, and before it is loaded.
    ///
    /// After the watch or the connection has ended, it is the last moment that is known.
    public private(set) var asOf: Timestamp?
    /// How far it has come.
    public var phase: LivePhase { follower.phase }

    /// Returns once the server has answered. Before the first connection, this waits for one.
    ///
    /// - Throws: `RoostError` with `not_connected` when no connection can be made; else that of ``phase``; `CancellationError`.
    public func loaded() async throws { try await follower.loaded() }

    @ObservationIgnored private let channel: ChannelID
    @ObservationIgnored private let chat: Chat
    @ObservationIgnored private let answer: ChannelAnswer
    @ObservationIgnored private let follower: Follower
    @ObservationIgnored private let observers = Observers<Int>()
    @ObservationIgnored private var following: ObservationToken?
    @ObservationIgnored private let hold: WatchHold
    /// Counts the signals: an answer that was made before one is out of date.
    @ObservationIgnored private var signalCount = 0
    /// Whether the server is asked at this moment.
    @ObservationIgnored private var isAsking = false

    init(of channel: ChannelID, in chat: Chat) {
        self.channel = channel
        self.chat = chat
        follower = Follower(chat.driver)
        answer = ChannelAnswer(of: channel, chat.driver)
        hold = WatchHold(chat.driver)
        follower.follow(
            .channel(channel), connected: { [weak self] in await self?.refresh() }, away: { true },
            ended: { [weak self] in self?.forget() },
            changed: { [weak self] _ in
                // The watch has ended with the membership, or with the right to read.
                if await self?.answer.hasBegunAfresh() == true { self?.askSoon() }
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
            // It has the whole number, whatever was missed before.
            if asOf != nil, chat.driver.signals.isWatched(channel) { asOf = nil }
        // What happened before the app's own watch wasn't told. The answer to this object's question says it itself.
        case .watching: if asOf != nil, !isAsking { askSoon() }
        case .stoppedWatching, .disconnected: stopFollowing(at: notice.time)
        case .unwatched, .missed:
            stopFollowing(at: notice.time)
            // The server says why it ended the watch when it is asked once more.
            askSoon()
        case .wrote, .left: break
        }
    }

    /// Nobody tells any more who comes and goes: what is shown was right until then.
    private func stopFollowing(at time: Timestamp) { if follower.hasAnswer, asOf == nil { asOf = time } }

    /// The user has logged out: nobody is asked any more.
    private func forget() {
        asOf = nil
        show(0)
    }

    /// The count from now on, the current one first.
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
            // It is followed from this answer on, unless the watch has ended since.
            asOf = chat.driver.signals.isWatched(channel) ? nil : time
            show(signalCount == before ? state.online : onlineCount)
        }
    }

    private func askSoon() {
        answer.outdate()
        follower.soon { [weak self] in
            // A new connection may have asked meanwhile.
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
    /// How many of the members are online, as a live object, which watches the channel. Each call makes a new one; keep it while it is shown.
    public func presence() -> LivePresence { LivePresence(of: id, in: chat) }
}

/// Watches a channel as long as it is kept.
private final class WatchHold: Sendable {
    private let driver: SyncDriver
    private let number = Int64.random(in: 1...Int64.max)

    init(_ driver: SyncDriver) { self.driver = driver }

    deinit {
        Task { [driver, number] in await driver.submit(.release(number)) }
    }

    func watch(_ channel: ChannelID) async throws -> WatchedChannel {
        try await driver.hold(channel, by: number).decoded()
    }
}
