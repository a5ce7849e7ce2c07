import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@Suite("Queries of channels: filters")
struct QueryFilterTests {
    /// One way of setting one filter or sort.
    struct Setting: Sendable {
        let name: String
        let set: @Sendable (inout QueryChannels) -> Void
        init(_ name: String, _ set: @escaping @Sendable (inout QueryChannels) -> Void) { (self.name, self.set) = (name, set) }
    }

    static func forAll(_ oracle: QueryOracle) throws -> [Setting] {
        let times = try oracle.world.rows("SELECT created_at FROM channels ORDER BY created_at") { $0.int64() }
        let middle = times[times.count / 2]
        var all: [Setting] = [
            Setting("types") { $0.types = [.group, .live] },
            Setting("ids") { $0.ids = (0..<9).map { ChannelID("channel-\($0)") } },
            Setting("includingTags") { $0.includingTags = ["red", "green"] },
            Setting("excludingTags") { $0.excludingTags = ["red", "none"] },
            Setting("customTypes") { $0.customTypes = ["support"] },
            Setting("isPublic") { $0.isPublic = true },
            Setting("isPrivate") { $0.isPublic = false },
            Setting("createdBy") { $0.createdBy = "bob" },
            Setting("createdBefore") { $0.createdBefore = middle },
            Setting("createdAfter") { $0.createdAfter = middle },
            Setting("includeDeleted") { $0.includeDeleted = true },
            Setting("includeEmpty") { $0.includeEmpty = false },
            Setting("includeFrozen") { $0.includeFrozen = false },
            Setting("sort name") { $0.sort = .name },
            Setting("sort created") { $0.sort = .created },
            Setting("sort lastActivity") { $0.sort = .lastActivity },
        ]
        for part in ["gen", "GÉNÉRAL", "ta", "t", "100%", "e_c", "a!b", "l t", "nothing", "ße", "l ", "ten 1", "नमस", "मस"] {
            all.append(Setting("nameContains \(part)") { $0.nameContains = part })
        }
        return all
    }

    static let forOwn: [Setting] =
        [
            Setting("unreadOnly") { $0.unreadOnly = true },
            Setting("exactUsers") { $0.exactUsers = ["bob", "cid"] },
            Setting("exactUsers one") { $0.exactUsers = ["bob"] },
            Setting("exactUsers with own") { $0.exactUsers = ["bob", "ann", "bob"] },
            Setting("exactUsers own alone") { $0.exactUsers = ["ann"] },
            Setting("includingUsers all") { $0.includingUsers = ["bob", "cid"] },
            Setting("includingUsers any") {
                $0.includingUsers = ["bob", "cid"]
                $0.includingUsersMatch = .any
            },
            Setting("sort lastMessage") { $0.sort = .lastMessage },
            Setting("sort unreadFirst") { $0.sort = .unreadFirst },
        ] + HiddenFilter.allCases.map { hidden in Setting("hidden \(hidden)") { $0.hidden = hidden } }

    /// The fault that a query shows, for the text of a failure.
    private func fault(
        _ settings: [Setting], _ membership: MembershipFilter, _ oracle: inout QueryOracle, as user: UserID, role: AppRole
    ) throws -> String? {
        var query = QueryChannels(membership: membership)
        for setting in settings { setting.set(&query) }
        let (answer, expected) = (try oracle.answer(query, as: user, role: role), try oracle.expected(query, as: user, role: role))
        if answer == expected { return nil }
        return "\(settings.map(\.name)) \(membership) as \(user), \(role): \(answer) instead of \(expected)"
    }

    @Test("AM-34 deleted channels are found by former membership, and by admins if they may find them")
    func deletedByMembership() throws {
        let world = try CoreWorld()
        for channel in ["own", "other"] as [ChannelID] {
            try world.channel(channel, type: .messaging, owner: channel == "own" ? "ann" : "bob")
            try world.perform(DeleteChannel(channel: channel), as: channel == "own" ? "ann" : "bob")
        }
        func found(_ membership: MembershipFilter, _ role: AppRole) throws -> [ChannelID] {
            let query = QueryChannels(membership: membership, includeDeleted: true, sort: .name)
            return try world.perform(query, as: "ann", role: role).items.map(\.channel.channelId).sorted()
        }
        let lists = try AppRole.allCases.filter { $0 == .user || $0 == .admin }.map { role in
            try MembershipFilter.allCases.map { try found($0, role) }
        }
        #expect(lists == [[["own"], ["own"], []], [["own"], ["other", "own"], ["other"]]])
    }

    @Test(
        "R09 AM-20 AM-32 AM-34 SB-24 D-10 SB-30 SB-31 SB-32 D-24 each filter of the user's own channels finds what checking each channel finds",
        arguments: Seeds.first(2))
    func ownAlone(seed: UInt64) throws {
        var oracle = try QueryOracle(seed: seed, channels: 50)
        for setting in try Self.forAll(oracle) + Self.forOwn {
            for user in ["ann", "bob"] as [UserID] {
                let found = try fault([setting], .member, &oracle, as: user, role: .user)
                #expect(found == nil)
            }
        }
    }

    @Test("R09 AM-33 each filter does so among all channels that a user may find", arguments: Seeds.first(2))
    func findableAlone(seed: UInt64) throws {
        var oracle = try QueryOracle(seed: seed, channels: 50)
        for setting in try Self.forAll(oracle) {
            for membership in [MembershipFilter.all, .notMember] {
                for (user, role) in [("ann", .user), ("bob", .admin), ("cid", .moderator), ("dan", .guest)] as [(UserID, AppRole)] {
                    let found = try fault([setting], membership, &oracle, as: user, role: role)
                    #expect(found == nil)
                }
            }
        }
    }

    @Test("R09 filters combine: two at once find what matches both", arguments: Seeds.first(1))
    func pairs(seed: UInt64) throws {
        var oracle = try QueryOracle(seed: seed, channels: 30)
        let findable = try Self.forAll(oracle)
        let own = findable + Self.forOwn
        for (index, one) in own.enumerated() {
            for other in own.dropFirst(index + 1) {
                let found = try fault([one, other], .member, &oracle, as: "ann", role: .user)
                #expect(found == nil)
                guard findable.contains(where: { $0.name == one.name }), findable.contains(where: { $0.name == other.name }) else {
                    continue
                }
                let role = oracle.random.pick([AppRole.user, .admin, .moderator])
                let membership = oracle.random.pick([MembershipFilter.all, .notMember])
                let among = try fault([one, other], membership, &oracle, as: "bob", role: role)
                #expect(among == nil)
            }
        }
    }
}
