import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

/// Which of any users are online, and when they last were.
@Suite("Last active")
struct LastActiveTests {
    private func world() throws -> CoreWorld {
        let world = try CoreWorld()
        for user in ["ann", "bob", "cid", "dan"] as [UserID] { try world.user(user) }
        return world
    }

    private func record(_ activity: [UserID: Timestamp], in world: CoreWorld) throws {
        try world.inContext { try $0.transaction.recordActivity(activity, now: $0.now) }
    }

    @Test("SB-64 D-38 X-37 presence says who is online and when others last were, each user once, unknown ones not at all")
    func asks() throws {
        let world = try world()
        world.presence = KnownPresence(online: ["bob"])
        let time = world.now
        try record(["cid": time, "bob": time], in: world)
        let answer = try world.perform(ListUserPresence(users: ["dan", "cid", "bob", "nobody", "cid"]), as: "ann")
        #expect(
            answer.users == [
                UserPresence(userId: "bob", isOnline: true), UserPresence(userId: "cid", isOnline: false, lastActiveAt: time),
                UserPresence(userId: "dan", isOnline: false),
            ])
        #expect(answer.pollSeconds == 60)
        #expect(try world.perform(ListUserPresence(users: []), as: "ann").users == [])
        #expect(try world.refusal(ListUserPresence(users: [""]), as: "ann")?.field == "users")
    }

    @Test("X-37 a user who doesn't share it is offline and has no time, for everybody, and has one again once they share it")
    func invisible() throws {
        let world = try world()
        world.presence = KnownPresence(online: ["ann", "bob"])
        let time = world.now
        try record(["bob": time], in: world)
        try world.perform(CreateChannel(channel: "general", users: ["bob"]), as: "ann")
        try world.perform(UpdatePreferences(sharesPresence: false), as: "bob")
        let hidden = UserPresence(userId: "bob", isOnline: false)
        for asking in ["ann", "bob"] as [UserID] {
            #expect(try world.perform(ListUserPresence(users: ["bob"]), as: asking).users == [hidden])
        }
        world.presence = KnownPresence(online: ["ann"])
        func entry() throws -> MemberEntry? {
            try world.perform(ListMembers(channel: "general"), as: "ann").items.first { $0.member.userId == "bob" }
        }
        #expect(try entry()?.lastActiveAt == nil && entry()?.isOnline == false)
        try world.perform(UpdatePreferences(sharesPresence: true), as: "bob")
        #expect(try entry()?.lastActiveAt == time)
        #expect(try world.perform(ListUserPresence(users: ["bob"]), as: "ann").users.first?.lastActiveAt == time)
    }

    @Test(
        "X-37 lists of members have the time of offline ones; the later of two records counts, in any order, for 250 users too"
    )
    func records() throws {
        let world = try world()
        world.presence = KnownPresence(online: ["ann"])
        try world.perform(CreateChannel(channel: "general", users: ["bob", "cid"]), as: "ann")
        let (early, late) = (world.now, Timestamp(milliseconds: world.now.milliseconds + 5000))
        let many = Dictionary(uniqueKeysWithValues: (0..<250).map { (UserID("u\($0)"), early) })
        try record(many.merging(["ann": early, "bob": late]) { first, _ in first }, in: world)
        try record(["ann": late, "bob": early], in: world)
        let entries = try world.perform(ListMembers(channel: "general"), as: "cid").items
        #expect(entries.map(\.member.userId) == ["ann", "bob", "cid"])
        #expect(entries.map(\.lastActiveAt) == [nil, late, nil])
        world.presence = KnownPresence()
        let found = try world.perform(SearchMembers(channel: "general", text: "an"), as: "cid").items
        #expect(found.map(\.lastActiveAt) == [late])
        #expect(try world.perform(GetMember(channel: "general", user: "bob"), as: "cid").lastActiveAt == late)
        let before = try world.dump()
        try record(["ann": early], in: world)
        #expect(try world.dump() == before)
    }

    @Test("X-37 a time recorded while the clock was a year ahead is replaced by the next visit")
    func clockThatWasAhead() throws {
        let world = try world()
        let start = world.now
        world.advance(milliseconds: 365 * 86_400_000)
        try record(["bob": world.now], in: world)
        world.now = start
        try record(["bob": start], in: world)
        #expect(try world.perform(ListUserPresence(users: ["bob"]), as: "ann").users.map(\.lastActiveAt) == [start])
    }
}
