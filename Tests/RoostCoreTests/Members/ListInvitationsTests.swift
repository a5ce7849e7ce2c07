import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@Suite("Lists of invitations")
struct ListInvitationsTests {
    private func world(_ type: ChannelType = .group) throws -> CoreWorld {
        let world = try CoreWorld()
        for user in ["bob", "cid", "dan", "eve"] as [UserID] {
            try world.user(user)
            try world.perform(UpdatePreferences(autoAcceptInvitations: false), as: user)
        }
        for channel in ["one", "two", "three"] as [ChannelID] { try world.channel(channel, type: type, owner: "ann") }
        return world
    }

    @Test(
        "SB-13 R14 members list the pending invitations of a channel, newest first, page by page",
        arguments: [.group, .community, .messaging] as [ChannelType])
    func ofChannel(type: ChannelType) throws {
        let world = try world(type)
        for user in ["cid", "bob", "eve", "dan"] as [UserID] {
            world.advance(milliseconds: 1)
            try world.perform(InviteMembers(channel: "one", users: [user]), as: "ann")
        }
        try world.perform(DeclineInvitation(channel: "one"), as: "eve")
        var list = ListInvitations(channel: "one", limit: 2)
        let first = try world.perform(list, as: "ann")
        list.cursor = first.nextCursor
        let second = try world.perform(list, as: "ann")
        #expect([first, second].map { $0.items.map(\.userId) } == [["dan", "bob"], ["cid"]])
        list.cursor = second.previousCursor
        #expect(try world.perform(list, as: "ann").items == first.items)
        #expect([first.previousCursor, second.nextCursor] == [nil, nil])
        #expect(try world.code(ListInvitations(channel: "one"), as: "bob") == .notMember)
        // A user who is invited again is the newest, even at the same moment.
        try world.perform(WithdrawInvitations(channel: "one", users: ["cid"]), as: "ann")
        try world.perform(InviteMembers(channel: "one", users: ["eve", "cid"]), as: "ann")
        #expect(try world.perform(ListInvitations(channel: "one"), as: "ann").items.map(\.userId) == ["cid", "eve", "dan", "bob"])
    }

    @Test("SB-15 R14 a user's own pending invitations come with their channels, newest first, without deleted ones")
    func mine() throws {
        let world = try world()
        for channel in ["one", "two", "three"] as [ChannelID] {
            world.advance(milliseconds: 1)
            try world.perform(InviteMembers(channel: channel, users: ["bob"], welcome: "Hi"), as: "ann")
        }
        var list = ListMyInvitations(limit: 2)
        let first = try world.perform(list, as: "bob")
        #expect(first.items.map { [$0.channel.channelId, $0.invitation.channelId] } == [["three", "three"], ["two", "two"]])
        list.cursor = first.nextCursor
        #expect(try world.perform(list, as: "bob").items.map(\.channel.channelId) == ["one"])
        try world.perform(DeclineInvitation(channel: "three"), as: "bob")
        try world.perform(DeleteChannel(channel: "one"), as: "ann")
        #expect(try world.perform(ListMyInvitations(), as: "bob").items.map(\.channel.channelId) == ["two"])
        #expect(try world.perform(ListMyInvitations(), as: "ann").items.isEmpty)
    }
}
