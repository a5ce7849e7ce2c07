import RoostAPI
import RoostCore
import Testing

@testable import RoostServer

/// How many channels all connections of a user receive together.
@Suite("Received channels")
struct ReceivedChannelsTests {
    /// The value under test, with room for ten channels of a user.
    private struct Recorder {
        var value = Subscriptions<Int>()

        init() { value.receivedMax = 10 }

        /// Returns the connections that are turned away.
        mutating func deliver(_ notices: [Notice]) -> [Int] {
            var turnedAway: [Int] = []
            for step in EventFrames.steps(for: [Committed(notices: notices, answer: .waiting {})]) {
                value.deliver(step) { if case .turnAway(let socket) = $0 { turnedAway.append(socket) } }
            }
            return turnedAway
        }

        mutating func connect(_ socket: Int, _ user: UserID, channels: Int, appRole: AppRole = .user) -> [Int] {
            let connection = ReceivedChannelsTests.id(socket)
            value.add(socket, as: connection)
            var streams = UserStreams(user: 0)
            streams.channels = Dictionary(uniqueKeysWithValues: (0..<channels).map { (ChannelID("c\($0)"), Seq(1)) })
            streams.appRole = appRole
            return deliver([.connected(connection, user, streams)])
        }

        mutating func remove(_ socket: Int) { value.remove(ReceivedChannelsTests.id(socket)) { _ in } }
    }

    private static func id(_ socket: Int) -> ConnectionID { ConnectionID(rawValue: Int64(socket)) }

    @Test("I18 connections that would receive too many channels together are turned away; those of other users aren't")
    func connecting() {
        var subscriptions = Recorder()
        let turnedAway = (1...3).map { subscriptions.connect($0, "ann", channels: 4) }
        #expect(turnedAway == [[], [], [3]])
        #expect(subscriptions.connect(4, "bob", channels: 4) == [])
        #expect(subscriptions.value.received == ["ann": 8, "bob": 4] && subscriptions.value.subscriberCount == 3)
        // The end of another connection makes room.
        for socket in [3, 1] { subscriptions.remove(socket) }
        #expect(subscriptions.connect(5, "ann", channels: 4) == [])
        // A user's only connection gets all of their channels, and services have no limit.
        #expect(subscriptions.connect(6, "cid", channels: 40) == [])
        let services = (7...9).map { subscriptions.connect($0, "backend", channels: 4, appRole: .service) }
        #expect(services == [[], [], []])
        for socket in 1...9 { subscriptions.remove(socket) }
        #expect(subscriptions.value.received == [:] && subscriptions.value.channels.isEmpty)
    }

    @Test("I18 one connection is turned away if a new channel is too many, and none for a watch without room")
    func joiningAndWatching() {
        var subscriptions = Recorder()
        for socket in 1...2 { _ = subscriptions.connect(socket, "ann", channels: 4) }
        #expect(subscriptions.deliver([.joined("ann", "new", at: 1)]) == [])
        #expect(subscriptions.value.received == ["ann": 10])
        // A channel that they receive as a member can be watched, and counts once.
        _ = subscriptions.deliver([.watching(Self.id(1), "ann", "new", at: 1), .watching(Self.id(1), "ann", "other", at: 1)])
        let watched = (["new", "other"] as [ChannelID]).map { subscriptions.value.isWatched($0, on: Self.id(1)) }
        #expect(watched == [true, false] && subscriptions.value.received == ["ann": 10])
        // Leaving makes room.
        #expect(subscriptions.deliver([.left("ann", "new", at: 2), .joined("ann", "newer", at: 1)]) == [])
        _ = subscriptions.deliver([.left("ann", "newer", at: 2), .watching(Self.id(1), "ann", "other", at: 1)])
        #expect(subscriptions.value.received == ["ann": 9])
        _ = subscriptions.deliver([.stoppedWatching(Self.id(1), "ann", "other")])
        #expect(subscriptions.value.received == ["ann": 8])
        // Of two connections without room for one more channel, one ends, and the other one takes its room.
        _ = subscriptions.deliver([.joined("ann", "fifth", at: 3)])
        let turnedAway = subscriptions.deliver([.joined("ann", "sixth", at: 3)])
        #expect(turnedAway.count == 1 && subscriptions.value.received == ["ann": 6] && subscriptions.value.subscriberCount == 1)
        for socket in turnedAway { subscriptions.remove(socket) }
        #expect(subscriptions.value.received == ["ann": 6] && subscriptions.value.sockets.count == 1)
    }

    @Test("I18 watches that are attached later count too: one whose room others have taken ends, and its client is notified")
    func attaching() {
        var subscriptions = Recorder()
        for socket in 1...2 { _ = subscriptions.connect(socket, "ann", channels: 4) }
        var unwatched = 0
        func perform(_ step: EventFrames.Step) {
            subscriptions.value.deliver(step) { if case .send = $0 { unwatched += 1 } }
        }
        let channels = (1...3).map { ChannelID("w\($0)") }
        for channel in channels { perform(.watches(Self.id(1), "ann", channel, at: 1)) }
        #expect(subscriptions.value.watchedCount(of: Self.id(1)) == 3)
        for channel in channels { perform(.attachWatcher(Self.id(1), channel)) }
        #expect(subscriptions.value.received == ["ann": 10] && unwatched == 1)
        #expect(subscriptions.value.watchedCount(of: Self.id(1)) == 2)
    }
}
