import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

/// Adding, removing and giving roles, several at once.
@Suite("Members in bulk") struct BulkTests {
    private func world() throws -> CoreWorld {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob", "cid"])
        for user in ["dan", "eve"] as [UserID] { try world.user(user) }
        return world
    }

    private func roles(in world: CoreWorld) throws -> [String] {
        try world.perform(ListMembers(channel: "general", sort: .userId), as: "ann").items.map {
            "\($0.member.userId) \($0.member.role)"
        }
    }

    @Test("AM-40 R13 users are added in one change, with a result for each")
    func adds() throws {
        let world = try world()
        let before = try world.perform(GetChannel(channel: "general"), as: "ann").channel.counters
        let notices = try world.notices {
            let results = try world.perform(AddMembers(channel: "general", users: ["eve", "bob", "nobody", "dan"]), as: "ann")
                .results
            #expect(results.map(\.outcome) == [.added, .alreadyMember, .refused, .added])
        }
        let counters = try world.perform(GetChannel(channel: "general"), as: "ann").channel.counters
        #expect([counters.seq, Seq(counters.memberCount)] == [before.seq + 1, Seq(before.memberCount + 2)])
        let events = notices.compactMap { notice -> String? in
            guard case .event(let event, let audience) = notice else { return nil }
            return "\(event.kind.rawValue) \(audience) \(event.rows.members?.map(\.userId.rawValue) ?? [])"
        }
        let expected = [
            "member.joined \(Audience.channel("general")) [\"eve\", \"dan\"]", "member.joined \(Audience.user("eve")) []",
            "member.joined \(Audience.user("dan")) []",
        ]
        #expect(events == expected)
        #expect(try world.code(AddMembers(channel: "general", users: ["x"]), as: "bob") == .notPermitted)
        #expect(try world.code(AddMembers(channel: "general", users: ["x"]), as: "stranger") == .notMember)
    }

    @Test("AM-40 adding a member again changes nothing and sends no event")
    func addsAgain() throws {
        let world = try world()
        let before = try world.dump()
        let notices = try world.notices { try world.perform(AddMembers(channel: "general", users: ["bob", "cid"]), as: "ann") }
        #expect(notices == [])
        #expect(try world.dump() == before)
    }

    @Test("AM-01 SB-01 D-26 a channel is full at its limit: the rest of a call is refused, each by name")
    func full() throws {
        let world = try world()
        try world.perform(UpdateChannel(channel: "general").with { $0.policy = PolicyChanges(maxMembers: 4) }, as: "ann")
        let results = try world.perform(AddMembers(channel: "general", users: ["dan", "eve"]), as: "ann").results
        #expect(results.map(\.outcome) == [.added, .refused] && results.last?.error?.code == .memberLimit)
        #expect(try world.code(JoinChannel(channel: "general"), as: "eve") == .memberLimit)
        let defaults = [ChannelType.community, .live, .broadcast, .group, .conversation, .messaging]
            .compactMap { ChannelPolicy.preset($0)?.maxMembers }
        #expect(defaults == [300_000, 300_000, 300_000, 100, 100, 100])
        let many = (0..<100).map { UserID("u\($0)") }
        for user in many { try world.user(user) }
        #expect(try world.code(CreateChannel(type: .group, users: many), as: "ann") == .memberLimit)
        #expect(try world.code(CreateChannel(type: .group, users: Array(many.dropFirst())), as: "ann") == nil)
    }

