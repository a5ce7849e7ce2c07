import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@Suite("Watching")
struct WatchTests {
    private struct Board: Presence {
        func onlineMemberCount(of channel: ChannelID) -> Int { 7 }
        func onlineMembers(of channel: ChannelID) -> Set<UserID> { [] }
        func watchers(of channel: ChannelID) -> Set<UserID> { ["bob", "ghost"] }
    }

    @Test("ST-05 D-22 D-23 a watch answers with config, channel, membership, online, watchers, members, read and messages")
    func answers() throws {
        let world = try CoreWorld()
        world.presence = Board()
        try world.channel("general", owner: "ann", members: ["bob"])
        let message = try world.send("hi", to: "general", as: "ann")
        let watched = try world.perform(WatchChannel(channel: "general", limit: 1), as: "ann", connection: 3)

        let view = try world.perform(GetChannel(channel: "general"), as: "ann")
        let members = try world.perform(ListMembers(channel: "general"), as: "ann").items.map(\.member)
        let users = try world.perform(GetUsers(users: ["ann", "bob"]), as: "ann")
        let policy = try #require(ChannelPolicy.preset(.community))
        let expected = WatchedChannel(
            config: policy, channel: view.channel, membership: view.membership, online: 7, watcherCount: 3,
            watchers: Dictionary(uniqueKeysWithValues: users.map { ($0.userId.rawValue, $0) }),
            members: Dictionary(uniqueKeysWithValues: members.map { ($0.userId.rawValue, $0) }),
            read: [
                "ann": ReadState(readSeq: 1, lastReadAt: nil, unreadCount: 0),
                "bob": ReadState(readSeq: 1, lastReadAt: nil, unreadCount: 1),
            ],
            messages: MessagePage(
                messages: [message], hasOlder: false, hasNewer: false, seq: 2,
                users: users.filter { $0.userId == "ann" }.map(\.summary)),
            ownCapabilities: view.ownCapabilities)
        #expect(watched == expected)
        #expect(world.notices.last == .watching(ConnectionID(rawValue: 3), "ann", "general", at: 2))
    }

    @Test("ST-05 the answer shows 30 members and 30 watchers at most")
    func bounds() throws {
        struct Crowd: Presence {
            func onlineMemberCount(of channel: ChannelID) -> Int { 0 }
            func onlineMembers(of channel: ChannelID) -> Set<UserID> { [] }
            func watchers(of channel: ChannelID) -> Set<UserID> { Set((0..<40).map { UserID("u\($0)") }) }
        }
        let world = try CoreWorld()
        world.presence = Crowd()
        try world.channel("general", owner: "ann", members: (0..<40).map { UserID("u\($0)") })
        let watched = try world.perform(WatchChannel(channel: "general"), as: "ann", connection: 1)
        let counts = [watched.members.count, watched.read.count, watched.watchers.count, watched.watcherCount]
        #expect(counts == [30, 30, 30, 41])
    }

    @Test("ST-02 watching needs a connection")
    func needsConnection() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        let codes = try [
            world.code(WatchChannel(channel: "general"), as: "ann"), world.code(UnwatchChannel(channel: "general"), as: "ann"),
        ]
        #expect(codes == [.notConnected, .notConnected])
    }
}
