import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@Suite("Lists of members")
struct ListMembersTests {
    /// A channel of five, one of them muted, one banned and therefore not a member; the mute and the ban of others have expired.
    private func world() throws -> CoreWorld {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        for user in ["dan", "bob", "eve", "cid", "fay"] as [UserID] {
            try world.user(user, displayName: "The \(user)")
            world.advance(milliseconds: 10)
            try world.perform(JoinChannel(channel: "general"), as: user)
        }
        try world.perform(SetMemberRole(channel: "general", users: ["bob"], role: .operator), as: "ann")
        try world.perform(LeaveChannel(channel: "general"), as: "fay")
        let later = Timestamp(milliseconds: world.now.milliseconds + 1000)
        try world.execute("UPDATE members SET muted_until = \(later) WHERE user_id = 'cid'")
        try world.execute("UPDATE members SET muted_until = \(world.now) WHERE user_id = 'dan'")
        try world.execute("UPDATE members SET banned_until = \(later) WHERE user_id = 'fay'")
        try world.execute("UPDATE members SET banned_until = \(world.now) WHERE user_id = 'eve'")
        return world
    }

    private func ids(_ list: ListMembers, as user: UserID = "ann", in world: CoreWorld) throws -> [String] {
        try world.perform(list, as: user).items.map(\.member.userId.rawValue)
    }

    @Test("AM-39 R15 members are listed by when they joined, in either direction, and by their ids")
    func sorts() throws {
        let world = try world()
        let lists = try [nil, .firstCreated, .lastCreated, .userId].map { sort in
            try ids(ListMembers(channel: "general", sort: sort), in: world)
        }
        let first = ["ann", "dan", "bob", "eve", "cid"]
        #expect(lists == [first, first, first.reversed(), first.sorted()])
    }

    @Test("ST-09 AM-39 a list by ids goes both ways; the sorts by joining name their own direction", arguments: [1, 2, 5])
    func directions(limit: Int) throws {
        let world = try world()
        for order in SortDirection.allCases {
            var list = ListMembers(channel: "general", sort: .userId, order: order, limit: limit)
            var pages: [[String]] = []
            repeat {
                let page = try world.perform(list, as: "ann")
                pages.append(page.items.map(\.member.userId.rawValue))
                list.cursor = page.nextCursor
            } while list.cursor != nil
            let sorted = ["ann", "bob", "cid", "dan", "eve"]
            #expect(pages.flatMap { $0 } == (order == .ascending ? sorted : sorted.reversed()))
        }
        for sort in [nil, .firstCreated, .lastCreated] as [MemberSort?] {
            let refusal = try world.refusal(ListMembers(channel: "general", sort: sort, order: .ascending), as: "ann")
            #expect([refusal?.code.rawValue, refusal?.field] == ["invalid_argument", "order"])
        }
        let first = try world.perform(ListMembers(channel: "general", sort: .userId, limit: 1), as: "ann")
        let turned = ListMembers(channel: "general", sort: .userId, order: .descending, limit: 1, cursor: first.nextCursor)
        #expect(try world.refusal(turned, as: "ann")?.field == "cursor")
    }

    @Test("D-21 D-28 R15 several states give the members in any of them, to users who may list them")
    func states() throws {
        let world = try world()
        let states: [[MemberFilter]] = [
            [.member], [.muted], [.banned], [.muted, .banned], [.member, .banned], [.member, .muted, .banned],
        ]
        let expected = [
            ["ann", "dan", "bob", "eve", "cid"], ["cid"], ["fay"], ["cid", "fay"], ["ann", "dan", "bob", "eve", "cid", "fay"],
            ["ann", "dan", "bob", "eve", "cid", "fay"],
        ]
        for sort in MemberSort.allCases {
            for (states, expected) in zip(states, expected) {
                let sorted = sort == .userId ? expected.sorted() : sort == .lastCreated ? expected.reversed() : expected
                for user in ["ann", "bob"] as [UserID] {
                    #expect(try ids(ListMembers(channel: "general", states: states, sort: sort), as: user, in: world) == sorted)
                }
            }
        }
        world.advance(milliseconds: 1000)
        #expect(try ids(ListMembers(channel: "general", states: [.muted, .banned]), in: world).isEmpty)
    }

