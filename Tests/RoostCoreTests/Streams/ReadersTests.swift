import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

/// Exactly the users who may read a channel's history get its events with their messages.
@Suite("Readers")
struct ReadersTests {
    @Test(
        "I10 R23 ST-05 the readers of an event are the users with history.read, and its watchers those with channel.watch",
        arguments: ChannelPolicy.Audience.allCases)
    func agree(read: ChannelPolicy.Audience) throws {
        let world = try CoreWorld()
        try world.user("stranger")
        try world.user("root")
        try world.user("asked")
        try world.perform(UpdatePreferences(autoAcceptInvitations: false), as: "asked")
        try world.perform(PutRole(role: "reader", rank: 5, permissions: [.historyRead]), as: "root", role: .admin)
        try world.perform(PutRole(role: "watcher", rank: 5, permissions: [.channelWatch]), as: "root", role: .admin)
        try world.perform(PutRole(role: "writer", rank: 5, permissions: [.messageSend]), as: "root", role: .admin)
        try world.channel("room", owner: "owner", members: ["operator", "reader", "watcher", "writer", "member"])
        for role in ["operator", "reader", "watcher", "writer"] as [UserID] {
            try world.setRole(ChannelRole(rawValue: role.rawValue), of: role, in: "room")
        }
        try world.perform(InviteMembers(channel: "room", users: ["asked"]), as: "owner")
        let roles: [UserID: ChannelRole] = [
            "owner": .owner, "operator": .operator, "reader": "reader", "watcher": "watcher", "writer": "writer",
            "member": .member,
        ]
        var wrong: [String] = []
        for discovery in [ChannelPolicy.Audience.everyone, .members, .membersOnly, .operators, .nobody] {
            try setPolicy(PolicyChanges(discovery: discovery, read: read), in: world)
            let notices = try world.notices {
                try world.perform(SendMessage(channel: "room", clientId: .init("\(discovery)"), text: "x"), as: "owner")
            }
            guard case .event(_, .channel("room", let readers)) = notices.first else { throw Missed("an event") }
            for user in ["owner", "operator", "reader", "watcher", "writer", "member", "stranger", "asked"] as [UserID] {
                for appRole in AppRole.allCases {
                    let mayRead = try world.code(ListMessages(channel: "room"), as: user, role: appRole) == nil
                    if readers.contain(appRole, as: roles[user]) != mayRead {
                        wrong.append("\(user) as \(appRole), found by \(discovery): may read: \(mayRead)")
                    }
                    let mayWatch = try world.code(WatchChannel(channel: "room"), as: user, role: appRole, connection: 1) == nil
                    if readers.letWatch(appRole, as: roles[user]) != mayWatch {
                        wrong.append("\(user) as \(appRole), found by \(discovery): may watch: \(mayWatch)")
                    }
                }
            }
        }
        #expect(wrong == [])
    }

    @Test("R23 I10 a member who may not read follows the stream without messages, and lists no history")
    func positions() throws {
        let world = try CoreWorld()
        try world.channel("room", owner: "owner", members: ["member"])
        try world.send("before", to: "room", as: "owner")
        try world.perform(UpdateChannel(channel: "room").with { $0.policy = PolicyChanges(read: .owners) }, as: "owner")
        let sent = try world.send("after", to: "room", as: "owner")
        #expect(try world.code(ListMessages(channel: "room"), as: "member") == .notPermitted)
        #expect(try world.code(WatchChannel(channel: "room"), as: "member", connection: 1) == .notPermitted)
        let changes = try world.perform(GetChannelChanges(channel: "room", after: 1), as: "member")
        #expect(changes.seq == sent.seq && changes.rows.messages == nil && changes.rows.counters?.messageCount == 2)
        let resumed = try world.perform(Resume(after: 0, channels: ["room": 1]), as: "member")
        let fresh = try world.perform(Resume(after: 0, channels: [:]), as: "member")
        #expect((resumed.channels + fresh.channels).map { $0.rows.messages ?? [] } == [[], []])
        #expect((resumed.channels + fresh.channels).map(\.seq) == [sent.seq, sent.seq])
        #expect(try world.perform(GetUnread(channel: "room"), as: "member").unreadCount == 2)
        #expect(try world.perform(GetChannel(channel: "room"), as: "member").lastMessage == nil)
        #expect(try world.perform(ListMessages(channel: "room"), as: "owner").messages.count == 2)
        // A replacement for missed events has everything, and names its readers.
        let missed = try world.database.read { try $0.missedEvents(of: .channel("room"), after: 1, now: world.now) }
        guard case .event(let event, .channel("room", let readers)) = missed.notices.last else { throw Missed("an event") }
        #expect(event.rows.messages?.map(\.text) == ["before", "after"])
        #expect(readers == Readers(members: .admin, others: .admin, roles: [.owner]))
    }

