import NIOConcurrencyHelpers
import RoostAPI

/// Passes signals and other news of the moment to their followers. None of it is stored.
///
/// A slow follower loses signals, the oldest first, and gets a notice of that in their place. It never loses that a watch has begun or ended.
final class SignalFeed: Sendable {
    /// One piece of news.
    enum News: Hashable, Sendable {
        case signal(Signal)
        /// A user has sent a message, and so stopped typing. Only followers of typing get this.
        case wrote(UserID, ChannelID)
        /// These users are no longer members, and so don't type either. Only followers of typing get this.
        case left([UserID], ChannelID)
        /// The channel is watched from now on: the known state may be out of date.
        case watching(ChannelID)
        /// The server has ended the watch of the channel.
        case unwatched(ChannelID)
        /// The app has ended all watches of the channel on this client.
        case stoppedWatching(ChannelID)
        /// The connection has ended: the known state no longer holds.
        case disconnected
        /// News was dropped because the follower didn't take it in time: its state may be wrong until it has asked the server.
        case missed
    }

    /// A piece of news as delivered to a follower.
    struct Notice: Hashable, Sendable {
        var news: News
        /// When it was so, by this device's clock: when it was sent; for ``News/disconnected`` when the server was last heard from; for
        /// ``News/missed`` when the first dropped one was sent.
        var time: Timestamp
    }

    /// A follower of one kind of signals of a channel.
    private struct Follower: Sendable {
        let channel: ChannelID
        let kind: Signal.Kind
        let deliver: @Sendable (Notice) -> Void
        let end: @Sendable () -> Void

        func follows(_ news: News) -> Bool {
            switch news {
            case .signal(let signal): signal.channel == channel && signal.kind == kind
            case .wrote(_, let channel), .left(_, let channel): channel == self.channel && kind == .typingChanged
            case .watching(let channel), .unwatched(let channel), .stoppedWatching(let channel): channel == self.channel
            case .disconnected, .missed: true
            }
        }
    }

    private struct State {
        var followers: [Int: Follower] = [:]
        /// The channels whose signals arrive on this connection.
        var watched: Set<ChannelID> = []
        var lastNumber = 0
        var hasEnded = false
    }

    private let state = NIOLockedValueBox(State())
    private let now: @Sendable () -> Timestamp
    /// The limit of the app's own unread signals; beyond it the oldest are dropped.
    private static let unreadMax = 100

    /// - Parameter now: This device's clock.
    init(now: @escaping @Sendable () -> Timestamp) { self.now = now }

    // MARK: Following