    @Test("D-21 R15 a repeated state counts twice and changes nothing; four are too many, whichever they are")
    func repeatedStates() throws {
        let world = try world()
        #expect(try ids(ListMembers(channel: "general", states: [.banned, .muted, .banned]), in: world) == ["cid", "fay"])
        let states = Array(repeating: MemberFilter.member, count: 4)
        let refusals = [
            try world.refusal(ListMembers(channel: "general", states: states), as: "ann"),
            try world.refusal(SearchMembers(channel: "general", text: "the", states: states), as: "ann"),
        ]
        let refusal = RoostError.limitExceeded("states", limit: 3, unit: "states")
        #expect(refusals == [refusal, refusal])
    }

    @Test("D-28 only operators see muted and banned members, and until when")
    func ordinaryMember() throws {
        let world = try world()
        let codes = try [[.member], [.muted], [.banned], [.member, .banned]].map { (states: [MemberFilter]) in
            try world.code(ListMembers(channel: "general", states: states), as: "dan")
        }
        #expect(codes == [nil, .notPermitted, .notPermitted, .notPermitted])
        let until = Timestamp(milliseconds: world.now.milliseconds + 1000)
        for (user, shown) in [("dan", nil), ("bob", until)] as [(UserID, Timestamp?)] {
            let entries = try world.perform(ListMembers(channel: "general"), as: user).items
            #expect(entries.compactMap(\.mutedUntil) == [shown].compactMap { $0 })
        }
        let banned = try world.perform(ListMembers(channel: "general", states: [.banned]), as: "bob").items
        #expect(banned.map(\.bannedUntil) == [until])
    }

    @Test("AM-39 SB-22 R15 members are listed by their roles, and each row has the role")
    func roles() throws {
        let world = try world()
        let roles: [[ChannelRole]] = [
            [.operator], [.owner, .operator], [.member], [.operator, .member], ["unheard-of"], [.operator, .operator],
        ]
        let expected = [["bob"], ["ann", "bob"], ["dan", "eve", "cid"], ["dan", "bob", "eve", "cid"], [], ["bob"]]
        for (roles, expected) in zip(roles, expected) {
            for sort in MemberSort.allCases {
                let sorted = sort == .userId ? expected.sorted() : sort == .lastCreated ? expected.reversed() : expected
                #expect(try ids(ListMembers(channel: "general", roles: roles, sort: sort), in: world) == sorted)
            }
        }
        let bob = try world.perform(ListMembers(channel: "general", roles: [.operator]), as: "dan").items.map(\.member.role)
        #expect(bob == [.operator])
    }

    @Test("AM-39 SB-22 pages give the whole list, forward and back", arguments: MemberSort.allCases, [1, 2, 4])
    func pages(sort: MemberSort, limit: Int) throws {
        let world = try world()
        for states in [[.member], [.member, .banned], [.muted, .banned]] as [[MemberFilter]] {
            var list = ListMembers(channel: "general", states: states, sort: sort)
            let whole = try ids(list, in: world)
            list.limit = limit
            var pages: [Page<MemberEntry>] = []
            repeat {
                pages.append(try world.perform(list, as: "ann"))
                list.cursor = pages.last?.nextCursor
            } while list.cursor != nil
            #expect(pages.flatMap(\.items).map(\.member.userId.rawValue) == whole)
            list.cursor = pages.last?.previousCursor
            var back = pages.suffix(1).map(\.items)
            while list.cursor != nil {
                let page = try world.perform(list, as: "ann")
                back.insert(page.items, at: 0)
                list.cursor = page.previousCursor
            }
            #expect(back == pages.map(\.items))
        }
    }

    @Test("AM-39 users join and leave while a list is paged: nobody else is skipped or shown twice", arguments: MemberSort.allCases)
    func moving(sort: MemberSort) throws {
        let world = try world()
        var list = ListMembers(channel: "general", sort: sort, limit: 1)
        let before = try world.perform(ListMembers(channel: "general", sort: sort), as: "ann").items.map(\.member.userId)
        var seen: [UserID] = []
        repeat {
            let page = try world.perform(list, as: "ann")
            seen += page.items.map(\.member.userId)
            list.cursor = page.nextCursor
            try world.perform(LeaveChannel(channel: "general"), as: "eve")
            try world.perform(JoinChannel(channel: "general"), as: "eve")
        } while list.cursor != nil && seen.count < 20
        #expect(seen.filter { $0 != "eve" } == before.filter { $0 != "eve" })
    }

