import RoostAPI
import Synchronization
import Testing

@testable import Roost

/// What happens to signals that aren't taken in time.
@MainActor @Suite("Live objects: signals for slow followers", .timeLimit(.minutes(5)))
struct SignalFeedTests {
    private typealias News = SignalFeed.News

    /// What a follower has taken.
    private final class Taken {
        var notices: [SignalFeed.Notice] = []
        var news: [News] { notices.map(\.news) }
    }

    private let clock = ManualClock()
    private let feed: SignalFeed

    init() { feed = SignalFeed { [clock] in clock.timestamp } }

    private func follow(_ kind: Signal.Kind) -> (taken: Taken, token: ObservationToken) {
        let taken = Taken()
        return (taken, feed.follow("general", kind) { taken.notices.append($0) })
    }

    private func presence(_ count: Int) -> News {
        let change = PresenceChange(onlineCount: count, online: [], offline: [], isWhole: true)
        return .signal(Signal(kind: .presenceChanged, channel: "general", presence: change))
    }

    @Test("SB-63 only followers of typing are notified of who has written, so messages drop no other notices")
    func wrote() async throws {
        let (presence, typing) = (follow(.presenceChanged), follow(.typingChanged))
        feed.send(self.presence(1))
        feed.send(.watching("general"))
        for _ in 0..<150 { feed.send(.wrote("bob", "general")) }
        feed.send(.unwatched("general"))
        feed.send(.disconnected, at: Timestamp(milliseconds: 7))
        try await until { presence.taken.news.last == .disconnected && typing.taken.news.last == .disconnected }
        #expect(presence.taken.news == [self.presence(1), .watching("general"), .unwatched("general"), .disconnected])
        #expect(presence.taken.notices.last?.time == Timestamp(milliseconds: 7))
        let expected: [News] = [.watching("general"), .missed]
        #expect(Array(typing.taken.news.prefix(2)) == expected)
        #expect(typing.taken.news.count == 2 + 100 + 2)
    }

    @Test("SB-63 if signals were dropped a follower is notified of that, and since when; the end of a watch is never dropped")
    func missed() async throws {
        let follower = follow(.presenceChanged)
        feed.send(.watching("general"))
        clock.advance(by: .seconds(3))
        feed.send(presence(0))
        clock.advance(by: .seconds(3))
        feed.send(.stoppedWatching("general"))
        for count in 1...110 { feed.send(presence(count)) }
        try await until { follower.taken.news.last == presence(110) }
        let kept = (11...110).map(presence)
        #expect(follower.taken.news == [.watching("general"), .missed, .stoppedWatching("general")] + kept)
        #expect(follower.taken.notices[1].time == Timestamp(milliseconds: 3000))
        // A follower that keeps up misses nothing.
        for count in 1...3 {
            feed.send(presence(-count))
            try await until { follower.taken.news.last == presence(-count) }
        }
        #expect(follower.taken.news.suffix(3) == (1...3).map { presence(-$0) })
        #expect(follower.taken.news.count { $0 == .missed } == 1)
    }

    @Test("SB-63 I18 an endless sequence of watches is bounded, and its final state is kept")
    func manyStates() async throws {
        let follower = follow(.presenceChanged)
        clock.advance(by: .seconds(1))
        feed.send(presence(1))
        for _ in 0..<10_000 {
            feed.send(.watching("general"))
            feed.send(.disconnected, at: Timestamp(milliseconds: 500))
            feed.send(.stoppedWatching("general"))
        }
        try await until { follower.taken.news.last == .stoppedWatching("general") }
        let news = follower.taken.news
        #expect(news.count <= NoticeQueue.countMax + 1 && news.contains(presence(1)))
        #expect(news.first == .missed && follower.taken.notices.first?.time == Timestamp(milliseconds: 500))
        #expect(news.suffix(3) == [.watching("general"), .disconnected, .stoppedWatching("general")])
    }

    @Test("the app's own signals of a channel are the newest hundred unread ones, whatever else happens")
    func own() async throws {
        let signals = feed.ownSignals(of: "general")
        for number in 1...150 {
            feed.send(
                .signal(
                    Signal(
                        kind: .custom, channel: "general", sender: "bob", custom: CustomSignal(type: "\(number)", metadata: nil))))
            feed.send(presence(number))
            feed.send(.wrote("bob", "general"))
        }
        feed.end()
        var read: [String] = []
        for await signal in signals { read.append(signal.type) }
        #expect(read == (51...150).map(String.init))
        for await _ in feed.ownSignals(of: "general") {}
    }

    @Test("a follower that is released gets nothing more")
    func released() async throws {
        let follower = follow(.presenceChanged)
        feed.send(presence(1))
        follower.token.invalidate()
        await letOthersRun()
        feed.send(presence(2))
        await letOthersRun()
        #expect(follower.taken.news == [])
    }
}