    @Test("AM-40 EM-29 R13 a member with a higher role removes others; they learn it, and the rest that they left")
    func removes() throws {
        let world = try world()
        try world.perform(SetMemberRole(channel: "general", users: ["bob"], role: .operator), as: "ann")
        let found = try world.notices {
            let results = try world.perform(RemoveMembers(channel: "general", users: ["cid", "ann", "bob", "eve"]), as: "bob")
                .results
            #expect(results.map(\.outcome) == [.removed, .refused, .refused, .notMember])
        }
        let notices = found.map { notice in
            switch notice {
            case .event(let event, let audience): "\(event.kind.rawValue) \(audience)"
            case .left(let user, _, let seq, _): "left \(user) at \(seq)"
            default: "?"
            }
        }
        #expect(
            notices == ["left cid at 3", "member.left \(Audience.channel("general"))", "member.removed \(Audience.user("cid"))"])
        #expect(try world.code(RemoveMembers(channel: "general", users: ["bob"]), as: "cid") == .notMember)
        #expect(try world.code(JoinChannel(channel: "general"), as: "cid") == nil)
        #expect(try world.code(RemoveMembers(channel: "general", users: ["bob"]), as: "cid") == .notPermitted)
    }

    @Test("SB-10 SB-22 R33 roles are given by members of a higher rank, and each recipient gets its permissions")
    func setsRoles() throws {
        let world = try world()
        let notices = try world.notices {
            try world.perform(SetMemberRole(channel: "general", users: ["bob", "cid"], role: .operator), as: "ann")
        }
        #expect(try roles(in: world) == ["ann owner", "bob operator", "cid operator"])
        let capabilities = notices.compactMap { notice -> Bool? in
            guard case .event(let event, .user) = notice else { return nil }
            return event.rows.ownCapabilities?["general"]?.contains(.channelFreeze)
        }
        #expect(capabilities == [true, true])
        func outcome(_ user: UserID, _ role: ChannelRole, by actor: UserID) throws -> String {
            do {
                return try world.perform(SetMemberRole(channel: "general", users: [user], role: role), as: actor).results
                    .map(\.outcome.rawValue).joined()
            } catch let error as RoostError { return error.code.rawValue }
        }
        let outcomes = try [
            outcome("cid", .member, by: "bob"), outcome("ann", .member, by: "bob"), outcome("bob", .owner, by: "bob"),
            outcome("bob", .member, by: "bob"), outcome("cid", .operator, by: "bob"), outcome("cid", .operator, by: "ann"),
            outcome("eve", .operator, by: "ann"), outcome("cid", "unknown", by: "ann"),
        ]
        #expect(
            outcomes == [
                "refused", "refused", "not_permitted", "changed", "not_permitted", "unchanged", "not_member", "not_found",
            ])
    }

    @Test("R33 an owner who hands the channel over becomes an operator")
    func handsOver() throws {
        let world = try world()
        #expect(
            try world.code(SetMemberRole(channel: "general", users: ["bob", "cid"], role: .owner), as: "ann") == .limitExceeded)
        try world.perform(SetMemberRole(channel: "general", users: ["bob"], role: .owner), as: "ann")
        #expect(try roles(in: world) == ["ann operator", "bob owner", "cid member"])
        #expect(try world.code(DeleteChannel(channel: "general"), as: "ann") == .notPermitted)
        #expect(try world.code(DeleteChannel(channel: "general"), as: "bob") == nil)
    }

    @Test("SB-14 D-11 R23 new members see earlier messages, unless the app or the user who adds them hides them")
    func history() throws {
        let world = try world()
        let old = try world.send("old", to: "general", as: "ann")
        try world.perform(AddMembers(channel: "general", users: ["dan"], hideHistory: true), as: "ann")
        try world.perform(AddMembers(channel: "general", users: ["eve"]), as: "ann")
        func texts(_ user: UserID) throws -> [String] {
            try world.perform(ListMessages(channel: "general"), as: user).messages.map(\.text)
        }
        #expect(try [texts("dan"), texts("eve")] == [[], ["old"]])
        world.options.showsHistoryToNewMembers = false
        try world.user("fay")
        let view = try world.perform(JoinChannel(channel: "general"), as: "fay")
        #expect(view.lastMessage == nil && view.unreadCount == 0)
        // Adding a member can't show history that the app hides.
        try world.user("gus")
        try world.perform(AddMembers(channel: "general", users: ["gus"], hideHistory: false), as: "ann")
        #expect(try texts("gus") == [])
        let new = try world.send("new", to: "general", as: "ann")
        #expect(try [texts("dan"), texts("eve"), texts("fay"), texts("gus")] == [["new"], ["old", "new"], ["new"], ["new"]])
        #expect(try world.perform(GetChannel(channel: "general"), as: "fay").lastMessage == new)
        #expect(old.seq < (view.membership?.historyFloor ?? 0) + 1)
    }

    @Test("AM-03 AM-26 AM-28 D-17 R13 joining again changes nothing; a creator is a member and owner already")
    func joins() throws {
        let world = try world()
        let before = try world.dump()
        let view = try world.perform(JoinChannel(channel: "general"), as: "ann")
        #expect(view.membership?.role == .owner)
        #expect(try world.dump() == before)
        #expect(try world.code(JoinChannel(channel: "unknown"), as: "ann") == .notFound)
    }

    @Test("AM-31 R30 a banned user learns it and until when, and may rejoin when the ban expires")
    func banned() throws {
        let world = try world()
        let until = world.now.after(seconds: 60)
        try world.execute("UPDATE members SET state = 'none', banned_until = \(until) WHERE user_id = 'bob'")
        let expected = RoostError(
            .banned, "You are banned from the channel.", rule: "member.join: not while banned", until: until,
            retryAfterMilliseconds: 60_000)
        #expect(try world.refusal(JoinChannel(channel: "general"), as: "bob") == expected)
        let results = try world.perform(AddMembers(channel: "general", users: ["bob"]), as: "ann").results
        let ofAnother = RoostError(
            .banned, "The user is banned from the channel.", rule: "member.add: not while banned", until: until,
            retryAfterMilliseconds: 60_000)
        #expect(results.first?.error == ofAnother)
        world.advance(milliseconds: 60_000)
        #expect(try world.perform(JoinChannel(channel: "general"), as: "bob").membership?.state == .member)
    }

    @Test("AM-48 R33 explain names the rule that refuses and until when")
    func explains() throws {
        let world = try world()
        let until = world.now.after(seconds: 60)
        try world.execute("UPDATE members SET muted_until = \(until) WHERE user_id = 'bob'")
        let muted = try world.perform(ExplainPermission(channel: "general", permission: .messageSend), as: "bob")
        let refusal = RoostError(
            .muted, "You are muted in the channel.", rule: "message.send: not while muted", until: until,
            retryAfterMilliseconds: 60_000)
        #expect(muted == PermissionExplanation(permission: .messageSend, isAllowed: false, refusal: refusal))
        let aboutBob = ExplainPermission(channel: "general", permission: .messageSend, user: "bob")
        #expect(try world.perform(aboutBob, as: "root", role: .admin) == muted)
        #expect(try world.code(aboutBob, as: "cid") == .notPermitted)
        let allowed = try world.perform(ExplainPermission(channel: "general", permission: .channelFreeze), as: "ann")
        #expect(allowed == PermissionExplanation(permission: .channelFreeze, isAllowed: true))
    }
}
