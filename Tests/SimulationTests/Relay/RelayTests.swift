import Foundation
import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@testable import RoostServer

/// The order that a node makes of its own commits and the bus's events.
@Suite("Relay")
struct RelayTests {
    static let seeds = Seeds.first(120)

    @Test("I3 I6 I9 I10 whatever bus, database and nodes do, clients see one order without gaps", arguments: seeds)
    func simulation(seed: UInt64) {
        let world = RelayWorld(seed: seed)
        world.live(steps: 1500)
        if !world.faultsFound.isEmpty { for line in world.trace { print(line) } }
        #expect(world.faultsFound == [], "ROOST_TEST_SEED=\(seed)")
        #expect(world.eventCount > 100)
    }

    @Test("I3 I6 I9 I10 for watchers too, and those who stop", arguments: seeds)
    func simulationWithWatchers(seed: UInt64) {
        let world = RelayWorld(seed: seed, faults: .init(hasWatchers: true))
        world.live(steps: 1000)
        if !world.faultsFound.isEmpty { for line in world.trace { print(line) } }
        #expect(world.faultsFound == [], "ROOST_TEST_SEED=\(seed)")
    }

    @Test("I3 I6 I9 I10 without a bus too, when all commits of other nodes are found by comparing", arguments: seeds)
    func simulationWithoutBus(seed: UInt64) {
        let world = RelayWorld(seed: seed, faults: .init(lossPercent: 100))
        world.live(steps: 1000)
        if !world.faultsFound.isEmpty { for line in world.trace { print(line) } }
        #expect(world.faultsFound == [], "ROOST_TEST_SEED=\(seed)")
    }

    @Test("what is recorded for receivers that catch up isn't copied with every further event")
    func recordedInPlace() {
        let channel: ChannelID = "c"
        let stream = StreamID.channel(channel)
        var relay = Relay()
        relay.follow(stream)
        relay.handle(.opened([stream: 10]), at: 0)
        for number in Int64(1)...3 {
            let receiver = Attachment.Receiver.connection(ConnectionID(rawValue: number), UserID("user-\(number)"))
            relay.attach(Attachment(receiver: receiver, channel: channel, seq: 5))
        }
        #expect(relay.feeds[stream]?.catchUps.count == 3)
        /// Where each receiver's items are stored.
        func places() -> [Relay.CatchUpToken: Int] {
            let recorded = relay.feeds[stream]?.catchUps.mapValues(\.recorded) ?? [:]
            return recorded.mapValues { items in items.withUnsafeBytes { Int(bitPattern: $0.baseAddress) } }
        }
        var moveCount = 0
        for seq in Seq(11)...1010 {
            let former = places()
            relay.handle(.received([StreamItem(stream: stream, after: seq - 1, seq: seq, json: [])]), at: 1)
            _ = relay.takeOutput()
            moveCount += places().count(where: { former[$0.key] != $0.value })
        }
        let counts = relay.feeds[stream]?.catchUps.values.map(\.recorded.count) ?? []
        #expect(counts == [1000, 1000, 1000])
        // They only move when their room doubles.
        #expect(moveCount < 100)
    }

    @Test("events that wait for the database are bounded in bytes; it has those beyond once it is back")
    func waitingBytes() {
        let stream = StreamID.channel("c")
        // The items share it, so the test itself needs little memory.
        let json = [UInt8](repeating: 32, count: 500_000)
        func item(_ after: Seq, _ seq: Seq) -> StreamItem { StreamItem(stream: stream, after: after, seq: seq, json: json) }
        var relay = Relay()
        relay.follow(stream)
        relay.handle(.openFailed([stream]), at: 0)
        relay.handle(.received((Seq(11)...210).map { item($0 - 1, $0) }), at: 1)
        let kept = relay.feeds[stream]?.waiting.count ?? 0
        #expect(kept > 50 && kept * json.count <= 32 << 20)
        relay.handle(.opened([stream: 10]), at: 2)
        relay.handle(.tick, at: 100)
        let position = 10 + Seq(kept)
        let gap = Relay.Fetch(stream: stream, after: position, purpose: .gap)
        #expect(relay.takeOutput().requests.contains(.fetch(gap)))
        relay.handle(.fetched(gap, .init(items: [item(position, 210)], seq: 210, hasMore: false, head: 210)), at: 110)
        #expect(relay.feeds[stream]?.position == 210 && relay.gaps.isEmpty && relay.waitingSizeBytes == 0)
    }

    @Test("what is recorded for a receiver that catches up is bounded in bytes")
    func recordedBytes() {
        let channel: ChannelID = "c"
        let stream = StreamID.channel(channel)
        let json = [UInt8](repeating: 32, count: 300_000)
        var settings = Relay.Settings()
        settings.recordedSizeBytesMax = 1 << 20
        var relay = Relay(settings: settings)
        relay.follow(stream)
        relay.handle(.opened([stream: 10]), at: 0)
        relay.attach(Attachment(receiver: .connection(ConnectionID(rawValue: 1), "ann"), channel: channel, seq: 5))
        var largest = 0
        for seq in Seq(11)...30 {
            relay.handle(.received([StreamItem(stream: stream, after: seq - 1, seq: seq, json: json)]), at: 1)
            largest = max(largest, relay.feeds[stream]?.catchUps.values.first?.recorded.count ?? 0)
        }
        #expect(largest == 3)
    }

    @Test("AM-45 an event is partial while more of the missed ones is to be read, which may have a message from before it")
    func partial() {
        let stream = StreamID.channel("c")
        func item(_ after: Seq, _ seq: Seq) -> StreamItem { StreamItem(stream: stream, after: after, seq: seq, json: []) }
        var relay = Relay()
        relay.follow(stream)
        relay.handle(.opened([stream: 5]), at: 0)
        relay.handle(.received([item(299, 300)]), at: 0)
        let first = Relay.Fetch(stream: stream, after: 5, purpose: .gap)
        relay.handle(.fetched(first, .init(items: [item(5, 101)], seq: 101, hasMore: true, head: 300)), at: 20)
        // One of them arrives late.
        relay.handle(.received([item(101, 102)]), at: 21)
        let last = Relay.Fetch(stream: stream, after: 102, purpose: .gap, leavers: .joinedAfter(300))
        relay.handle(.fetched(last, .init(items: [item(102, 300)], seq: 300, hasMore: false, head: 300)), at: 30)
        relay.handle(.received([item(300, 301)]), at: 31)
        var delivered: [Seq] = []
        var partial: [Seq] = []
        for case .event(let item) in relay.takeOutput().steps {
            delivered.append(item.seq)
            if item.isPartial { partial.append(item.seq) }
        }
        #expect(delivered == [101, 102, 300, 301] && partial == [101, 102])
    }

    @Test("I3 on a faultless bus nothing is fetched in vain", arguments: seeds.prefix(10))
    func calm(seed: UInt64) {
        let world = RelayWorld(
            seed: seed,
            faults: .init(
                lossPercent: 0, repeatPercent: 0, delayMax: 2, crashEvery: .max, busOutageEvery: .max, databaseOutageEvery: .max))
        world.live(steps: 800)
        #expect(world.faultsFound == [], "ROOST_TEST_SEED=\(seed)")
    }
}
