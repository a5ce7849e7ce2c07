import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@Suite("Explaining permissions")
struct ExplainTests {
    /// A channel of ann's with bob in it; eve is a stranger.
    private func makeWorld() throws -> CoreWorld {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        try world.user("eve")
        return world
    }

    private func explain(
        _ permission: Permission, to user: UserID, about other: UserID? = nil, role: AppRole = .user, in world: CoreWorld
    ) throws -> PermissionExplanation {
        try world.perform(ExplainPermission(channel: "general", permission: permission, user: other), as: user, role: role)
    }

    @Test("AM-48 R33 explain answers with exactly the operation's refusal, and until when")
    func namesTheEnd() throws {
        let world = try makeWorld()
        let until = Timestamp(milliseconds: world.now.milliseconds + 60_000)
        let send = SendMessage(channel: "general", clientId: "1", text: "x")
        var found: [RoostError?] = []
        var refusals: [RoostError?] = []
        let states: [SQL] = [
            "UPDATE channels SET is_frozen = 1",
            "UPDATE channels SET is_frozen = 0, muted_until = \(until)",
            "UPDATE channels SET muted_until = NULL",
            "UPDATE members SET muted_until = \(until) WHERE user_id = 'bob'",
            "UPDATE members SET state = 'none', muted_until = NULL, banned_until = \(until) WHERE user_id = 'bob'",
        ]
        for state in states {
            try world.execute(state)
            found.append(try explain(.messageSend, to: "bob", in: world).refusal)
            refusals.append(try world.refusal(send, as: "bob"))
        }
        // The third sends, and the message is stored; later ones send the same again, and are answered with the stored message.
        let expected: [RoostError?] = [
            RoostError(.frozen, "The channel is frozen.", rule: "message.send: not while frozen"),
            RoostError(
                .channelMuted, "The channel is silenced.", rule: "message.send: not while silenced", until: until,
                retryAfterMilliseconds: 60_000),
            nil,
            RoostError(
                .muted, "You are muted in the channel.", rule: "message.send: not while muted", until: until,
                retryAfterMilliseconds: 60_000),
            RoostError(
                .banned, "You are banned from the channel.", rule: "message.send: not while banned", until: until,
                retryAfterMilliseconds: 60_000),
        ]
        #expect(found == expected)
        #expect(refusals == [expected[0], expected[1], nil, nil, nil])
        world.advance(milliseconds: 60_000)
        #expect(try explain(.messageSend, to: "bob", in: world).refusal?.code == .notMember)
    }

    @Test("AM-48 only the app's staff ask about another user, and get the standing of that user's own token")
    func ofAnother() throws {
        let world = try makeWorld()
        let allowed = try explain(.messageSend, to: "root", about: "bob", role: .admin, in: world)
        #expect(allowed == PermissionExplanation(permission: .messageSend, isAllowed: true))
        let refused = try explain(.channelDelete, to: "root", about: "bob", role: .service, in: world)
        #expect(refused.refusal?.rule == "channel.delete needs the role owner")
        let ask = ExplainPermission(channel: "general", permission: .messageSend, user: "bob")
        let unknown = ExplainPermission(channel: "general", permission: .messageSend, user: "nobody")
        let codes = try [
            world.code(ask, as: "ann"), world.code(ask, as: "bob"), world.code(ask, as: "eve", role: .moderator),
            world.code(unknown, as: "root", role: .admin),
        ]
        #expect(codes == [.notPermitted, nil, .notPermitted, .notFound])
    }

