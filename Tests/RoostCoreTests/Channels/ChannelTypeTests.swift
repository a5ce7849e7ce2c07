import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

/// The rules of channel types, as in the ledger (§8.2).
@Suite("Channel types") struct ChannelTypeTests {
    /// A world with a few users.
    private func world() throws -> CoreWorld {
        let world = try CoreWorld()
        for user in ["ann", "bob", "cid", "eve"] as [UserID] { try world.user(user) }
        return world
    }

    @Test("AM-14 a channel without a type is a community, and naming the type makes the same request")
    func defaultType() throws {
        let world = try CoreWorld()
        try world.user("ann")
        let made = try world.perform(CreateChannel(channel: "general").with { $0.idempotencyKey = "k" }, as: "ann").channel
        let named = CreateChannel(channel: "general", type: .community).with { $0.idempotencyKey = "k" }
        #expect([made.type, try world.perform(named, as: "ann").channel.type] == [.community, .community])
        #expect(try world.code(CreateChannel(channel: "community:general"), as: "ann") == .alreadyExists)
    }

    @Test("AM-19 a repeated creation is answered whatever its caller may create by now")
    func repeatedWithoutRight() throws {
        let world = try CoreWorld()
        try world.user("ann")
        func put(_ audience: ChannelPolicy.Audience) throws {
            let type = PutChannelType(type: "team", basedOn: .community, policy: PolicyChanges(create: audience))
            try world.perform(type, as: "root", role: .admin)
        }
        try put(.everyone)
        let create = CreateChannel(type: "team").with { $0.idempotencyKey = "k" }
        let made = try world.perform(create, as: "ann").channel.channelId
        try put(.admins)
        #expect(try world.perform(create, as: "ann").channel.channelId == made)
        #expect(try world.code(create.with { $0.idempotencyKey = "l" }, as: "ann") == .kindForbids)
    }

