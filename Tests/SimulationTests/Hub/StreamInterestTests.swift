import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@testable import RoostServer

/// A delivery wakes the loops that may have receivers. The tests of subscriptions, convergence and simulations check with each step that no
/// loop with receivers is left asleep.
@Suite("Interest in streams")
struct StreamInterestTests {
    private static func id(_ number: Int) -> ConnectionID { ConnectionID(rawValue: Int64(number)) }

    @Test("of two loops only the one with receivers is woken; a step that can reach anyone wakes both")
    func concerned() {
        let (first, second) = (StreamInterest(), StreamInterest())
        first.add(.channel("general"))
        second.add(.user("bob"))
        func woken(by step: EventFrames.Step) -> [Bool] {
            [first.mayConcern([step], shard: 0), second.mayConcern([step], shard: 1)]
        }
        #expect(woken(by: .send(.channel("general"), EventFrames.Frames())) == [true, false])
        #expect(woken(by: .send(.watchers("general"), EventFrames.Frames())) == [true, false])
        #expect(woken(by: .send(.user("bob"), EventFrames.Frames())) == [false, true])
        #expect(woken(by: .reply(SocketID(shard: 1, connection: Self.id(1)), [])) == [false, true])
        #expect(woken(by: .change(.accessChanged([]))) == [true, true])
        #expect(!first.mayConcern([], shard: 0))
    }

    @Test(
        "whatever connections join, watch, leave and lose, each stream counts once, and nothing is left after the last of them",
        arguments: Seeds.first(4))
    func counted(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let interest = StreamInterest()
        var subscriptions = Subscriptions<Int>()
        subscriptions.interest = interest
        subscriptions.receivedMax = 3
        let users: [UserID] = ["ann", "bob", "cid"]
        let channels: [ChannelID] = ["a", "b", "c", "d"]
        var connections: [Int: UserID] = [:]
        for number in 1...400 {
            let user = random.pick(users)
            let channel = random.pick(channels)
            let own = connections.filter { $0.value == user }.keys.sorted()
            let connection = own.isEmpty ? nil : random.pick(own)
            let readers = random.once(in: 2) ? Readers(others: .user) : Readers(members: .nobody, others: .nobody)
            var frames = EventFrames.Frames()
            frames.newestSeq = Seq(number)
            switch random.number(0...10) {
            case 0:
                subscriptions.add(number, as: Self.id(number))
                let streams = UserStreams(user: 0, channels: random.once(in: 2) ? [channel: 1] : [:])
                subscriptions.deliver(.change(.connected(Self.id(number), user, streams))) { _ in }
                connections[number] = user
            case 1:
                guard let connection else { continue }
                subscriptions.remove(Self.id(connection)) { _ in }
                connections[connection] = nil
            case 2: subscriptions.deliver(.change(.joined(user, channel, at: Seq(number)))) { _ in }
            case 3:
                let notice = Notice.left(user, channel, at: Seq(number), isBack: random.once(in: 2))
                subscriptions.deliver(.change(notice)) { _ in }
            case 4: subscriptions.deliver(.change(.channelDeleted(channel))) { _ in }
            case 5: if let connection { subscriptions.deliver(.watches(Self.id(connection), user, channel, at: 1)) { _ in } }
            case 6: if let connection { subscriptions.deliver(.attachWatcher(Self.id(connection), channel)) { _ in } }
            case 7: subscriptions.deliver(.send(.channel(channel, readers), frames)) { _ in }
            case 8:
                guard let connection else { continue }
                subscriptions.deliver(.catchUp(.watcher(Self.id(connection)), channel, readers, frames)) { _ in }
            case 9:
                guard let connection else { continue }
                subscriptions.deliver(.change(.reading(Self.id(connection), channel, since: 1, at: Seq(number)))) { _ in }
            default:
                guard let connection else { continue }
                subscriptions.deliver(.change(.stoppedWatching(Self.id(connection), user, channel))) { _ in }
            }
            let present = Set(subscriptions.subscribers.values.map(\.user))
            let expected = present.count + subscriptions.channels.count + subscriptions.unattached.count
            #expect(interest.streamCount == expected)
        }
        for connection in connections.keys { subscriptions.remove(Self.id(connection)) { _ in } }
        #expect(interest.streamCount == 0)
    }
}
