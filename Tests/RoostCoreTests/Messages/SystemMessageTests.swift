import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@Suite("System messages")
struct SystemMessageTests {
    private static func world(_ policy: PolicyChanges, type: ChannelType = .community) throws -> CoreWorld {
        let world = try CoreWorld()
        for user in ["ann", "ben", "cid", "dan", "eve", "fay"] as [UserID] { try world.user(user) }
        try world.perform(UpdateMe(displayName: "Ann A."), as: "ann")
        try world.channel("room", type: type, owner: "ann")
        if !policy.names.isEmpty { try world.perform(UpdateChannel(channel: "room", policy: policy), as: "root", role: .admin) }
        return world
    }

    private static let all = PolicyChanges(announcesJoins: true, announcesLeaves: true, announcesNames: true)

    private func messages(in world: CoreWorld, as user: UserID = "ann") throws -> [Message] {
        try world.perform(ListMessages(channel: "room"), as: user).messages
    }

    @Test("R19 the server says who joined, was added, left or was removed, and the channel's new name")
    func everyKind() throws {
        let world = try Self.world(Self.all)
        try world.perform(JoinChannel(channel: "room"), as: "ben")
        try world.perform(JoinChannel(channel: "room"), as: "ben")
        try world.perform(AddMembers(channel: "room", users: ["ben", "cid"]), as: "ann")
        try world.perform(AddMembers(channel: "room", users: ["dan", "eve", "fay"]), as: "ann")
        try world.perform(LeaveChannel(channel: "room"), as: "ben")
        try world.perform(LeaveChannel(channel: "room"), as: "ben")
        try world.perform(RemoveMembers(channel: "room", users: ["cid", "ben", "dan"]), as: "ann")
        try world.perform(UpdateChannel(channel: "room", displayName: "Lunch"), as: "ann")
        try world.perform(UpdateChannel(channel: "room", displayName: "Lunch"), as: "ann")
        try world.perform(UpdateChannel(channel: "room", displayName: ""), as: "ann")
        let sent = try messages(in: world)
        #expect(
            sent.map(\.text) == [
                "ben joined.", "Ann A. added cid.", "Ann A. added dan, eve and fay.", "ben left.", "Ann A. removed cid and dan.",
                "Ann A. named the channel “Lunch”.", "Ann A. removed the channel's name.",
            ])
        #expect(sent.map(\.sender) == ["ben", "ann", "ann", "ben", "ann", "ann", "ann"])
        #expect(sent.allSatisfy { $0.kind == .system && !Unread.counts($0) })
        let events = sent.compactMap(\.content.systemEvent)
        #expect(
            events.map(\.kind) == [
                .memberJoined, .memberJoined, .memberJoined, .memberLeft, .memberLeft, .channelRenamed, .channelRenamed,
            ])
        #expect(events[2].users == ["dan", "eve", "fay"] && events[2].userCount == 3)
        // They belong to nobody, unless requested.
        let hers = ListMessages(channel: "room", senders: ["ann"])
        #expect(try world.perform(hers, as: "ann").messages == [])
        var named = hers
        named.kinds = [.system]
        #expect(try world.perform(named, as: "ann").messages == sent.filter { $0.sender == "ann" })
        #expect(events[5].displayName == "Lunch" && events[6].displayName == nil && events[5].userCount == 0)
    }

    @Test("R19 three users are named, and the others are counted", arguments: [(4, "1 other"), (5, "2 others")])
    func others(count: Int, others: String) throws {
        let world = try Self.world(Self.all)
        let users = (1...count).map { UserID("u\($0)") }
        for user in users { try world.user(user) }
        try world.perform(AddMembers(channel: "room", users: users), as: "ann")
        #expect(try messages(in: world).map(\.text) == ["Ann A. added u1, u2, u3 and \(others)."])
    }

    @Test("R19 a name that changes only in its bytes is announced, as it is stored and sent")
    func renamedInBytes() throws {
        let world = try Self.world(PolicyChanges(announcesNames: true))
        let names = ["Caf\u{e9}", "Cafe\u{301}"]
        for name in names + names.suffix(1) { try world.perform(UpdateChannel(channel: "room", displayName: name), as: "ann") }
        let announced = try messages(in: world).compactMap(\.content.systemEvent?.displayName)
        #expect(announced.map { Array($0.utf8) } == names.map { Array($0.utf8) })
    }

    @Test("R19 each of the policy's switches announces only its own kind")
    func oneAtATime() throws {
        let switches = [
            (PolicyChanges(announcesJoins: true), "ben joined."), (PolicyChanges(announcesLeaves: true), "ben left."),
            (PolicyChanges(announcesNames: true), "Ann A. named the channel “Lunch”."),
        ]
        for (policy, text) in switches {
            let world = try Self.world(policy)
            try world.perform(JoinChannel(channel: "room"), as: "ben")
            try world.perform(UpdateChannel(channel: "room", displayName: "Lunch"), as: "ann")
            try world.perform(LeaveChannel(channel: "room"), as: "ben")
            #expect(try messages(in: world).map(\.text) == [text])
        }
    }

    @Test("R19 AM-24 an accepted invitation is announced as joining, and a channel's first members aren't announced")
    func invitations() throws {
        let world = try Self.world(Self.all, type: .group)
        try world.perform(UpdatePreferences(autoAcceptInvitations: false), as: "ben")
        try world.perform(InviteMembers(channel: "room", users: ["ben", "cid"]), as: "ann")
        try world.perform(AcceptInvitation(channel: "room"), as: "ben")
        #expect(try messages(in: world).map(\.text) == ["Ann A. added cid.", "ben joined."])
    }

    @Test("R19 AM-43 SB-27 D-32 system messages are never unread and bring back no hidden channel")
    func unread() throws {
        let world = try Self.world(Self.all)
        try world.perform(JoinChannel(channel: "room"), as: "ben")
        try world.perform(HideChannel(channel: "room"), as: "ben")
        try world.perform(JoinChannel(channel: "room"), as: "cid")
        for user in ["ann", "ben", "cid"] as [UserID] {
            #expect(try world.perform(GetUnread(channel: "room"), as: user).unreadCount == 0)
        }
        #expect(try world.perform(QueryChannels(hidden: .unhiddenOnly), as: "ben").items.isEmpty)
        // It is still the channel's last message.
        #expect(try world.perform(QueryChannels(), as: "ann").items.first?.lastMessage?.text == "cid joined.")
    }

    @Test("R19 there are none by default, and none in channels with more than 1,000 members unless the policy sets it")
    func policy() throws {
        for preset in ChannelPolicy.presets {
            #expect(!preset.announcesJoins && !preset.announcesLeaves && !preset.announcesNames && !preset.announcesInLargeChannels)
        }
        let silent = try Self.world(PolicyChanges())
        try silent.perform(JoinChannel(channel: "room"), as: "ben")
        #expect(try messages(in: silent).isEmpty)
        let world = try Self.world(Self.all)
        func joins(_ user: UserID, at count: Int) throws -> Int {
            try world.execute("UPDATE channel_heads SET member_count = \(Int64(count)) WHERE channel_id = 'room'")
            let before = try messages(in: world).count
            try world.perform(JoinChannel(channel: "room"), as: user)
            return try messages(in: world).count - before
        }
        #expect(try joins("ben", at: Limits.largeChannelMembers - 1) == 1)
        #expect(try joins("cid", at: Limits.largeChannelMembers) == 0)
        try world.perform(
            UpdateChannel(channel: "room", policy: PolicyChanges(announcesInLargeChannels: true)), as: "root", role: .admin)
        #expect(try joins("dan", at: Limits.largeChannelMembers + 5) == 1)
        // Conversations stay the same.
        try world.channel("talk", type: .conversation, owner: "ann", members: ["ben"])
        let refusal = try world.refusal(
            UpdateChannel(channel: "talk", policy: PolicyChanges(announcesNames: true)), as: "root", role: .admin)
        #expect(refusal != nil)
    }

    @Test("R19 SB-58 SB-59 nobody edits a system message; only users who may delete anybody's messages delete it")
    func changes() throws {
        let world = try Self.world(Self.all)
        try world.perform(JoinChannel(channel: "room"), as: "ben")
        let message = try #require(try messages(in: world).first)
        let before = try world.dump()
        #expect(try world.code(EditMessage(channel: "room", message: message.messageId, text: "x"), as: "ben") == .notMessageOwner)
        #expect(try world.code(DeleteMessage(channel: "room", message: message.messageId), as: "ben") == .notMessageOwner)
        #expect(try world.code(PurgeMessage(channel: "room", message: message.messageId), as: "ben") == .notMessageOwner)
        #expect(try world.code(EditMessage(channel: "room", message: message.messageId, text: "x"), as: "ann") == .notPermitted)
        let lists = UpdateMetaArrays(channel: "room", message: message.messageId, create: ["k"])
        #expect(try world.code(lists, as: "ann") == .notPermitted)
        #expect(try world.dump() == before)
        let deleted = try world.perform(DeleteMessage(channel: "room", message: message.messageId), as: "ann")
        #expect(deleted.content == MessageContent(text: "", kind: .system) && deleted.content.systemEvent == nil)
    }

    @Test("R19 I1 nobody can send the client id of one of the server's messages, which would be taken for theirs")
    func clientID() throws {
        let world = try Self.world(Self.all)
        try world.perform(JoinChannel(channel: "room"), as: "ben")
        let message = try #require(try messages(in: world).first)
        #expect(message.sender == "ben" && message.clientId.rawValue.wholeMatch(of: /system\/[0-9]+/) != nil)
        let before = try world.dump()
        let refusal = try world.refusal(SendMessage(channel: "room", clientId: message.clientId, text: "hello"), as: "ben")
        #expect(refusal?.code == .invalidArgument && refusal?.field == "clientId")
        #expect(try world.dump() == before)
    }

    @Test(
        "R19 I1 sending the client id of an old message of the server, which had only digits, isn't answered with that one")
    func oldClientID() throws {
        let world = try Self.world(Self.all)
        try world.perform(JoinChannel(channel: "room"), as: "ben")
        let message = try #require(try messages(in: world).first)
        try world.execute("UPDATE messages SET client_id = '382489492373635072' WHERE message_id = \(message.messageId)")
        let send = SendMessage(channel: "room", clientId: "382489492373635072", text: "hello")
        let before = try world.dump()
        let refusal = try world.refusal(send, as: "ben")
        #expect(refusal?.code == .invalidArgument && refusal?.field == "clientId")
        #expect(try world.dump() == before)
        // Only the sender's own id counts as taken.
        #expect(try world.perform(send, as: "ann").text == "hello")
    }

    @Test("R19 I1 nor with the place of one deleted for good; the sender's own message stays acknowledged")
    func oldPurgedClientID() throws {
        let world = try Self.world(Self.all)
        try world.perform(JoinChannel(channel: "room"), as: "ben")
        let message = try #require(try messages(in: world).first)
        let old = message.clientId.rawValue.replacing("system/", with: "")
        try world.execute("UPDATE messages SET client_id = \(old) WHERE message_id = \(message.messageId)")
        let own = SendMessage(channel: "room", clientId: "382489492373635072", text: "hello", isSilent: true)
        let sent = try world.perform(own, as: "ben")
        for id in [message.messageId, sent.messageId] {
            try world.perform(PurgeMessage(channel: "room", message: id), as: "root", role: .admin)
        }
        let before = try world.dump()
        let refusal = try world.refusal(SendMessage(channel: "room", clientId: ClientID(old), text: "hello"), as: "ben")
        #expect(refusal?.code == .invalidArgument && refusal?.field == "clientId")
        #expect(try world.dump() == before)
        #expect(try world.perform(own, as: "ben").messageId == sent.messageId)
    }

    @Test("R19 D-11 a newcomer whose history is hidden sees their own joining, and a long list of users is cut and counted")
    func newcomers() throws {
        let world = try Self.world(Self.all)
        let many = (0..<40).map { UserID("user-\($0)") }
        for user in many { try world.user(user) }
        try world.perform(AddMembers(channel: "room", users: many), as: "ann")
        let event = try #require(try messages(in: world).first?.content.systemEvent)
        #expect(event.users == Array(many.prefix(Limits.systemMessageUsers)) && event.userCount == 40)
        #expect(try messages(in: world).first?.text == "Ann A. added user-0, user-1, user-2 and 37 others.")
        world.options.showsHistoryToNewMembers = false
        try world.perform(JoinChannel(channel: "room"), as: "ben")
        #expect(try messages(in: world, as: "ben").map(\.text) == ["ben joined."])
    }
}
