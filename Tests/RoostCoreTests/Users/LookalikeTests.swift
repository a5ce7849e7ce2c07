import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

/// Names and ids that can be mistaken for another one, if the operator refuses them.
@Suite struct LookalikeTests {
    private func world(_ rule: AppOptions.ConfusableNames = .refused) throws -> CoreWorld {
        let world = try CoreWorld()
        world.options.confusableNames = rule
        return world
    }

    private func upsert(_ world: CoreWorld, _ user: UserID, _ name: String? = nil) throws -> [String?] {
        let refusal = try world.refusal(UpsertUser(user: user, displayName: name), as: "root", role: .admin)
        return [refusal?.code.rawValue, refusal?.field]
    }

    private let taken: [String?] = ["already_exists", "displayName"]

    @Test("names and ids that look like another user's are refused for everybody, with the field, and change nothing")
    func users() throws {
        let world = try world()
        #expect(try upsert(world, "ann", "Paula") == [nil, nil])
        #expect(try upsert(world, "bob") == [nil, nil])
        let before = try world.dump()
        let notices = world.notices.count
        // Cyrillic, a digit, the same name, another user's id, and an id like another's.
        #expect(try upsert(world, "bob", "Раulа") == taken)
        #expect(try upsert(world, "bob", "Pau1a") == taken)
        #expect(try upsert(world, "bob", "Paula") == taken)
        #expect(try upsert(world, "bob", "аnn") == taken)
        #expect(try upsert(world, "cat", "Paula") == taken)
        #expect(try upsert(world, "аnn", "Somebody") == ["already_exists", "user"])
        #expect(try world.refusal(UpdateMe(displayName: "Раulа"), as: "bob")?.field == "displayName")
        #expect(world.notices.count == notices)
        #expect(try world.dump() == before)
    }

    @Test("a user's own name can be rewritten and look different, their id can be their name, and a name given up is free")
    func own() throws {
        let world = try world()
        for name in ["Paula", "Раulа", "Paula", "paula", "paula", "Pau1a"] {
            #expect(try upsert(world, "paula", name) == [nil, nil], "\(name)")
        }
        #expect(try upsert(world, "bob", "Paula") == taken)
        #expect(try upsert(world, "paula", "Paul") == [nil, nil])
        #expect(try upsert(world, "bob", "Paula") == [nil, nil])
        #expect(try upsert(world, "paula", "Paula") == taken)
        // The id stays reserved for its user, whatever their name.
        #expect(try upsert(world, "bob", "paula") == taken)
        #expect(try upsert(world, "bob", "") == [nil, nil])
        #expect(try upsert(world, "paula", "Paula") == [nil, nil])
        let rows = try world.rows("SELECT skeleton, id FROM name_skeletons WHERE kind = 'user' ORDER BY id, skeleton") {
            [$0.string(), $0.string()]
        }
        #expect(rows == [["bob", "bob"], ["Paula", "paula"], ["paula", "paula"]])
    }

    @Test("a first sign-in with a name that looks like another's drops the name; with such an id it is refused")
    func signingIn() throws {
        let world = try world()
        try world.user("ann", displayName: "Paula")
        try world.user("bob", displayName: "Раulа")
        #expect(try world.perform(GetMe(), as: "bob").displayName == nil)
        try world.user("cat", displayName: "Cat")
        #expect(try world.perform(GetMe(), as: "cat").displayName == "Cat")
        let before = try world.dump()
        for name in [nil, "Other", "Paula"] {
            let refusal = try #require(throws: RoostError.self) { try world.user("аnn", displayName: name) }
            #expect(refusal.code == .invalidArgument && refusal.field == "sub")
        }
        #expect(try world.dump() == before)
        // Existing users sign in, whatever the rule.
        world.options.confusableNames = .allowed
        try world.user("аnn")
        world.options.confusableNames = .refused
        try world.user("аnn")
        #expect(try world.perform(GetMe(), as: "аnn").userId == "аnn")
    }