    @Test("SB-19 an invitation, or knowing the id, doesn't show messages, whatever the policy of reading")
    func invited() throws {
        let world = try CoreWorld()
        try world.user("asked")
        try world.perform(UpdatePreferences(autoAcceptInvitations: false), as: "asked")
        try world.channel("room", type: .livestream, owner: "owner")
        try world.send("x", to: "room", as: "owner")
        #expect(try world.code(ListMessages(channel: "room"), as: "asked") == nil)
        try world.perform(UpdateChannel(channel: "room").with { $0.isPublic = false }, as: "owner")
        #expect(try world.code(ListMessages(channel: "room"), as: "asked") == .notFound)
        try world.perform(InviteMembers(channel: "room", users: ["asked"]), as: "owner")
        #expect(try world.code(ListMessages(channel: "room"), as: "asked") == .notMember)
        #expect(try world.code(WatchChannel(channel: "room"), as: "asked", connection: 1) == .notMember)
        #expect(try world.perform(GetChannel(channel: "room"), as: "asked").lastMessage == nil)
    }

    private func setPolicy(_ changes: PolicyChanges, in world: CoreWorld) throws {
        // An admin who is a member has all rights, and loses none by being a member.
        if try world.code(GetMember(channel: "room", user: "root"), as: "owner") != nil {
            try world.perform(AddMembers(channel: "room", users: ["root"]), as: "owner")
        }
        try world.perform(UpdateChannel(channel: "room").with { $0.policy = changes }, as: "root", role: .admin)
    }
}

/// The answer to a repeated call after its right has ended.
@Suite("Repeats after a loss")
struct RepeatsAfterLossTests {
    @Test("SB-12 an idempotency key shows a removed creator nothing of the private channel", arguments: [true, false])
    func idempotencyKey(isRemoved: Bool) throws {
        let world = try CoreWorld()
        for user in ["ann", "bob"] as [UserID] { try world.user(user) }
        var create = CreateChannel(channel: "room", type: .messaging, users: ["bob"])
        create.idempotencyKey = "once"
        try world.perform(create, as: "ann")
        #expect(try world.perform(create, as: "ann").channel.channelId == "room")
        try world.perform(SetMemberRole(channel: "room", users: ["bob"], role: .owner), as: "ann")
        if isRemoved {
            try world.perform(RemoveMembers(channel: "room", users: ["ann"]), as: "bob")
        } else {
            try world.perform(LeaveChannel(channel: "room"), as: "ann")
        }
        try world.perform(UpdateChannel(channel: "room", displayName: "Without Ann"), as: "bob")
        let refusal = try world.refusal(create, as: "ann")
        #expect(refusal == RoostError.notFound("channel"))
        #expect(try world.refusal(GetChannel(channel: "room"), as: "ann") == refusal)
        // It made nothing.
        #expect(try world.perform(QueryChannels(membership: .all), as: "ann").items.isEmpty)
    }

    @Test("SB-12 a backend's key keeps answering with the channel that it made, of any type")
    func backend() throws {
        let world = try CoreWorld()
        for user in ["ann", "bob"] as [UserID] { try world.user(user) }
        var create = CreateChannel(channel: "talk", type: .conversation, users: ["ann", "bob"])
        create.idempotencyKey = "once"
        try world.perform(create, as: "shop", role: .service)
        #expect(try world.perform(create, as: "shop", role: .service).channel.channelId == "talk")
    }

    @Test("I4 a user's own message, sent again after the right to read has ended, is answered as it was sent", arguments: 0..<3)
    func clientId(way: Int) throws {
        let world = try CoreWorld()
        try world.channel("room", type: .messaging, owner: "ann", members: ["bob"])
        let send = SendMessage(channel: "room", clientId: "1", text: "mine")
        let stored = try world.perform(send, as: "bob")
        func takeAway() throws {
            switch way {
            case 0: try world.perform(RemoveMembers(channel: "room", users: ["bob"]), as: "ann")
            case 1: try world.perform(UpdateChannel(channel: "room").with { $0.policy = PolicyChanges(read: .owners) }, as: "ann")
            default: try world.perform(HideChannel(channel: "room", hidePreviousMessages: true), as: "bob")
            }
        }
        try takeAway()
        try world.perform(EditMessage(channel: "room", message: stored.messageId, text: "ann's"), as: "ann")
        let before = try world.dump()
        let repeated = try world.perform(send, as: "bob")
        #expect(repeated == stored)
        #expect(try world.dump() == before)
        // Users who may read it get it unchanged.
        try world.perform(AddMembers(channel: "room", users: ["bob"]), as: "ann")
        if way == 0 { #expect(try world.perform(send, as: "bob").text == "ann's") }
    }
}
