import NIOCore
import RoostAPI
import RoostCore
import Testing

@testable import RoostServer

/// A non-member who watches a channel, and becomes a member with an event that the node reads from the database, or watches again.
@Suite("Watchers who join")
struct JoiningWatcherTests {
    private typealias Action = Subscriptions<String>.Action

    private let bob = ConnectionID(rawValue: 1)
    private let interest = StreamInterest()
    private var subscriptions = Subscriptions<String>()

    init() {
        subscriptions.interest = interest
        subscriptions.add("bob", as: bob)
        _ = deliver([.connected(bob, "bob", UserStreams(user: 0)), .watching(bob, "bob", "general", at: 1)])
    }

    private mutating func deliver(_ notices: [Notice]) -> [Action] {
        var actions: [Action] = []
        for step in EventFrames.steps(for: [Committed(notices: notices, answer: .waiting {})]) {
            subscriptions.deliver(step) { actions.append($0) }
        }
        return actions
    }

    private static func event(_ seq: Seq) -> Event {
        Event(kind: .channelUpdated, stream: .channel("general"), seq: seq, actor: "ann", rows: Rows())
    }

    private static func notice(_ seq: Seq) -> Notice { .event(event(seq), .channel("general", Readers(others: .user))) }

    /// The event as bob gets it while he watches.
    private static func live(_ seq: Seq) -> Action {
        var frames = EventFrames.Frames()
        frames.append(event(seq).members(isConcealable: false), at: seq)
        return .send(frames.watching, eventCount: 1, to: "bob")
    }

    @Test("ST-06 I9 the watch continues with the membership, and gets no events before it is attached")
    mutating func continues() {
        let joining = deliver([.left("bob", "general", at: 4, isBack: true), Self.notice(4)])
        #expect(joining == [.emptied(.channel("general"))])
        let attached = deliver([.joined("bob", "general", at: 4), Self.notice(5)])
        #expect(attached == [.cameOnline("bob", ["general"]), Self.live(5)])
        // A member who is reported to have joined since has left before, which ends the watch.
        let rejoined = deliver([.left("bob", "general", at: 8, isBack: true), .joined("bob", "general", at: 8)])
        #expect(
            rejoined == [
                .wentOffline("bob", ["general"]), .stoppedWatching("bob", ["general"], isShown: true),
                .emptied(.channel("general")), .cameOnline("bob", ["general"]),
            ])
    }

    @Test("ST-05 I9 an event that arrives late doesn't end the watch that a non-member has renewed after it")
    mutating func renewed() {
        _ = deliver([Self.notice(10)])
        // Another node has stored 11 and 12. Bob watches again as of 12, and the answer precedes these events.
        subscriptions.deliver(.watches(bob, "bob", "general", at: 12)) { _ in }
        let late = deliver([.event(Self.event(11), .channel("general", Readers(others: .nobody)))])
        #expect(late == [.emptied(.channel("general"))])
        _ = deliver([Self.notice(12)])
        subscriptions.deliver(.attachWatcher(bob, "general")) { _ in }
        let next = deliver([Self.notice(13)])
        #expect(next == [Self.live(13)])
    }

    @Test("ST-05 I9 an event that a non-member catches up with doesn't end the watch that they have renewed after it")
    mutating func renewedWhileCatchingUp() {
        var frames = EventFrames.Frames()
        frames.append(Self.event(11).members(isConcealable: false), at: 11)
        for (seq, mayContinue) in [(Seq(12), true), (10, false)] {
            _ = deliver([.stoppedWatching(bob, "bob", "general")])
            subscriptions.deliver(.watches(bob, "bob", "general", at: seq)) { _ in }
            var caughtUp: [Action] = []
            subscriptions.deliver(.catchUp(.watcher(bob), "general", Readers(others: .nobody), frames)) { caughtUp.append($0) }
            #expect(caughtUp.isEmpty == mayContinue)
            subscriptions.deliver(.attachWatcher(bob, "general")) { _ in }
            let next = deliver([Self.notice(13)])
            #expect(next == (mayContinue ? [Self.live(13)] : []))
        }
    }

    @Test(
        "ST-06 I18 the watch ends with the channel, or with a leaving, before the membership is attached, and nothing of it is left"
    )
    mutating func ends() {
        for end in [Notice.channelDeleted("general"), .left("bob", "general", at: 5)] {
            _ = deliver([.watching(bob, "bob", "general", at: 1), .left("bob", "general", at: 4, isBack: true)])
            let ended = deliver([end, end])
            #expect(ended == [.stoppedWatching("bob", ["general"], isShown: true)], "\(end)")
            // Bob's own stream remains.
            let (streamCount, unattached) = (interest.streamCount, subscriptions.unattached)
            #expect(streamCount == 1 && unattached.isEmpty)
        }
    }
}
