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

    init(of channel: ChannelID, in chat: Chat) {
        self.channel = channel
        self.chat = chat
        follower = Follower(chat.driver)
        answer = ChannelAnswer(of: channel, chat.driver)
        hold = WatchHold(chat.driver)
        follower.follow(
            .channel(channel), connected: { [weak self] in await self?.refresh() }, away: { true },
            ended: { [weak self] in self?.show(0) },
            changed: { [weak self] _ in
                // The watch has ended with the membership, or with the right to read.
                if await self?.answer.hasBegunAfresh() == true { self?.askSoon() }
            })
        let news = chat.driver.signals.news(of: channel)
        following = ObservationToken(
            task: Task { [weak self] in
                for await news in news {
                    guard let self, !follower.hasEnded else { return }
                    switch news {
                    case .signal(let signal):
                        guard let change = signal.presence else { break }
                        signalCount += 1
                        show(change.onlineCount)
                    // The server says why when it is asked once more.
                    case .unwatched: askSoon()
                    case .wrote, .watching, .stoppedWatching, .disconnected: break
                    }
                }
            })
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
            let before = signalCount
            let state = try await hold.watch(channel)
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
        defer { follower.answered() }
        guard !follower.hasAnswer || count != onlineCount else { return }
        onlineCount = count
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
        try ReplyResult<WatchedChannel>.decode(try await driver.hold(channel, by: number))
    }
}
