import RoostAPI
import Testing

@Suite("Limits of members")
struct MemberLimitsTests {
    private func code(_ operation: some RoostAPI.Operation) -> RoostError.Code? {
        do {
            try operation.validate()
            return nil
        } catch {
            return error.code
        }
    }

    private func users(_ count: Int) -> [UserID] { (0..<count).map { UserID("user-\($0)") } }

    @Test("AM-40 SB-13 a call names 1 to 100 users, each once, each a valid id")
    func listsOfUsers() {
        let lists = [users(1), users(100), [], users(101), ["a", "a"], ["a", ""], ["a", "b/c"]]
        let expected: [RoostError.Code?] = [
            nil, nil, .invalidArgument, .limitExceeded, .invalidArgument, .invalidArgument, .invalidArgument,
        ]
        #expect(lists.map { code(AddMembers(channel: "c", users: $0)) } == expected)
        #expect(lists.map { code(RemoveMembers(channel: "c", users: $0)) } == expected)
        #expect(lists.map { code(SetMemberRole(channel: "c", users: $0, role: .operator)) } == expected)
        #expect(lists.map { code(InviteMembers(channel: "c", users: $0)) } == expected)
        #expect(lists.map { code(WithdrawInvitations(channel: "c", users: $0)) } == expected)
    }

    @Test("AM-24 SB-10 a creation names at most 100 users and 100 operators; none, and duplicates, are accepted")
    func usersOfACreation() {
        let lists = [users(0), users(100), users(101), ["a", "a"], [""]]
        let expected: [RoostError.Code?] = [nil, nil, .limitExceeded, nil, .invalidArgument]
        #expect(lists.map { code(CreateChannel(users: $0)) } == expected)
        let asOperators = lists.map { list in
            var create = CreateChannel()
            create.operators = list
            return code(create)
        }
        #expect(asOperators == expected)
    }

    @Test("R33 a channel is handed over to one member")
    func oneOwner() {
        let codes = [
            code(SetMemberRole(channel: "c", users: ["a"], role: .owner)),
            code(SetMemberRole(channel: "c", users: ["a", "b"], role: .owner)),
        ]
        #expect(codes == [nil, .limitExceeded])
    }

    @Test(
        "X-35 the name of a role is 1 to 64 of a to z, 0 to 9, '-' and '_'",
        arguments: [
            ("a", nil), (String(repeating: "z", count: 64), nil), (String(repeating: "z", count: 65), .limitExceeded),
            ("", .invalidArgument), ("Owner", .invalidArgument), ("a b", .invalidArgument), ("ü", .invalidArgument),
            ("a\u{0}", .invalidArgument),
        ] as [(String, RoostError.Code?)])
    func roleNames(name: String, expected: RoostError.Code?) {
        let role = ChannelRole(rawValue: name)
        let codes = [
            code(PutRole(role: role, rank: 1, permissions: [])), code(DeleteRole(role: role)),
            code(SetMemberRole(channel: "c", users: ["a"], role: role)), code(ListMembers(channel: "c", roles: [role])),
            code(SearchMembers(channel: "c", text: "a", roles: [role])),
        ]
        #expect(codes == Array(repeating: expected, count: 5))
    }

    @Test("X-35 a role has a rank of 0 to 99 and grants only what a type leaves to roles")
    func roles() {
        let ranks = [0, 99, -1, 100].map { code(PutRole(role: "a", rank: $0, permissions: [])) }
        #expect(ranks == [nil, nil, .invalidArgument, .invalidArgument])
        let refused = Permission.allCases.filter { code(PutRole(role: "a", rank: 1, permissions: [$0])) != nil }
        #expect(Set(refused).union(Permission.grantable) == Set(Permission.allCases))
        #expect(Set(refused).isDisjoint(with: Permission.grantable))
        let most = Permission.grantable
        let codes = [most, most + [most[0]]].map { code(PutRole(role: "a", rank: 1, permissions: $0)) }
        #expect(codes == [nil, .limitExceeded])
    }

    @Test("EM-24 a welcome has at most 500 characters")
    func welcome() {
        let codes = [500, 501].map { count in
            code(InviteMembers(channel: "c", users: ["a"], welcome: String(repeating: "語", count: count)))
        }
        #expect(codes == [nil, .limitExceeded])
    }

    @Test("MN-14 MN-15 a list and a search of members take at most 3 states, 10 roles, and a text of 1 to 128 characters")
    func queries() {
        let roles = (0..<11).map { ChannelRole(rawValue: "r\($0)") }
        let lists = [
            code(ListMembers(channel: "c", states: [.member, .muted, .banned], roles: Array(roles.prefix(10)))),
            code(ListMembers(channel: "c", states: [])), code(ListMembers(channel: "c", roles: [])),
            code(ListMembers(channel: "c", states: Array(repeating: .muted, count: 4))),
            code(ListMembers(channel: "c", roles: roles)),
            code(ListMembers(channel: "c", cursor: String(repeating: "x", count: Limits.cursorLength + 1))),
            code(ListMembers(channel: "c", cursor: String(repeating: "x", count: Limits.cursorLength))),
        ]
        #expect(lists == [nil, .invalidArgument, .invalidArgument, .limitExceeded, .limitExceeded, .limitExceeded, nil])
        let texts = ["", "a", String(repeating: "語", count: 128), String(repeating: "語", count: 129), "\u{0}"]
        #expect(
            texts.map { code(SearchMembers(channel: "c", text: $0)) } == [
                .invalidArgument, nil, nil, .limitExceeded, .invalidArgument,
            ])
    }

    @Test("SB-27 D-32 a newer message brings back a channel that was hidden until then, and no other")
    func visibility() {
        let now = Timestamp(milliseconds: 0)
        let states: [HiddenState] = HiddenState.allCases.flatMap { state in
            [4, 5, 6].map { count in
                let membership = Membership(
                    channelId: "c", role: .member, state: .member, joinedAt: now, joinedSeq: 1, readSeq: 0, readCount: 0,
                    hiddenState: state, hiddenOrdinal: 5, channelSeq: 1, userSeq: 1)
                return membership.visibility(
                    in: ChannelCounters(seq: 9, memberCount: 1, messageCount: count, lastActivity: now))
            }
        }
        #expect(
            states == [
                .unhidden, .unhidden, .unhidden, .hiddenAllowAutoUnhide, .hiddenAllowAutoUnhide, .unhidden,
                .hiddenPreventAutoUnhide, .hiddenPreventAutoUnhide, .hiddenPreventAutoUnhide,
            ])
    }
}
