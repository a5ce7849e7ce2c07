import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

/// Types and roles that an operator defines (§8.2, §8.4).
@Suite("Own types and roles") struct OwnTypeTests {
    @Test("R03 an operator's own type is created from a preset, listed, and applies to its channels immediately")
    func ownType() throws {
        let world = try CoreWorld()
        for user in ["ann", "bob"] as [UserID] { try world.user(user) }
        let put = PutChannelType(type: "announcements", policy: PolicyChanges(send: .operators))
        let policy = try world.perform(put, as: "root", role: .admin)
        #expect([policy.type.rawValue, policy.send.rawValue, policy.join.rawValue] == ["announcements", "operators", "everyone"])
        #expect(try world.perform(ListChannelTypes(), as: "bob").last == policy)
        try world.channel("news", type: "announcements", owner: "ann", members: ["bob"])
        #expect(try world.code(SendMessage(channel: "news", clientId: "1", text: "x"), as: "bob") == .sendNotAllowed)

        try world.perform(PutChannelType(type: "announcements", policy: PolicyChanges(send: .members)), as: "root", role: .admin)
        #expect(try world.code(SendMessage(channel: "news", clientId: "1", text: "x"), as: "bob") == nil)
    }

    @Test("R03 a channel keeps who finds and who joins it from its creation, and follows its type in the rest")
    func keptFromCreation() throws {
        let world = try CoreWorld()
        try world.user("eve")
        try world.perform(PutChannelType(type: "club"), as: "root", role: .admin)
        try world.channel("old", type: "club", owner: "ann")
        let closed = PolicyChanges(discovery: .members, join: .invited, send: .operators)
        try world.perform(PutChannelType(type: "club", policy: closed), as: "root", role: .admin)
        try world.channel("new", type: "club", owner: "ann")
        let found = try (["old", "new"] as [ChannelID]).map { try world.code(GetChannel(channel: $0), as: "eve") }
        let joined = try (["old", "new"] as [ChannelID]).map { try world.code(JoinChannel(channel: $0), as: "eve") }
        #expect(found == [nil, .notFound] && joined == [nil, .inviteRequired])
        #expect(try world.code(SendMessage(channel: "old", clientId: "1", text: "x"), as: "eve") == .sendNotAllowed)
    }

    @Test("R03 presets can't be changed, types in use can't be deleted, unknown bases and names are refused")
    func refusals() throws {
        let world = try CoreWorld()
        try world.user("ann")
        try world.perform(PutChannelType(type: "mine"), as: "root", role: .admin)
        try world.channel("a", type: "mine", owner: "ann")
        let before = try world.dump()
        func code(_ operation: any Handled, _ role: AppRole = .admin) throws -> RoostError.Code? {
            try world.code(operation, as: "root", role: role)
        }
        #expect(try code(PutChannelType(type: "community")) == .immutableField)
        #expect(try code(DeleteChannelType(type: "live")) == .immutableField)
        #expect(try code(DeleteChannelType(type: "mine")) == .immutableField)
        #expect(try code(PutChannelType(type: "new", basedOn: "nothing")) == .notFound)
        #expect(try code(PutChannelType(type: "New")) == .invalidArgument)
        #expect(try code(PutChannelType(type: "new"), .user) == .notPermitted)
        #expect(try code(PutRole(role: "owner", rank: 1, permissions: [])) == .immutableField)
        #expect(try code(PutRole(role: "guide", rank: 100, permissions: [])) == .invalidArgument)
        #expect(try code(PutRole(role: "guide", rank: 1, permissions: [.memberJoin])) == .invalidArgument)
        #expect(try code(PutRole(role: "guide", rank: 1, permissions: []), .moderator) == .notPermitted)
        #expect(try world.dump() == before)
        #expect(try code(DeleteChannelType(type: "unknown")) == nil)
    }

    @Test("R03 an app has at most 50 types and 25 roles of its own")
    func limits() throws {
        let world = try CoreWorld()
        for number in 1...Limits.channelTypes {
            try world.perform(PutChannelType(type: ChannelType(rawValue: "t\(number)")), as: "root", role: .admin)
        }
        for number in 1...Limits.channelRoles {
            try world.perform(
                PutRole(role: ChannelRole(rawValue: "r\(number)"), rank: 1, permissions: []), as: "root", role: .admin)
        }
        let codes = try [
            world.code(PutChannelType(type: "t51"), as: "root", role: .admin),
            world.code(PutChannelType(type: "t50"), as: "root", role: .admin),
            world.code(PutRole(role: "r26", rank: 1, permissions: []), as: "root", role: .admin),
            world.code(PutRole(role: "r25", rank: 2, permissions: []), as: "root", role: .admin),
        ]
        #expect(codes == [.limitExceeded, nil, .limitExceeded, nil])
    }

    @Test("R33 an app's own role grants its permissions; its rank says over whom")
    func ownRole() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob", "cid", "dan"])
        try world.perform(PutRole(role: "guide", rank: 10, permissions: [.memberRemove]), as: "root", role: .admin)
        try world.perform(SetMemberRole(channel: "general", users: ["bob", "dan"], role: "guide"), as: "ann")
        let view = try world.perform(GetChannel(channel: "general"), as: "bob")
        #expect(view.membership?.role == "guide")
        #expect(view.ownCapabilities.contains(.memberRemove) && !view.ownCapabilities.contains(.channelUpdate))
        let results = try world.perform(RemoveMembers(channel: "general", users: ["cid", "dan", "ann"]), as: "bob").results
        #expect(results.map(\.outcome) == [.removed, .refused, .refused])
        // A deleted role is an ordinary member's.
        try world.perform(DeleteRole(role: "guide"), as: "root", role: .admin)
        #expect(try world.code(RemoveMembers(channel: "general", users: ["dan"]), as: "bob") == .notPermitted)
    }

    @Test("R33 a role with a permission that only a newer version knows grants its others, and no operation fails because of it")
    func roleOfNewerVersion() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob", "cid"])
        try world.perform(PutRole(role: "guide", rank: 10, permissions: [.memberRemove]), as: "root", role: .admin)
        try world.perform(SetMemberRole(channel: "general", users: ["bob"], role: "guide"), as: "ann")
        let newer = #"{"role":"guide","rank":10,"permissions":["member.remove","message.sing"]}"#
        try world.execute("UPDATE roles SET definition = \(newer) WHERE role = 'guide'")
        try world.restart()
        let guide = RoleDefinition(role: "guide", rank: 10, permissions: [.memberRemove])
        #expect(try world.perform(ListRoles(), as: "root", role: .admin).last == guide)
        #expect(try world.perform(GetConfiguration(), as: "ann").roles.last == guide)
        let view = try world.perform(GetChannel(channel: "general"), as: "bob")
        #expect(view.ownCapabilities.contains(.memberRemove))
        #expect(try world.code(FreezeChannel(channel: "general"), as: "ann") == nil)
        #expect(try world.code(RemoveMembers(channel: "general", users: ["cid"]), as: "bob") == nil)
    }

    @Test("R03 the configuration has every limit, the options and the roles")
    func configuration() throws {
        let world = try CoreWorld()
        world.options = AppOptions(channelsPerUser: 7, showsHistoryToNewMembers: false)
        let expected = AppConfiguration(options: world.options, limits: Limits.table, roles: RoleDefinition.builtIn)
        #expect(try world.perform(GetConfiguration(), as: "ann") == expected)
    }
}
