import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@testable import RoostServer

/// The packets sent between nodes.
@Suite("Packets")
struct PacketTests {
    private let items = [
        StreamItem(
            stream: .channel("a b.c*>/é👩‍👩‍👧‍👦"), after: 3, seq: 4, left: [.init(user: "ann", seq: 4), .init(user: "bob", seq: 4)],
            oldestMessage: 2, json: Array(#""a":1"#.utf8)),
        StreamItem(
            stream: .user("ann"), after: 0, seq: 9, joined: [.init(channel: "x", seq: 7, role: "guide")],
            floors: [.init(channel: "x", seq: 6), .init(channel: "y", seq: 1)], sharesPresence: false, json: []),
        StreamItem(
            stream: .channel("a b.c*>/é👩‍👩‍👧‍👦"), after: 4, seq: 5, roles: [.init(user: "ann", role: .owner, seq: 5)],
            readers: Readers(members: .moderator, others: .nobody, roles: ["guide", .owner], watchRoles: [.owner, "usher"]),
            isDeletion: true,
            json: Array("{}".utf8)),
    ]

    @Test("I3 I10 items are decoded as they were encoded, a packet for each stream, in order")
    func roundTrip() {
        let packets = Packet.encode(items)
        #expect(packets.map(\.stream) == [items[0].stream, items[1].stream])
        #expect(packets.map { Packet.decode($0.bytes, of: $0.stream) } == [[items[0], items[2]], [items[1]]])
    }

    @Test("I3 a long batch is sent in several packets, and nothing of it is missing")
    func chunks() {
        let big = (1...20).map { number in
            StreamItem(stream: .channel("c"), after: Seq(number - 1), seq: Seq(number), json: [UInt8](repeating: 65, count: 60_000))
        }
        let packets = Packet.encode(big)
        #expect(packets.count > 4)
        #expect(packets.allSatisfy { $0.bytes.count < 400_000 })
        #expect(packets.flatMap { Packet.decode($0.bytes, of: $0.stream) ?? [] } == big)
    }

    @Test("I3 events of 256 KiB travel in one packet, and with a byte more the last of them in another")
    func sizes() {
        let half = Packet.sizeBytesMax / 2
        for (last, count) in [(half, 1), (half + 1, 2)] {
            let items = [half, last].enumerated().map { number, size in
                StreamItem(
                    stream: .channel("c"), after: Seq(number), seq: Seq(number + 1), json: [UInt8](repeating: 65, count: size))
            }
            #expect(Packet.encode(items).count == count)
        }
    }

    @Test("I21 a packet with a position impossible in a stream is ignored", arguments: [-1, Limits.seqMax + 1, .max] as [Seq])
    func positions(seq: Seq) {
        let stream = StreamID.channel("c")
        func isTaken(_ item: StreamItem) -> Bool { Packet.decode(Packet.encode([item])[0].bytes, of: stream) != nil }
        #expect(isTaken(StreamItem(stream: stream, after: 0, seq: Limits.seqMax, json: [])))
        #expect(!isTaken(StreamItem(stream: stream, after: 0, seq: seq, json: [])))
        #expect(!isTaken(StreamItem(stream: stream, after: seq, seq: .max, json: [])))
        #expect(!isTaken(StreamItem(stream: stream, after: 0, seq: 1, joined: [.init(channel: "c", seq: seq)], json: [])))
        #expect(!isTaken(StreamItem(stream: stream, after: 0, seq: 1, floors: [.init(channel: "c", seq: seq)], json: [])))
        #expect(
            !isTaken(StreamItem(stream: stream, after: 0, seq: 1, roles: [.init(user: "ann", role: .owner, seq: seq)], json: [])))
        #expect(!isTaken(StreamItem(stream: stream, after: 0, seq: 1, oldestMessage: seq, json: [])))
    }

    @Test("I21 an invalid packet is ignored: truncated, longer, of another version, on another stream, or random")
    func damaged() throws {
        let packet = try #require(Packet.encode(items).first)
        for end in 0..<packet.bytes.count { #expect(Packet.decode(Array(packet.bytes.prefix(end)), of: packet.stream) == nil) }
        #expect(Packet.decode(packet.bytes + [0], of: packet.stream) == nil)
        #expect(Packet.decode([Packet.version + 1] + packet.bytes.dropFirst(), of: packet.stream) == nil)
        #expect(Packet.decode(packet.bytes, of: .user("ann")) == nil)
        var random = SeededGenerator(seed: 1)
        for _ in 0..<5000 {
            var bytes = packet.bytes
            for _ in 0..<random.number(1...6) {
                bytes[random.number(0...bytes.count - 1)] = UInt8.random(in: .min ... .max, using: &random)
            }
            // However it is decoded, it does no harm.
            _ = Packet.decode(bytes, of: packet.stream)
        }
    }
}
