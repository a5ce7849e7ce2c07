import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@Suite("Channels")
struct ChannelTests {
    @Test("AM-24 D-17 a new channel has its creator as owner, and each given user once")
    func creates() throws {
        let world = try CoreWorld()
        for user in ["ann", "bob", "cid"] as [UserID] { try world.user(user) }
        let view = try world.perform(
            CreateChannel(
                channel: "general", displayName: "General", tags: ["a"], metadata: ["k": 1], users: ["cid", "bob", "cid", "ann"]),
            as: "ann")
        let counters = ChannelCounters(seq: 1, memberCount: 3, messageCount: 0, lastActivity: world.now)
        var channel = Channel(
            channelId: "general", type: .community, counters: counters, createdBy: "ann", createdAt: world.now, updatedAt: world.now
        )
        channel.displayName = "General"
        channel.metadata = ["k": 1]
        channel.metadataVersion = 1
        channel.metadataUpdatedBy = "ann"
        channel.tags = ["a"]
        channel.isPublic = true
        let membership = Membership(
            channelId: "general", role: .owner, state: .member, joinedAt: world.now, joinedSeq: 1, readSeq: 1, readCount: 0,
            channelSeq: 1, userSeq: 2)
        #expect(view == ChannelView(channel: channel, membership: membership, ownCapabilities: view.ownCapabilities))
        let members = try world.perform(ListMembers(channel: "general"), as: "ann").items.map {
            "\($0.member.userId) \($0.member.role)"
        }
        #expect(members == ["ann owner", "bob member", "cid member"])
    }

    @Test("AM-13 the server makes an id for a channel without one")
    func makesIDs() throws {
        let world = try CoreWorld()
        try world.user("ann")
        let ids = try (0..<20).map { _ in try world.perform(CreateChannel(), as: "ann").channel.channelId }
        #expect(Set(ids).count == 20)
    }

    @Test("AM-13 nobody can take an id that the server will make, nor its other name", arguments: ["", "community:"])
    func makesIDsThatNobodyTook(prefix: String) throws {
        let world = try CoreWorld()
        for user in ["ann", "bob"] as [UserID] { try world.user(user) }
        // Bob knows the time and how many ids the server has made, but not the random end.
        world.ids = IDGenerator(randomBits: { 1 })
        var known = IDGenerator()
        let next = (0..<20).map { _ in known.nextChannelID(at: world.now) }
        for id in next { try world.perform(CreateChannel(channel: ChannelID("\(prefix)\(id)")), as: "bob") }
        let made = try world.perform(CreateChannel(), as: "ann").channel.channelId
        #expect(next.contains { made.rawValue.hasPrefix($0.rawValue.dropLast(12)) })
    }

    @Test("AM-23 a taken id is refused, even if its channel is deleted, and nothing changes", arguments: [false, true])
    func alreadyExists(deleted: Bool) throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        if deleted { try world.perform(DeleteChannel(channel: "general"), as: "ann") }
        let before = try world.dump()
        let refusal = try world.refusal(CreateChannel(channel: "general", users: ["bob"]), as: "ann")
        #expect(refusal == RoostError(.alreadyExists, "A channel with this id exists.", field: "channel"))
        #expect(try world.dump() == before)
    }

    @Test("AM-24 a channel with an unknown user isn't made")
    func unknownUser() throws {
        let world = try CoreWorld()
        try world.user("ann")
        let before = try world.dump()
        #expect(try world.code(CreateChannel(channel: "general", users: ["nobody"]), as: "ann") == .notFound)
        #expect(try world.dump() == before)
    }

    @Test("AM-14 a type that doesn't exist is refused", arguments: ["", "Community", "conversation'"])
    func unknownType(type: String) throws {
        let world = try CoreWorld()
        try world.user("ann")
        #expect(try world.code(CreateChannel(type: ChannelType(rawValue: type)), as: "ann") == .invalidArgument)
    }

    @Test("AM-27 SB-25 R07 a channel can be read without joining it, with no messages in it")
    func readsWithoutJoining() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        try world.user("eve")
        let message = try world.send("secret", to: "general", as: "ann")
        let stranger = try world.perform(GetChannel(channel: "general"), as: "eve")
        let owner = try world.perform(GetChannel(channel: "general"), as: "ann")
        let toStrangers: [Permission] = [.channelRead, .memberJoin, .memberLeave, .memberList]
        #expect(stranger == ChannelView(channel: owner.channel, membership: nil, lastMessage: nil, ownCapabilities: toStrangers))
        #expect(owner.lastMessage == message)
    }

    @Test("AM-37 an update replaces the given attributes and leaves the rest")
    func updates() throws {
        let world = try CoreWorld()
        try world.user("ann")
        let created = try world.perform(
            CreateChannel(channel: "general", displayName: "General", tags: ["a"], metadata: ["k": 1, "l": 2]), as: "ann"
        ).channel
        world.advance(milliseconds: 5)
        let updated = try world.perform(UpdateChannel(channel: "general", tags: [], metadata: ["k": 3]), as: "ann")
        var expected = created
        expected.tags = []
        expected.metadata = ["k": 3]
        expected.metadataVersion = 2
        expected.updatedAt = world.now
        expected.counters.seq = 2
        expected.counters.lastActivity = world.now
        #expect(updated == expected)
        #expect(try world.perform(GetChannel(channel: "general"), as: "ann").channel == expected)
        #expect(world.events().last?.rows == Rows(channel: expected))
    }

    @Test("AM-34 a deleted channel stays readable for its former members and for admins; to others it doesn't exist")
    func deletes() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob", "cid"])
        try world.user("eve")
        let message = try world.send("hi", to: "general", as: "bob")
        try world.perform(LeaveChannel(channel: "general"), as: "cid")
        try world.perform(DeleteChannel(channel: "general"), as: "ann")
        let codes = try [
            world.code(GetChannel(channel: "general"), as: "bob"), world.code(GetChannel(channel: "general"), as: "cid"),
            world.code(GetChannel(channel: "general"), as: "eve"),
            world.code(GetChannel(channel: "general"), as: "root", role: .admin),
        ]
        #expect(codes == [nil, .notFound, .notFound, nil])
        let view = try world.perform(GetChannel(channel: "general"), as: "bob")
        #expect(view.channel.deletedAt == world.now)
        #expect(view.membership?.state == MembershipState.none)
        #expect(try world.perform(ListMessages(channel: "general"), as: "bob").messages == [message])
        #expect(try world.perform(QueryChannels(), as: "bob").items == [])
    }

    @Test("AM-34 nothing can be written to a deleted channel")
    func deletedIsReadOnly() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        let message = try world.send("hi", to: "general", as: "ann").messageId
        try world.perform(DeleteChannel(channel: "general"), as: "ann")
        let before = try world.dump()
        let operations: [any Handled] = [
            SendMessage(channel: "general", clientId: "9", text: "x"), EditMessage(channel: "general", message: message, text: "x"),
            DeleteMessage(channel: "general", message: message), JoinChannel(channel: "general"), MarkRead(channel: "general"),
            UpdateChannel(channel: "general", displayName: "x"), WatchChannel(channel: "general"),
        ]
        for role in AppRole.allCases {
            let codes = try operations.map { try world.code($0, as: "ann", role: role, connection: 1) }
            #expect(codes == Array(repeating: .notPermitted, count: operations.count))
        }
        #expect(try world.dump() == before)
    }
}