    @Test("D-23 R15 AM-42 a row shows who the member is and whether they are connected, to everyone who may find the channel")
    func entries() throws {
        let world = try world()
        world.presence = KnownPresence(online: ["bob", "cid"])
        try world.user("zoe")
        let items = try world.perform(ListMembers(channel: "general", sort: .userId), as: "zoe").items
        #expect(
            items.map { "\($0.member.userId) \($0.user?.displayName ?? "-") \($0.isOnline)" } == [
                "ann - false", "bob The bob true", "cid The cid true", "dan The dan false", "eve The eve false",
            ])
        try world.channel("closed", type: .group, owner: "ann")
        #expect(try world.code(ListMembers(channel: "closed"), as: "zoe") == .notFound)
    }

    @Test("R15 one member can be requested; a non-member isn't found")
    func getsOne() throws {
        let world = try world()
        world.presence = KnownPresence(online: ["bob"])
        let listed = try world.perform(ListMembers(channel: "general", roles: [.operator]), as: "dan").items
        #expect([try world.perform(GetMember(channel: "general", user: "bob"), as: "dan")] == listed)
        for user in ["fay", "nobody"] as [UserID] {
            let refusal = try world.refusal(GetMember(channel: "general", user: user), as: "dan")
            #expect(refusal == .notFound("user"))
        }
        try world.perform(DeleteChannel(channel: "general"), as: "ann")
        #expect(try world.refusal(GetMember(channel: "general", user: "bob"), as: "dan") == .notFound("user"))
    }

    @Test("AM-09 AM-34 a deleted channel has no members: counter, list and search agree, for former members and for admins")
    func deleted() throws {
        let world = try world()
        try world.perform(DeleteChannel(channel: "general"), as: "ann")
        for (user, role) in [("bob", .user), ("root", .admin)] as [(UserID, AppRole)] {
            try world.user(user)
            let view = try world.perform(GetChannel(channel: "general"), as: user, role: role)
            let listed = try world.perform(ListMembers(channel: "general", sort: .userId), as: user, role: role)
            let found = try world.perform(SearchMembers(channel: "general", text: "ann"), as: user, role: role)
            let muted = try world.perform(ListMembers(channel: "general", states: [.member, .muted]), as: "root", role: .admin)
            #expect([view.channel.counters.memberCount, listed.items.count, found.items.count, muted.items.count] == [0, 0, 0, 0])
        }
        let deletion = world.events().last { $0.kind == .channelDeleted }
        #expect(deletion?.rows.channel?.counters.memberCount == 0)
        // A ban isn't a membership, and outlives the channel.
        let banned = try world.perform(ListMembers(channel: "general", states: [.member, .banned]), as: "root", role: .admin)
        #expect(banned.items.map(\.member.userId) == ["fay"])
        var own = QueryChannels(includeDeleted: true)
        own.exactUsers = ["ann", "cid", "dan", "eve"]
        #expect(try world.perform(own, as: "bob").items.map(\.channel.channelId) == ["general"])
        own.exactUsers = ["ann", "cid", "dan"]
        #expect(try world.perform(own, as: "bob").items == [])
    }

    @Test("AM-39 a list that passes many rows answers with a short page and continues from there")
    func shortPages() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        try BulkRows.members(6000, of: "general", in: world)
        try world.user("zoe")
        try world.perform(JoinChannel(channel: "general"), as: "zoe")
        try world.execute("UPDATE members SET role = 'member' WHERE user_id = 'ann'")
        try world.execute("UPDATE members SET muted_until = \(world.now) WHERE user_id <> 'zoe'")
        try world.execute("UPDATE members SET muted_until = \(Timestamp.forever) WHERE user_id = 'zoe'")
        var list = ListMembers(channel: "general", states: [.muted])
        let first = try world.perform(list, as: "root", role: .admin)
        list.cursor = first.nextCursor
        let second = try world.perform(list, as: "root", role: .admin)
        #expect([first, second].map { $0.items.map(\.member.userId) } == [[], ["zoe"]])
    }
}
