import NIOConcurrencyHelpers
import RoostAPI

/// Hands what happens at this moment to everybody who follows it. Nothing of it is stored.
final class SignalFeed: Sendable {
    /// One piece of news.
    enum News: Hashable, Sendable {
        case signal(Signal)
        /// Somebody has sent a message: they don't type any more.
        case wrote(UserID, ChannelID)
        /// The channel is watched from now on: what was known of this moment may be out of date.
        case watching(ChannelID)
        /// The server has ended what watched the channel.
        case unwatched(ChannelID)
        /// Nothing here watches the channel any more, as the app wants it.
        case stoppedWatching(ChannelID)
        /// The connection has ended: what was known of this moment isn't any more. Carries when the server was last heard of, by this device's clock.
        case disconnected(lastHeard: Timestamp?)
    }

    private struct State {
        var followers: [Int: (channel: ChannelID, continuation: AsyncStream<News>.Continuation)] = [:]
        /// The channels whose signals come on this connection.
        var watched: Set<ChannelID> = []
        var lastNumber = 0
        var hasEnded = false
    }

    private let state = NIOLockedValueBox(State())
    /// Beyond so many that weren't read, the oldest are dropped.
    private static let waitingMax = 100

    /// News of a channel from now on.
    func news(of channel: ChannelID) -> AsyncStream<News> {
        let (stream, continuation) = AsyncStream.makeStream(of: News.self, bufferingPolicy: .bufferingNewest(Self.waitingMax))
        let number = state.withLockedValue { state -> Int? in
            guard !state.hasEnded else { return nil }
            state.lastNumber += 1
            state.followers[state.lastNumber] = (channel, continuation)
            return state.lastNumber
        }
        guard let number else {
            continuation.finish()
            return stream
        }
        // Cancelling a task holds a lock of it, which news need to wake it: this one can't be waited for there.
        continuation.onTermination = { [weak self] _ in
            Task { self?.forget(number) }
        }
        return stream
    }

    func send(_ news: News) {
        let followers = state.withLockedValue { state in
            switch news {
            case .watching(let channel): state.watched.insert(channel)
            case .unwatched(let channel), .stoppedWatching(let channel): state.watched.remove(channel)
            case .disconnected: state.watched = []
            case .signal, .wrote: break
            }
            return state.followers.values.map(\.self)
        }
        for follower in followers where news.channel == nil || news.channel == follower.channel {
            follower.continuation.yield(news)
        }
    }

    /// Whether what happens in a channel at this moment is told.
    func isWatched(_ channel: ChannelID) -> Bool { state.withLockedValue { $0.watched.contains(channel) } }

    /// Says of which channels nothing is told any more, since nobody here wants to watch them.
    func endWatches(unless isWanted: (ChannelID) -> Bool) {
        let ended = state.withLockedValue { $0.watched }.filter { !isWanted($0) }
        for channel in ended.sorted() { send(.stoppedWatching(channel)) }
    }

    /// Ends all sequences, after what is in them, and those of later at once.
    func end() {
        let followers = state.withLockedValue { state in
            state.hasEnded = true
            defer { state.followers = [:] }
            return state.followers.values.map(\.self)
        }
        for follower in followers { follower.continuation.finish() }
    }

    private func forget(_ number: Int) { state.withLockedValue { $0.followers[number] = nil } }
}

extension SignalFeed.News {
    /// Nil for news of all channels.
    fileprivate var channel: ChannelID? {
        switch self {
        case .signal(let signal): signal.channel
        case .wrote(_, let channel), .watching(let channel), .unwatched(let channel), .stoppedWatching(let channel): channel
        case .disconnected: nil
        }
    }
}