    @Test("AM-48 explain reveals nothing about a channel that the caller may not know of")
    func hidden() throws {
        let world = try makeWorld()
        try world.perform(CreateChannel(channel: "closed", type: .group, users: ["bob"]), as: "ann")
        let codes = try ["closed", "unknown"].map { channel in
            try world.refusal(ExplainPermission(channel: ChannelID(channel), permission: .channelRead), as: "eve")
        }
        #expect(codes == [.notFound("channel"), .notFound("channel")])
        // An admin who asks for a stranger learns exactly that: the channel doesn't exist for them.
        let explained = try world.perform(
            ExplainPermission(channel: "closed", permission: .channelRead, user: "eve"), as: "root", role: .admin)
        #expect(explained == PermissionExplanation(permission: .channelRead, isAllowed: false, refusal: .notFound("channel")))
    }

    @Test("AM-48 an admin learns nothing about others in a conversation, hidden from admins too", arguments: ["bob", "eve"])
    func hiddenFromAdmins(user: String) throws {
        let world = try makeWorld()
        let talk = try world.perform(CreateChannel(type: .conversation, users: ["bob"]), as: "ann").channel.channelId
        for channel in [talk, "unknown"] {
            let ask = ExplainPermission(channel: channel, permission: .historyRead, user: UserID(user))
            #expect(try world.refusal(ask, as: "root", role: .admin) == .notFound("channel"))
        }
    }

    @Test("AM-48 R33 users who may not read may not change messages either, and explain says so like an edit")
    func withoutReading() throws {
        let world = try makeWorld()
        let message = try world.send("mine", to: "general", as: "bob").messageId
        let changes: Set<Permission> = [.messageEditOwn, .messageEditAny, .messageDeleteOwn, .messageDeleteAny]
        try world.perform(PutRole(role: "guide", rank: 10, permissions: Array(changes)), as: "root", role: .admin)
        try world.setRole("guide", of: "bob", in: "general")
        func held(by user: UserID) throws -> Set<Permission> {
            changes.intersection(try world.perform(GetChannel(channel: "general"), as: user).ownCapabilities)
        }
        #expect(try held(by: "bob") == changes)
        let policy = PolicyChanges(read: .operators)
        try world.perform(UpdateChannel(channel: "general", policy: policy), as: "root", role: .admin)
        let refusal = try world.refusal(EditMessage(channel: "general", message: message, text: "x"), as: "bob")
        #expect(refusal?.rule == "history.read needs a role that grants it")
        for permission in changes {
            #expect(try explain(permission, to: "bob", in: world).refusal == refusal, "\(permission.rawValue)")
        }
        #expect(try held(by: "bob") == [])
        #expect(try held(by: "ann") == changes)
    }

    @Test("AM-48 a permission that doesn't concern channels can't be explained for one")
    func ofNoChannel() throws {
        let world = try makeWorld()
        let asked = Permission.allCases.filter { permission in
            (try? explain(permission, to: "ann", in: world)) != nil
        }
        #expect(asked == Permission.ofChannel)
    }

    @Test("AM-48 R33 a role's permissions are sent to its holder, and by role to all when the channel changes")
    func toldByRole() throws {
        let world = try makeWorld()
        try world.perform(PutRole(role: "guide", rank: 10, permissions: [.channelUpdate]), as: "root", role: .admin)
        try world.perform(SetMemberRole(channel: "general", users: ["bob"], role: "guide"), as: "ann")
        let pushed = world.events(to: .user("bob")).last?.rows.ownCapabilities?["general"]
        let seen = try world.perform(GetChannel(channel: "general"), as: "bob").ownCapabilities
        #expect(pushed == seen)
        #expect(seen.contains(.channelUpdate) && !seen.contains(.channelFreeze))

        try world.perform(FreezeChannel(channel: "general"), as: "ann")
        let byRole = world.events(to: .channel("general")).last?.rows.capabilities
        let frozen = try ["ann": "owner", "bob": "guide"].map { user, role in
            (role, try world.perform(GetChannel(channel: "general"), as: UserID(user)).ownCapabilities)
        }
        for (role, capabilities) in frozen { #expect(byRole?[role] == capabilities, "\(role)") }
        #expect(byRole?["guide"]?.contains(.messageSend) == false)
    }
}
