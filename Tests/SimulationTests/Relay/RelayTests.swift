import Foundation
import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@testable import RoostServer

/// The order that a node makes out of what it commits and what the bus brings.
@Suite("Relay")
struct RelayTests {
    static let seeds = Seeds.first(120)

    @Test("I3 I6 I9 I10 whatever bus, database and nodes do, clients see one order without holes", arguments: seeds)
    func simulation(seed: UInt64) {
        let world = RelayWorld(seed: seed)
        world.live(steps: 1500)
        if !world.faultsFound.isEmpty { for line in world.trace { print(line) } }
        #expect(world.faultsFound == [], "ROOST_TEST_SEED=\(seed)")
        #expect(world.eventCount > 100)
    }

    @Test("I3 I6 I9 I10 for those who watch too, and stop to", arguments: seeds)
    func simulationWithWatchers(seed: UInt64) {
        let world = RelayWorld(seed: seed, faults: .init(hasWatchers: true))
        world.live(steps: 1000)
        if !world.faultsFound.isEmpty { for line in world.trace { print(line) } }
        #expect(world.faultsFound == [], "ROOST_TEST_SEED=\(seed)")
    }

    @Test("I3 I6 I9 I10 without a bus too, where all that other nodes do is found by comparing", arguments: seeds)
    func simulationWithoutBus(seed: UInt64) {
        let world = RelayWorld(seed: seed, faults: .init(lossPercent: 100))
        world.live(steps: 1000)
        if !world.faultsFound.isEmpty { for line in world.trace { print(line) } }
        #expect(world.faultsFound == [], "ROOST_TEST_SEED=\(seed)")
    }

    @Test("I3 on a bus that does everything right nothing is fetched in vain", arguments: seeds.prefix(10))
    func calm(seed: UInt64) {
        let world = RelayWorld(
            seed: seed,
            faults: .init(
                lossPercent: 0, repeatPercent: 0, delayMax: 2, crashEvery: .max, busOutageEvery: .max, databaseOutageEvery: .max))
        world.live(steps: 800)
        #expect(world.faultsFound == [], "ROOST_TEST_SEED=\(seed)")
    }

