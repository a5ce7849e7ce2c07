import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

/// What has been delivered to the devices of others.
@Suite("Delivery")
struct DeliveryTests {
    private func world(isOn: Bool = true) throws -> CoreWorld {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob", "cid"])
        if isOn { try world.perform(UpdateChannel(channel: "general", policy: PolicyChanges(deliveryEvents: true)), as: "ann") }
        return world
    }

    private func position(_ user: UserID, in world: CoreWorld, as caller: UserID = "ann") throws -> ReadPosition? {
        try world.perform(ListReaders(channel: "general"), as: caller).items.first { $0.userId == user }
    }

    private func reported(_ world: CoreWorld, _ body: () throws -> Void) throws -> [ReadPosition] {
        try world.notices(body).compactMap { if case .read(let position, "general") = $0 { position } else { nil } }
    }

    @Test(
        "X-33 R26 deliveries are sent to the others once, only forward, and not if already read; lists and a watch have them"
    )
    func marks() throws {
        let world = try world()
        let sent = try ["1", "2", "3"].map { try world.send($0, to: "general", as: "ann") }
        let events = world.events().count
        func deliver(_ seq: Seq) throws -> [ReadPosition] {
            try reported(world) { try world.perform(MarkDelivered(channel: "general", seq: seq), as: "bob") }
        }
        let before = try #require(try position("bob", in: world))
        var expected = before
        (expected.deliveredSeq, expected.lastDeliveredAt) = (sent[1].seq, world.now)
        // The signal leaves out unchanged fields.
        var signal = expected
        signal.joinedSeq = nil
        #expect(before.joinedSeq == 1)
        #expect(try deliver(sent[1].seq) == [signal])
        world.advance(milliseconds: 5)
        #expect(try deliver(sent[1].seq) == [] && deliver(sent[0].seq) == [])
        #expect(try position("bob", in: world) == expected)
        let state = try world.perform(WatchChannel(channel: "general"), as: "ann", connection: 1).read["bob"]
        #expect(state?.deliveredSeq == sent[1].seq && state?.readSeq == before.readSeq && state?.unreadCount == 3)
        // No stream has advanced.
        #expect(world.events().count == events)
        // Read messages count as delivered.
        try world.perform(MarkRead(channel: "general", seq: sent[2].seq), as: "bob")
        let read = try #require(try position("bob", in: world))
        #expect(read.readSeq == sent[2].seq && read.deliveredSeq == nil && read.lastDeliveredAt == nil)
        #expect(try deliver(sent[2].seq) == [])
        // Also those marked as unread again.
        try world.perform(MarkUnread(channel: "general", seq: sent[0].seq), as: "bob")
        #expect(try deliver(sent[2].seq) == [] && position("bob", in: world) == read)
    }

    @Test(
        "X-33 it is refused where it is off (the default), in large channels, for missing messages, and for users not concerned"
    )
    func refusals() throws {
        let world = try world(isOn: false)
        try world.user("zoe")
        let sent = try world.send("1", to: "general", as: "ann")
        let mark = MarkDelivered(channel: "general", seq: sent.seq)
        #expect(try world.refusal(mark, as: "bob")?.rule == "deliveryEvents")
        let policy = PolicyChanges(readEvents: false, deliveryEvents: true)
        try world.perform(UpdateChannel(channel: "general", policy: policy), as: "ann")
        #expect(try world.refusal(mark, as: "bob")?.rule == "readEvents")
        try world.perform(UpdateChannel(channel: "general", policy: PolicyChanges(readEvents: true)), as: "ann")
        // A channel of exactly as many members isn't a large one.
        try world.execute("UPDATE channel_heads SET member_count = \(Limits.largeChannelMembers)")
        #expect(try world.code(mark, as: "bob") == nil)
        try world.execute("UPDATE channel_heads SET member_count = 3")
        let before = try world.dump()
        let beyond = try world.refusal(MarkDelivered(channel: "general", seq: sent.seq + 5), as: "bob")
        #expect(beyond?.code == .invalidArgument && beyond?.field == "seq")
        #expect(try world.code(MarkDelivered(channel: "general", seq: -1), as: "bob") == .invalidArgument)
        #expect(try world.code(MarkDelivered(channel: "nowhere", seq: 1), as: "bob") == .notFound)
        #expect(try world.code(mark, as: "zoe") == .notMember)
        try world.execute("UPDATE channel_heads SET member_count = \(Limits.largeChannelMembers + 1)")
        #expect(try world.refusal(mark, as: "bob")?.limit == Int64(Limits.largeChannelMembers))
        try world.execute("UPDATE channel_heads SET member_count = 3")
        #expect(try world.dump() == before)
        #expect(ChannelPolicy.presets.allSatisfy { !$0.deliveryEvents })
    }

    @Test("X-33 users who don't share it, or their reading, aren't reported; once it is turned off nobody is")
    func sharing() throws {
        let world = try world()
        let sent = try world.send("1", to: "general", as: "ann")
        try world.perform(UpdatePreferences(sharesDelivery: false), as: "bob")
        #expect(try reported(world) { try world.perform(MarkDelivered(channel: "general", seq: sent.seq), as: "bob") } == [])
        #expect(try position("bob", in: world)?.deliveredSeq == nil)
        let unshared = try world.perform(WatchChannel(channel: "general"), as: "ann", connection: 1).read["bob"]
        #expect(unshared != nil && unshared?.deliveredSeq == nil && unshared?.lastDeliveredAt == nil)
        try world.perform(UpdatePreferences(sharesDelivery: true), as: "bob")
        #expect(try position("bob", in: world)?.deliveredSeq == sent.seq)
        try world.perform(UpdatePreferences(sharesReading: false), as: "cid")
        #expect(try reported(world) { try world.perform(MarkDelivered(channel: "general", seq: sent.seq), as: "cid") } == [])
        #expect(try position("cid", in: world) == nil)
        try world.perform(UpdateChannel(channel: "general", policy: PolicyChanges(deliveryEvents: false)), as: "ann")
        #expect(try position("bob", in: world)?.deliveredSeq == nil)
        #expect(try world.perform(WatchChannel(channel: "general"), as: "ann", connection: 1).read["bob"]?.deliveredSeq == nil)
    }

    @Test("X-33 two positions of one member have the same result in any order")
    func merging() {
        var random = SeededGenerator(seed: 14)
        func position() -> ReadPosition {
            let (readSeq, deliveredSeq) = (Seq(random.number(0...4)), Seq(random.number(0...6)))
            let time = { (seq: Seq) in Timestamp(milliseconds: seq * 10) }
            return deliveredSeq > readSeq
                ? ReadPosition(
                    userId: "ann", readSeq: readSeq, lastReadAt: time(readSeq), deliveredSeq: deliveredSeq,
                    lastDeliveredAt: time(deliveredSeq))
                : ReadPosition(userId: "ann", readSeq: readSeq, lastReadAt: time(readSeq))
        }
        for _ in 0..<500 {
            let (first, second, third) = (position(), position(), position())
            let merged = first.merged(with: second)
            #expect(merged == second.merged(with: first) && merged.merged(with: first) == merged)
            #expect(merged.merged(with: third) == first.merged(with: second.merged(with: third)))
            #expect(merged.readSeq == max(first.readSeq, second.readSeq))
            let delivered = max(first.deliveredSeq ?? 0, second.deliveredSeq ?? 0)
            #expect(merged.deliveredSeq == (delivered > merged.readSeq ? delivered : nil))
        }
    }
}