    @Test("AM-05 AM-20 D-16 D-27 the types of the ledger exist, each with its policy")
    func types() throws {
        let types = try world().perform(ListChannelTypes(), as: "ann").map(\.type.rawValue)
        #expect(
            types == ["community", "live", "broadcast", "conversation", "standard", "private", "group", "messaging", "livestream"])
    }

    @Test(
        "AM-19 D-16 R03 users create community, live, conversation and group channels, admins also broadcasts, nobody old kinds")
    func creationRights() throws {
        let world = try world()
        var allowed: [String] = []
        for policy in ChannelPolicy.presets {
            for role in [AppRole.user, .guest, .moderator, .admin, .service] {
                let operation = CreateChannel(type: policy.type, users: ["bob", "cid"])
                let code = try world.code(operation, as: "ann", role: role)
                if code == nil { allowed.append("\(policy.type) \(role)") }
                let expected: RoostError.Code = role == .guest ? .notPermitted : .kindForbids
                if let code { #expect(code == expected, "\(policy.type) \(role)") }
            }
        }
        let open = ["community", "live", "conversation", "group", "messaging", "livestream"]
        let expected = open.flatMap { type in ["user", "moderator", "admin", "service"].map { "\(type) \($0)" } }
        #expect(Set(allowed) == Set(expected + ["broadcast admin", "broadcast service"]))
    }

    @Test("AM-14 R03 a community channel is found by all, read by members, and anyone joins it")
    func community() throws {
        let world = try world()
        try world.channel("open", owner: "ann")
        #expect(try world.code(GetChannel(channel: "open"), as: "eve") == nil)
        #expect(try world.code(ListMessages(channel: "open"), as: "eve") == .notMember)
        #expect(try world.code(SendMessage(channel: "open", clientId: "1", text: "x"), as: "eve") == .notMember)
        #expect(try world.perform(JoinChannel(channel: "open"), as: "eve").membership?.state == .member)
        #expect(try world.code(SendMessage(channel: "open", clientId: "1", text: "x"), as: "eve") == nil)
        #expect(try world.code(SendMessage(channel: "open", clientId: "1", text: "x"), as: "root", role: .admin) == nil)
    }

    @Test("AM-15 AM-22 D-33 a live channel is found by members and admins alone, and joined by anyone who knows its id")
    func live() throws {
        let world = try world()
        try world.channel("live", type: .live, owner: "ann")
        #expect(try world.code(GetChannel(channel: "live"), as: "eve") == .notFound)
        #expect(try world.code(GetChannel(channel: "live"), as: "root", role: .admin) == nil)
        #expect(try world.code(JoinChannel(channel: "live"), as: "eve") == nil)
        #expect(try world.code(SendMessage(channel: "live", clientId: "1", text: "x"), as: "eve") == nil)
        // The switch to invitation only.
        try world.perform(UpdateChannel(channel: "live").with { $0.policy = PolicyChanges(join: .invited) }, as: "ann")
        #expect(try world.code(JoinChannel(channel: "live"), as: "cid") == .inviteRequired)
    }

    @Test("AM-16 AM-22 D-39 in a broadcast only admins send; its owner and operators don't")
    func broadcast() throws {
        let world = try world()
        try world.perform(
            CreateChannel(channel: "news", type: .broadcast).with { $0.operators = ["bob"] }, as: "root", role: .admin)
        try world.perform(JoinChannel(channel: "news"), as: "eve")
        for user in ["bob", "eve"] as [UserID] {
            let refusal = try world.refusal(SendMessage(channel: "news", clientId: "1", text: "x"), as: user)
            #expect(
                refusal
                    == RoostError(.sendNotAllowed, "Only admins can send in this channel.", rule: "message.send is for admins"))
        }
        #expect(try world.code(SendMessage(channel: "news", clientId: "1", text: "x"), as: "root", role: .admin) == nil)
        #expect(try world.perform(ListMessages(channel: "news"), as: "eve").messages.count == 1)
        #expect(try world.code(FreezeChannel(channel: "news"), as: "bob") == .kindForbids)
    }

    @Test("AM-17 a conversation belongs to its members: not even an admin finds it, reads it or writes in it")
    func conversation() throws {
        let world = try world()
        let id = try world.perform(CreateChannel(type: .conversation, users: ["bob"]), as: "ann").channel.channelId
        for (user, role) in [("eve", AppRole.user), ("root", .admin), ("backend", .service), ("mod", .moderator)] {
            let codes = try [
                world.code(GetChannel(channel: id), as: UserID(user), role: role),
                world.code(ListMessages(channel: id), as: UserID(user), role: role),
                world.code(SendMessage(channel: id, clientId: "1", text: "x"), as: UserID(user), role: role),
            ]
            #expect(codes == [.notFound, .notFound, .notFound])
        }
        #expect(try world.code(SendMessage(channel: id, clientId: "1", text: "x"), as: "bob") == nil)
        #expect(try world.code(UpdateChannel(channel: id, displayName: "us"), as: "bob") == nil)
    }

    @Test("AM-18 AM-40 joining, leaving, adding, removing, inviting and moderating are refused in a conversation")
    func conversationForbids() throws {
        let world = try world()
        let id = try world.perform(CreateChannel(type: .conversation, users: ["bob"]), as: "ann").channel.channelId
        let before = try world.dump()
        let operations: [any Handled] = [
            JoinChannel(channel: id), LeaveChannel(channel: id), AddMembers(channel: id, users: ["cid"]),
            RemoveMembers(channel: id, users: ["bob"]), InviteMembers(channel: id, users: ["cid"]),
            SetMemberRole(channel: id, users: ["bob"], role: .operator), FreezeChannel(channel: id), SilenceChannel(channel: id),
            SetRateLimit(channel: id, messages: 1, windowSeconds: 1), DeleteChannel(channel: id),
        ]
        let codes = try operations.map { try world.code($0, as: "ann") }
        #expect(codes == Array(repeating: .kindForbids, count: operations.count))
        #expect(try world.dump() == before)
    }

    @Test("AM-20 imported standard and private channels can be read, but not changed")
    func oldKinds() throws {
        let world = try world()
        for type in [ChannelType.standard, .private] {
            let id = ChannelID("old-\(type)")
            try world.channel(id, owner: "ann", members: ["bob"])
            let discovery: ChannelPolicy.Audience = type == .standard ? .everyone : .members
            try world.execute(
                "UPDATE channels SET type = \(type), discovery = \(discovery), joining = 'nobody' WHERE channel_id = \(id)")
            #expect(try world.code(ListMessages(channel: id), as: "bob") == nil)
            #expect(try world.code(GetChannel(channel: id), as: "eve") == (type == .standard ? nil : .notFound))
            #expect(try world.code(SendMessage(channel: id, clientId: "1", text: "x"), as: "bob") == .kindForbids)
            #expect(try world.code(LeaveChannel(channel: id), as: "bob") == .kindForbids)
        }
    }

    @Test("SB-03 SB-19 a group is private: an invitation is the way in, unless it was created public")
    func group() throws {
        let world = try world()
        try world.channel("private", type: .group, owner: "ann")
        try world.perform(CreateChannel(channel: "public", type: .group).with { $0.isPublic = true }, as: "ann")
        let views = try ["private", "public"].map { try world.perform(GetChannel(channel: ChannelID($0)), as: "ann").channel }
        #expect(views.map(\.isPublic) == [false, true])
        #expect(
            try world.refusal(JoinChannel(channel: "private"), as: "eve")
                == RoostError(
                    .inviteRequired, "The channel is private: you need an invitation.", rule: "member.join needs an invitation"))
        #expect(try world.code(GetChannel(channel: "private"), as: "eve") == .notFound)
        #expect(try world.code(JoinChannel(channel: "public"), as: "eve") == nil)
    }

    @Test("SB-03 R11 a group that is made public can be found and joined by all, until it is made private again")
    func visibility() throws {
        let world = try world()
        try world.channel("group", type: .group, owner: "ann")
        try world.perform(UpdateChannel(channel: "group").with { $0.isPublic = true }, as: "ann")
        #expect(try world.code(JoinChannel(channel: "group"), as: "bob") == nil)
        try world.perform(UpdateChannel(channel: "group").with { $0.isPublic = false }, as: "ann")
        #expect(try world.code(JoinChannel(channel: "group"), as: "cid") == .inviteRequired)
        #expect(try world.code(ListMessages(channel: "group"), as: "bob") == nil)
    }

    @Test("D-27 in a livestream non-members read, watch and write; guests only read and watch")
    func livestream() throws {
        let world = try world()
        try world.channel("stream", type: .livestream, owner: "ann")
        #expect(try world.code(SendMessage(channel: "stream", clientId: "1", text: "x"), as: "eve") == nil)
        #expect(try world.code(WatchChannel(channel: "stream"), as: "eve", connection: 1) == nil)
        #expect(try world.code(WatchChannel(channel: "stream"), as: "guest", role: .guest, connection: 2) == nil)
        #expect(
            try world.code(SendMessage(channel: "stream", clientId: "1", text: "x"), as: "guest", role: .guest) == .notPermitted)
    }

    @Test("D-39 an added guest reads and leaves, and is refused reading.unread and all writes")
    func guestMembers() throws {
        let world = try world()
        try world.channel("room", type: .messaging, owner: "ann", members: ["guest"])
        func code(_ operation: some Handled) throws -> RoostError.Code? { try world.code(operation, as: "guest", role: .guest) }
        let allowed = try [
            code(ListMessages(channel: "room")), code(GetChannel(channel: "room")), code(ListMembers(channel: "room")),
            code(ListInvitations(channel: "room")), code(UpdateMe(displayName: "G")),
            code(UpdatePreferences(autoAcceptInvitations: false)), code(GetTotalUnread()),
        ]
        #expect(allowed == Array(repeating: nil, count: 7))
        let refused = try [
            code(GetUnread(channel: "room")), code(MarkRead(channel: "room")),
            code(SendMessage(channel: "room", clientId: "1", text: "x")), code(InviteMembers(channel: "room", users: ["eve"])),
            code(HideChannel(channel: "room")),
        ]
        #expect(refused == Array(repeating: .notPermitted, count: 5))
        #expect(try code(LeaveChannel(channel: "room")) == nil)
        #expect(try code(ListMessages(channel: "room")) == .notFound)
    }

    @Test("R03 a channel can't override what its type has fixed, or decide what only types decide")
    func fixed() throws {
        let world = try world()
        try world.channel("live", type: .live, owner: "ann")
        try world.channel("open", owner: "ann")
        let before = try world.dump()
        func refusal(_ channel: ChannelID, _ policy: PolicyChanges) throws -> (RoostError.Code?, String?) {
            let refusal = try world.refusal(UpdateChannel(channel: channel).with { $0.policy = policy }, as: "ann")
            return (refusal?.code, refusal?.field)
        }
        #expect(try refusal("live", PolicyChanges(discovery: .everyone)) == (.immutableField, "policy.discovery"))
        // A rule that another field stands for is refused by that field's name.
        let refusals = try [
            world.refusal(UpdateChannel(channel: "live").with { $0.isPublic = true }, as: "ann"),
            world.refusal(CreateChannel(type: .live, isPublic: true), as: "ann"),
        ]
        #expect(refusals.map { $0?.code } == [.immutableField, .immutableField])
        #expect(refusals.map { $0?.field } == ["isPublic", "isPublic"])
        var create = PolicyChanges()
        create.create = .nobody
        #expect(try refusal("open", create) == (.invalidArgument, "policy.create"))
        #expect(try refusal("open", PolicyChanges(maxMembers: 0)) == (.invalidArgument, "policy.maxMembers"))
        #expect(try refusal("open", PolicyChanges(maxMembers: 300_001)) == (.limitExceeded, "policy.maxMembers"))
        #expect(try world.dump() == before)
    }

    @Test("R03 a channel may differ from its type where allowed, and says so")
    func differs() throws {
        let world = try world()
        try world.channel("open", owner: "ann", members: ["bob"])
        let changed = try world.perform(
            UpdateChannel(channel: "open").with { $0.policy = PolicyChanges(send: .operators, maxMembers: 2) }, as: "ann")
        #expect(changed.policy == PolicyChanges(send: .operators, maxMembers: 2))
        #expect(try world.code(SendMessage(channel: "open", clientId: "1", text: "x"), as: "bob") == .sendNotAllowed)
        #expect(try world.code(SendMessage(channel: "open", clientId: "1", text: "x"), as: "ann") == nil)
        #expect(try world.code(JoinChannel(channel: "open"), as: "cid") == .memberLimit)
    }
}
