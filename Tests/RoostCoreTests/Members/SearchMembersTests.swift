import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@Suite("Searches of members")
struct SearchMembersTests {
    private let names: KeyValuePairs<UserID, String> = [
        "u1": "José Álvarez", "u2": "Josephine", "u3": "100% Joe", "anna": "Zed", "u5": "Ann Josh", "u6": "under_score",
        "hin": "नमस्ते दोस्त",
    ]

    private func world() throws -> CoreWorld {
        let world = try CoreWorld()
        try world.channel("general", owner: "owner")
        for (user, name) in names {
            try world.user(user, displayName: name)
            try world.perform(JoinChannel(channel: "general"), as: user)
        }
        try world.user("outside", displayName: "Josefa")
        return world
    }

    private func search(_ text: String, as user: UserID = "owner", in world: CoreWorld) throws -> [String] {
        try world.perform(SearchMembers(channel: "general", text: text), as: user).items.map(\.member.userId.rawValue)
    }

    @Test("MN-14 ids are found by their beginning, letter by letter and case-sensitively")
    func ids() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "Ann-7", members: ["Ødegård"])
        let found = try ["Ann", "ann", "Øde", "odegard"].map { text in
            try world.perform(SearchMembers(channel: "general", text: text), as: "Ann-7").items.map(\.member.userId.rawValue)
        }
        #expect(found == [["Ann-7"], [], ["Ødegård"], []])
    }

    @Test(
        "MN-14 MN-15 R16 a text finds names by any part, or by the beginning of a word where it is short, and ids by their beginning; the newest first",
        arguments: [
            ("jose", ["u2", "u1"]), ("JOSÉ", ["u2", "u1"]), ("jo", ["u5", "u3", "u2", "u1"]), ("j", ["u5", "u3", "u2", "u1"]),
            ("lva", ["u1"]), ("lv", []), ("ann", ["u5", "anna"]), ("a", ["u5", "anna", "u1"]),
            ("u", ["u6", "u5", "u3", "u2", "u1"]),
            ("U1", []), ("0% j", ["u3"]), ("0x j", []), ("r_s", ["u6"]), ("e_j", []), ("é al", ["u1"]), ("´", []), ("   ", []),
            ("nobody", []), ("नमस्ते", ["hin"]), ("नमस", ["hin"]), ("मस्", ["hin"]), ("स्त", ["hin"]), ("नम", ["hin"]),
            ("दो", ["hin"]), ("न", ["hin"]), ("मस", []), ("त", []),
        ] as [(String, [String])])
    func finds(text: String, expected: [String]) throws {
        #expect(try search(text, in: world()) == expected)
    }

    @Test("MN-14 a renamed user is found by the new name only, and a former member isn't found")
    func changes() throws {
        let world = try world()
        try world.perform(UpdateMe(displayName: "Peter"), as: "u1")
        try world.perform(LeaveChannel(channel: "general"), as: "u2")
        #expect([try search("jose", in: world), try search("peter", in: world)] == [[], ["u1"]])
    }

    @Test("MN-15 MN-18 D-21 D-28 the states add up, and only operators find banned users")
    func states() throws {
        let world = try world()
        try world.perform(LeaveChannel(channel: "general"), as: "u1")
        try world.execute("UPDATE members SET banned_until = \(Timestamp.forever) WHERE user_id = 'u1'")
        try world.execute("UPDATE members SET muted_until = \(Timestamp.forever) WHERE user_id = 'u2'")
        let states: [[MemberFilter]?] = [nil, [.muted], [.banned], [.muted, .banned], [.member, .banned]]
        let found = try states.map { states in
            try world.perform(SearchMembers(channel: "general", text: "jos", states: states), as: "owner").items.map(
                \.member.userId)
        }
        #expect(found == [["u5", "u2"], ["u2"], ["u1"], ["u2", "u1"], ["u5", "u2", "u1"]])
        let codes = try states.map { states in
            try world.code(SearchMembers(channel: "general", text: "jos", states: states), as: "u3")
        }
        #expect(codes == [nil, .notPermitted, .notPermitted, .notPermitted, .notPermitted])
        #expect(
            try world.perform(SearchMembers(channel: "general", text: "jos", states: [.banned]), as: "root", role: .moderator).items
                .count == 1)
    }

    @Test("MN-14 R16 a search among roles finds those with one of them")
    func roles() throws {
        let world = try world()
        try world.perform(SetMemberRole(channel: "general", users: ["u2"], role: .operator), as: "owner")
        let found = try [[.operator], [.member], [.owner]].map { (roles: [ChannelRole]) in
            try world.perform(SearchMembers(channel: "general", text: "jos", roles: roles), as: "u1").items.map(\.member.userId)
        }
        #expect(found == [["u2"], ["u5", "u1"], []])
    }

    @Test(
        "MN-15 R16 pages give each row once, whether few or many names are like the text",
        arguments: ["jo", "bulk 4", "bul", "bulk-5"])
    func pages(text: String) throws {
        let world = try world()
        try BulkRows.members(7000, of: "general", in: world)
        var search = SearchMembers(channel: "general", text: text, limit: 100)
        var found: [UserID] = []
        var pages: [Page<MemberEntry>] = []
        repeat {
            pages.append(try world.perform(search, as: "owner"))
            search.cursor = pages.last?.nextCursor
        } while search.cursor != nil
        found = pages.flatMap(\.items).map(\.member.userId)
        let bulk = (1...7000).reversed().map { UserID("bulk-\($0)") }
        let expected: [UserID] =
            switch text {
            case "jo": ["u5", "u3", "u2", "u1"]
            case "bulk 4": bulk.filter { $0.rawValue.hasPrefix("bulk-4") }
            case "bul": bulk
            default: bulk.filter { $0.rawValue.hasPrefix("bulk-5") }
            }
        #expect(found == expected)
        if let last = pages.last, let cursor = last.previousCursor {
            search.cursor = cursor
            #expect(try world.perform(search, as: "owner").items == pages.dropLast().last?.items)
        }
    }
}