    @Test("by default look-alikes are allowed; refused later, the holder of a name keeps it and the next one is refused")
    func later() throws {
        let world = try world(.allowed)
        #expect(AppOptions().confusableNames == .allowed)
        for user: UserID in ["ann", "bob"] { #expect(try upsert(world, user, "Paula") == [nil, nil]) }
        world.options.confusableNames = .refused
        #expect(try upsert(world, "cat", "Paula") == taken)
        #expect(try upsert(world, "ann", "Paula") == [nil, nil])
        #expect(try upsert(world, "ann", "Anna") == [nil, nil])
        // Bob still has it.
        #expect(try upsert(world, "ann", "Paula") == taken)
        #expect(try upsert(world, "bob", "Bob") == [nil, nil])
        #expect(try upsert(world, "ann", "Paula") == [nil, nil])
        // And off again.
        world.options.confusableNames = .allowed
        #expect(try upsert(world, "cat", "Paula") == [nil, nil])
    }

    @Test(
        "I18 a channel whose id or name is refused has written nothing: a rollback for each would keep backups from finishing"
    )
    func refusedUnwritten() throws {
        let world = try world()
        try world.channel("general", owner: "ann")
        try world.perform(CreateChannel(channel: "named", displayName: "Paula"), as: "ann")
        var runs = 0
        try world.batch {
            runs += 1
            let codes = [
                try world.code(CreateChannel(channel: "gеneral"), as: "ann"),
                try world.code(CreateChannel(displayName: "Pаula"), as: "ann"),
            ]
            #expect(codes == [.alreadyExists, .alreadyExists])
        }
        // With something to roll back it would run again.
        #expect(runs == 1)
    }

    @Test("AM-13 ids of channels that look like another's are refused, also as type:id and of a private or deleted one")
    func channelIDs() throws {
        let world = try world()
        try world.channel("general", owner: "ann")
        try world.channel("secret", type: .group, owner: "ann")
        try world.channel("gone", owner: "ann")
        try world.perform(DeleteChannel(channel: "gone"), as: "ann")
        try world.user("bob")
        let before = try world.dump()
        for id: ChannelID in ["gеneral", "ѕecret", "gοne", "community：general", "cоmmunity:general"] {
            let refusal = try world.refusal(CreateChannel(channel: id), as: "bob")
            #expect([refusal?.code.rawValue, refusal?.field] == ["already_exists", "channel"], "\(id)")
        }
        #expect(try world.dump() == before)
        #expect(try world.code(CreateChannel(), as: "bob") == nil)
        world.options.confusableNames = .allowed
        #expect(try world.code(CreateChannel(channel: "gеneral"), as: "bob") == nil)
    }

    @Test("AM-12 names of channels are compared among those that everyone can find: created, renamed, published, hidden, deleted")
    func channelNames() throws {
        let world = try world()
        try world.user("ann")
        func create(_ id: ChannelID, _ name: String, isPublic: Bool) throws -> String? {
            var create = CreateChannel(channel: id)
            create.displayName = name
            create.isPublic = isPublic
            return try world.refusal(create, as: "ann")?.field
        }
        func update(_ id: ChannelID, name: String? = nil, isPublic: Bool? = nil) throws -> [String?] {
            var update = UpdateChannel(channel: id, displayName: name)
            update.isPublic = isPublic
            let refusal = try world.refusal(update, as: "ann")
            return [refusal?.code.rawValue, refusal?.field]
        }
        #expect(try create("one", "News", isPublic: true) == nil)
        #expect(try create("two", "Nеws", isPublic: true) == "displayName")
        // A refusal doesn't reveal that a private channel exists, and groups may have the same name.
        #expect(try create("three", "News", isPublic: false) == nil)
        #expect(try create("four", "News", isPublic: false) == nil)
        let before = try world.dump()
        // The refusal names a field of the call.
        #expect(try update("three", isPublic: true) == ["already_exists", "isPublic"])
        let found = UpdateChannel(channel: "three", policy: PolicyChanges(discovery: .everyone))
        let refusal = try world.refusal(found, as: "ann")
        #expect(refusal?.code == .alreadyExists && refusal?.field == "policy.discovery")
        #expect(refusal?.message == "The channel's name looks like the name of another channel.")
        #expect(try update("three", name: "Nеws", isPublic: true) == taken)
        #expect(try world.dump() == before)
        #expect(try update("one", name: "Nеws") == [nil, nil])
        #expect(try update("one", isPublic: false) == [nil, nil])
        #expect(try update("three", isPublic: true) == [nil, nil])
        #expect(try update("one", isPublic: true) == ["already_exists", "isPublic"])
        #expect(try update("four", name: "More", isPublic: true) == [nil, nil])
        #expect(try update("four", name: "News") == taken)
        try world.perform(DeleteChannel(channel: "three"), as: "ann")
        #expect(try update("four", name: "News") == [nil, nil])
    }

    @Test("a database from before knows how its names look")
    func migration() throws {
        let world = try world(.allowed)
        for number in 1...1100 { try world.user(UserID("u\(number)")) }
        #expect(try upsert(world, "zoe", "Zoe") == [nil, nil])
        try world.channel("general", owner: "zoe")
        try world.channel("gone", owner: "zoe")
        try world.channel("secret", type: .group, owner: "zoe")
        for (id, name) in [("general", "News"), ("secret", "Secret"), ("gone", "Gone")] {
            try world.perform(UpdateChannel(channel: ChannelID(id), displayName: name), as: "zoe")
        }
        try world.perform(DeleteChannel(channel: "gone"), as: "zoe")
        let rows: SQL = "SELECT kind, skeleton, id FROM name_skeletons ORDER BY 1, 2, 3"
        let before = try world.rows(rows) { [$0.string(), $0.string(), $0.string()] }
        #expect(before.count == 1100 + 2 + 6 + 1)
        try world.execute("DROP TABLE name_skeletons")
        try world.execute("DELETE FROM migrations WHERE name LIKE \("0007%")")
        try world.database.write(lane: 0) { try Migrations.apply(in: $0) }
        #expect(try world.rows(rows) { [$0.string(), $0.string(), $0.string()] } == before)
    }
}
