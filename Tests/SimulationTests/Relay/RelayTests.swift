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
            let answer = SocketAddress(shard: 0, connection: connection)
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
        let address = SocketAddress(shard: 0, connection: ConnectionID(rawValue: 2))
        #expect(
            hand(
                .committed([
                    .init(
                        items: [sent], attachments: [], answer: .socket(address, []), user: "ann", channel: channel, callerSeq: 6)
                ])
            ).isEmpty)
        let merged = StreamItem(stream: stream, after: 120, seq: 124, left: ["ann"], json: [])
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
}