    @Test("I3 I9 one who waits to be attached behind another gets their own events before the reply")
    func answersOfWhoIsParked() {
        let (channel, stream) = (ChannelID("c"), StreamID.channel("c"))
        var relay = Relay()
        var time: Relay.Time = 0
        func hand(_ input: Relay.Input) -> [Relay.Step] {
            time += 20
            relay.handle(input, at: time)
            relay.handle(.tick, at: time)
            return relay.takeOutput().steps
        }
        func connect(_ number: Int64, _ user: UserID, _ streams: UserStreams) {
            let connection = ConnectionID(rawValue: number)
            let answer = SocketID(shard: 0, connection: connection)
            let notice = Notice.connected(connection, user, streams)
            _ = hand(.committed([.init(items: [], attachments: [notice], answer: .socket(answer, []))]))
            _ = hand(.opened([.user(user): streams.user]))
        }
        // The node is at 120 of the channel. Bob's connection needs it from 122 on, and ann has joined at 123.
        connect(1, "carl", UserStreams(user: 5, channels: [channel: 120]))
        _ = hand(.opened([stream: 120]))
        connect(2, "ann", UserStreams(user: 5))
        connect(3, "bob", UserStreams(user: 5, channels: [channel: 122]))
        let joined = StreamItem(stream: .user("ann"), after: 5, seq: 6, joined: [.init(channel: channel, seq: 123)], json: [])
        _ = hand(.received([joined]))

        // She sends: 124, which comes here in one with her joining.
        let sent = StreamItem(stream: stream, after: 123, seq: 124, json: [])
        let address = SocketID(shard: 0, connection: ConnectionID(rawValue: 2))
        #expect(
            hand(
                .committed([
                    .init(
                        items: [sent], attachments: [], answer: .socket(address, []), user: "ann", channel: channel, callerSeq: 6)
                ])
            ).isEmpty)
        let merged = StreamItem(stream: stream, after: 120, seq: 124, left: [.init(user: "ann", seq: 123)], json: [])
        let first = hand(
            .fetched(.init(stream: stream, after: 120, purpose: .gap), .init(items: [merged], seq: 124, hasMore: false)))
        #expect(first.contains { if case .attach = $0 { true } else { false } }, "bob is attached, and ann's reply waits")
        #expect(!first.contains { if case .answer(.socket(address, _)) = $0 { true } else { false } })
        let token = relay.feeds[stream]?.catchUps.keys.first ?? 0
        let second = hand(
            .fetched(
                .init(stream: stream, after: 123, purpose: .catchUp(token)), .init(items: [sent], seq: 124, hasMore: false)))
        let kinds = second.compactMap { step -> String? in
            switch step {
            case .past(let item, _): "past \(item.seq)"
            case .change(.joined(let user, _, _, _)): "joined \(user)"
            case .answer(.socket(address, _)): "answer"
            default: nil
            }
        }
        #expect(kinds == ["past 124", "joined ann", "answer"])
    }

    @Test(
        "ST-01 I9 a watch that was asked for after joining outlives an event that tells of an earlier leaving",
        arguments: [123, 124] as [Seq])
    func watchBehindAJoining(leftSeq: Seq) {
        let (channel, stream) = (ChannelID("c"), StreamID.channel("c"))
        var relay = Relay()
        var time: Relay.Time = 0
        func hand(_ input: Relay.Input) -> [Relay.Step] {
            time += 20
            relay.handle(input, at: time)
            relay.handle(.tick, at: time)
            return relay.takeOutput().steps
        }
        // The node is at 120 of the channel, where ann joins at 123, and watches at once. Both wait for the node to come there.
        for (number, user, streams) in [
            (1, "carl", UserStreams(user: 5, channels: [channel: 120])), (2, "ann", UserStreams(user: 5)),
        ] as [(Int64, UserID, UserStreams)] {
            let connection = ConnectionID(rawValue: number)
            let answer = Committed.Answer.socket(SocketID(shard: 0, connection: connection), [])
            _ = hand(.committed([.init(items: [], attachments: [.connected(connection, user, streams)], answer: answer)]))
            _ = hand(.opened([.user(user): streams.user]))
            if number == 1 { _ = hand(.opened([stream: 120])) }
        }
        let connection = ConnectionID(rawValue: 2)
        let joined = StreamItem(stream: .user("ann"), after: 5, seq: 6, joined: [.init(channel: channel, seq: 123)], json: [])
        _ = hand(.received([joined]))
        let answer = Committed.Answer.socket(SocketID(shard: 0, connection: connection), [])
        let watching = Notice.watching(connection, "ann", channel, at: 123)
        _ = hand(
            .committed([.init(items: [], attachments: [watching], answer: answer, user: "ann", channel: channel, callerSeq: 6)]))

        // What is read of the channel tells that ann had left before, or that she has left since: then her watch has ended too.
        let merged = StreamItem(stream: stream, after: 120, seq: 124, left: [.init(user: "ann", seq: leftSeq)], json: [])
        let steps = hand(
            .fetched(.init(stream: stream, after: 120, purpose: .gap), .init(items: [merged], seq: 124, hasMore: false)))
        let place =
            steps.firstIndex { if case .change(.left("ann", channel, at: leftSeq)) = $0 { true } else { false } } ?? steps.endIndex
        let watchesOn = steps[place...].contains { if case .watches(connection, "ann", channel) = $0 { true } else { false } }
        #expect(watchesOn == (leftSeq == 123))
    }

    @Test("I6 a connection that waits behind its user's joining goes on after what that has brought it, once the user has left")
    func connectionBehindAMember() {
        let (channel, stream) = (ChannelID("c"), StreamID.channel("c"))
        var relay = Relay()
        var time: Relay.Time = 0
        func hand(_ input: Relay.Input) -> [Relay.Request] {
            time += 20
            relay.handle(input, at: time)
            relay.handle(.tick, at: time)
            return relay.takeOutput().requests
        }
        func connect(_ number: Int64, _ user: UserID, _ streams: UserStreams) {
            let connection = ConnectionID(rawValue: number)
            let notice = Notice.connected(connection, user, streams)
            let answer = Committed.Answer.socket(SocketID(shard: 0, connection: connection), [])
            _ = hand(.committed([.init(items: [], attachments: [notice], answer: answer)]))
            _ = hand(.opened([.user(user): streams.user]))
        }
        func fetches(_ requests: [Relay.Request]) -> [Seq] {
            requests.compactMap { if case .fetch(let fetch) = $0, fetch.purpose != .gap { fetch.after } else { nil } }
        }
        func item(_ after: Seq, _ seq: Seq, left: [StreamItem.Leaving] = []) -> StreamItem {
            StreamItem(stream: stream, after: after, seq: seq, left: left, json: [])
        }
        // The node is at 49. Ann joins at 50, and connects once more when the channel is at 53.
        connect(1, "bob", UserStreams(user: 5, channels: [channel: 49]))
        _ = hand(.opened([stream: 49]))
        connect(2, "ann", UserStreams(user: 9))
        let joined = StreamItem(stream: .user("ann"), after: 9, seq: 10, joined: [.init(channel: channel, seq: 50)], json: [])
        _ = hand(.received([joined]))
        connect(3, "ann", UserStreams(user: 10, channels: [channel: 53]))
        // The channel is brought to 54, and ann from 50 to 55: both connections have that. Then they have left.
        let gap = Relay.Fetched(items: [item(49, 54, left: [.init(user: "ann", seq: 50)])], seq: 54, hasMore: true)
        let first = hand(.fetched(.init(stream: stream, after: 49, purpose: .gap), gap))
        #expect(fetches(first) == [50])
        let member = relay.feeds[stream]?.catchUps.keys.first ?? 0
        let second = hand(
            .fetched(
                .init(stream: stream, after: 50, purpose: .catchUp(member)),
                .init(items: [item(50, 55)], seq: 55, hasMore: true)))
        #expect(fetches(second) == [55])
        let third = hand(
            .fetched(
                .init(stream: stream, after: 55, purpose: .catchUp(member)),
                .init(items: [item(55, 57, left: [.init(user: "ann", seq: 57)])], seq: 57, hasMore: false)))
        // Nothing is read for the new connection from 53 on: it waits for the channel at 55.
        #expect(fetches(third) == [])
        #expect(relay.feeds[stream]?.parked.map(\.seq) == [55])
    }
}
