import NIOConcurrencyHelpers
import RoostAPI

/// Hands what happens at this moment to everybody who follows it. Nothing of it is stored.
final class SignalFeed: Sendable {
    /// One piece of news.
    enum News: Hashable, Sendable {
        case signal(Signal)
        /// Somebody has sent a message: they don't type any more.
        case wrote(UserID, ChannelID)
        /// The connection has ended: what was known of this moment isn't any more.
        case disconnected
    }

    private struct State {
        var followers: [Int: (channel: ChannelID, continuation: AsyncStream<News>.Continuation)] = [:]
        var lastNumber = 0
    }

    private let state = NIOLockedValueBox(State())
    /// Beyond so many that weren't read, the oldest are dropped.
    private static let waitingMax = 100

    /// News of a channel from now on.
    func news(of channel: ChannelID) -> AsyncStream<News> {
        let (stream, continuation) = AsyncStream.makeStream(of: News.self, bufferingPolicy: .bufferingNewest(Self.waitingMax))
        let number = state.withLockedValue { state in
            state.lastNumber += 1
            state.followers[state.lastNumber] = (channel, continuation)
            return state.lastNumber
        }
        // Cancelling a task holds a lock of it, which news need to wake it: this one can't be waited for there.
        continuation.onTermination = { [weak self] _ in
            Task { self?.forget(number) }
        }
        return stream
    }

    func send(_ news: News) {
        let followers = state.withLockedValue { $0.followers.values.map(\.self) }
        for follower in followers where news.channel == nil || news.channel == follower.channel {
            follower.continuation.yield(news)
        }
    }

    /// Ends all sequences, after what is in them.
    func end() {
        let followers = state.withLockedValue { state in
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
        case .wrote(_, let channel): channel
        case .disconnected: nil
        }
    }
}