    /// Delivers what happens in a channel from now on to a live object, one notice after another, until the token is released.
    ///
    /// - Parameters:
    ///   - kind: The kind of signals that it gets. It gets all other news too, except who has written or left, which only followers of typing get.
    ///   - take: Processes a notice. The next one waits until it returns.
    func follow(
        _ channel: ChannelID, _ kind: Signal.Kind, _ take: @escaping @MainActor (Notice) async -> Void
    ) -> ObservationToken {
        let (wakes, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let queue = NoticeQueue()
        let deliver: @Sendable (Notice) -> Void = { notice in
            queue.add(notice)
            wake.yield()
        }
        let number = add(Follower(channel: channel, kind: kind, deliver: deliver, end: { wake.finish() }))
        // Cancelling a task holds its lock, which news needs in order to wake it: waiting for this lock here would deadlock.
        wake.onTermination = { [weak self] _ in
            Task { self?.forget(number) }
        }
        return ObservationToken(
            task: Task { @MainActor in
                for await _ in wakes {
                    while !Task.isCancelled, let notice = queue.take() { await take(notice) }
                }
            })
    }

    /// The app's own signals of a channel from now on. If more than 100 are unread, the oldest are dropped.
    func ownSignals(of channel: ChannelID) -> AsyncStream<ChannelSignal> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: ChannelSignal.self, bufferingPolicy: .bufferingNewest(Self.unreadMax))
        let deliver: @Sendable (Notice) -> Void = { notice in
            guard case .signal(let signal) = notice.news, let custom = signal.custom, let sender = signal.sender else { return }
            continuation.yield(ChannelSignal(sender: sender, type: custom.type, metadata: custom.metadata))
        }
        let number = add(Follower(channel: channel, kind: .custom, deliver: deliver, end: { continuation.finish() }))
        continuation.onTermination = { [weak self] _ in
            Task { self?.forget(number) }
        }
        return stream
    }

    /// Returns the follower's number. After the end the follower is ended at once, and its number refers to none.
    private func add(_ follower: Follower) -> Int {
        let number = state.withLockedValue { state -> Int? in
            guard !state.hasEnded else { return nil }
            state.lastNumber += 1
            state.followers[state.lastNumber] = follower
            return state.lastNumber
        }
        if number == nil { follower.end() }
        return number ?? 0
    }

    private func forget(_ number: Int) { state.withLockedValue { $0.followers[number] = nil } }

    // MARK: Sending

    /// - Parameter time: When it was so, if not now.
    func send(_ news: News, at time: Timestamp? = nil) {
        let followers = state.withLockedValue { state in
            switch news {
            case .watching(let channel): state.watched.insert(channel)
            case .unwatched(let channel), .stoppedWatching(let channel): state.watched.remove(channel)
            case .disconnected: state.watched = []
            case .signal, .wrote, .left, .missed: break
            }
            return state.followers.values.filter { $0.follows(news) }
        }
        guard !followers.isEmpty else { return }
        let notice = Notice(news: news, time: time ?? now())
        for follower in followers { follower.deliver(notice) }
    }

    /// Whether signals of a channel are being received.
    func isWatched(_ channel: ChannelID) -> Bool { state.withLockedValue { $0.watched.contains(channel) } }

    /// Sends ``News/stoppedWatching(_:)`` for the watched channels that nothing on this client wants to watch any longer.
    func endWatches(unless isWanted: (ChannelID) -> Bool) {
        let ended = state.withLockedValue { $0.watched }.filter { !isWanted($0) }
        for channel in ended.sorted() { send(.stoppedWatching(channel)) }
    }

    /// Ends all sequences once their buffered signals have been read, and later ones at once.
    func end() {
        let followers = state.withLockedValue { state in
            state.hasEnded = true
            defer { state.followers = [:] }
            return state.followers.values.map(\.self)
        }
        for follower in followers { follower.end() }
    }
}

/// The notices that one live object hasn't taken yet, up to a limit.
///
/// When there are too many signals, the oldest is dropped and replaced by ``SignalFeed/News/missed``. That a watch has begun or ended is kept; when
/// there are too many of these, only the last of each kind.
final class NoticeQueue: Sendable {
    /// The maximum number of signals, and of the notices that are kept.
    static let countMax = 100

    private struct State {
        var notices: [SignalFeed.Notice] = []
        /// How many of them have been taken.
        var taken = 0
    }

    private let state = NIOLockedValueBox(State())

    func add(_ notice: SignalFeed.Notice) {
        state.withLockedValue { state in
            state.notices.removeFirst(state.taken)
            state.taken = 0
            state.notices.append(notice)
            guard state.notices.count > Self.countMax else { return }
            Self.dropSignal(in: &state.notices)
            Self.dropStates(in: &state.notices)
        }
    }

    func take() -> SignalFeed.Notice? {
        state.withLockedValue { state in
            guard state.taken < state.notices.count else { return nil }
            state.taken += 1
            return state.notices[state.taken - 1]
        }
    }

    private static func dropSignal(in notices: inout [SignalFeed.Notice]) {
        guard notices.count(where: { $0.news.isDroppable }) > countMax,
            let oldest = notices.firstIndex(where: { $0.news.isDroppable })
        else { return }
        // The follower asks the server after it has taken the first `missed`, so one is enough for everything dropped until then.
        if notices[..<oldest].contains(where: { $0.news == .missed }) {
            notices.remove(at: oldest)
        } else {
            notices[oldest].news = .missed
        }
    }

    private static func dropStates(in notices: inout [SignalFeed.Notice]) {
        guard notices.count(where: { !$0.news.isDroppable }) > countMax, let time = notices.map(\.time).min() else { return }
        var later: Set<SignalFeed.News> = [.missed]
        let kept = notices.reversed().filter { $0.news.isDroppable || later.insert($0.news).inserted }
        notices = [SignalFeed.Notice(news: .missed, time: time)] + kept.reversed()
    }
}

extension SignalFeed.News {
    /// Whether it may be dropped when a follower is slow.
    fileprivate var isDroppable: Bool {
        switch self {
        case .signal, .wrote, .left: true
        case .watching, .unwatched, .stoppedWatching, .disconnected, .missed: false
        }
    }
}
