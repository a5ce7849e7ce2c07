import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

/// Inviting, accepting, declining and withdrawing (§8.3).
@Suite("Invitations") struct InvitationTests {
    /// Ann's group with bob in it; cid and dan are asked before they become members.
    private func world(_ type: ChannelType = .group) throws -> CoreWorld {
        let world = try CoreWorld()
        try world.channel("group", type: type, owner: "ann", members: ["bob"])
        for user in ["cid", "dan", "eve"] as [UserID] { try world.user(user) }
        for user in ["cid", "dan"] as [UserID] { try world.perform(UpdatePreferences(autoAcceptInvitations: false), as: user) }
        return world
    }

    private func invite(
        _ users: [UserID], welcome: String? = nil, as user: UserID = "bob", in world: CoreWorld
    ) throws -> [MemberResult] {
        try world.perform(InviteMembers(channel: "group", users: users, welcome: welcome), as: user).results
    }

    @Test("SB-13 SB-18 EM-24 AM-42 R14 D-04 a member invites: users who accept automatically are members, others are asked")
    func invites() throws {
        let world = try world()
        let results = try invite(["cid", "eve", "bob", "nobody"], welcome: "Come in!", in: world)
        #expect(results.map(\.outcome) == [.invited, .added, .alreadyMember, .refused])
        #expect(results.last?.error == RoostError(.notFound, "There is no such user.", field: "users"))
        let waiting = try world.perform(ListMyInvitations(), as: "cid").items
        let expected = Invitation(
            channelId: "group", userId: "cid", inviter: "bob", welcome: "Come in!", state: .pending, invitedAt: world.now,
            revision: 1)
        #expect(waiting.map(\.invitation) == [expected] && waiting.first?.channel.channelId == "group")
        #expect(try world.perform(ListInvitations(channel: "group"), as: "ann").items == [expected])
        #expect(try invite(["cid"], in: world).map(\.outcome) == [.alreadyInvited])
        // Invited users see the channel's summary, not its contents.
        #expect(try world.perform(GetChannel(channel: "group"), as: "cid").invitation == expected)
        #expect(try world.code(ListMessages(channel: "group"), as: "cid") == .notMember)
        #expect(try world.code(SendMessage(channel: "group", clientId: "1", text: "x"), as: "cid") == .notMember)
        #expect(try world.perform(GetTotalUnread(), as: "cid").unreadCount == 0)
    }

    @Test(
        "R14 AM-42 an invited user may look at the channel first, whoever else can find it",
        arguments: [.everyone, .members, .operators, .owners, .admins, .nobody] as [ChannelPolicy.Audience])
    func looksFirst(discovery: ChannelPolicy.Audience) throws {
        let world = try world()
        try world.perform(
            UpdateChannel(channel: "group", policy: PolicyChanges(discovery: discovery)), as: "root", role: .admin)
        #expect(try invite(["cid"], as: "ann", in: world).map(\.outcome) == [.invited])
        #expect(try world.perform(GetChannel(channel: "group"), as: "cid").invitation?.state == .pending)
        #expect(try world.code(ListMessages(channel: "group"), as: "cid") == .notMember)
        try world.perform(DeclineInvitation(channel: "group"), as: "cid")
        let code = try world.code(GetChannel(channel: "group"), as: "cid")
        #expect(discovery == .everyone ? code == nil : code == .notFound)
    }

    @Test("R14 an inviter who was removed from the channel still learns the invitation's outcome, and nothing else")
    func removedInviter() throws {
        let world = try world()
        _ = try invite(["cid"], in: world)
        try world.perform(RemoveMembers(channel: "group", users: ["bob"]), as: "ann")
        let notices = try world.notices { try world.perform(AcceptInvitation(channel: "group"), as: "cid") }
        let rows = notices.compactMap { if case .event(let event, .user("bob")) = $0 { event.rows } else { nil } }
        #expect(rows.count == 1)
        let invitation = try #require(rows.first?[Invitation.self]?.first)
        #expect(invitation.state == .accepted)
        #expect(rows == [Rows([invitation])])
    }

    @Test(
        "SB-15 SB-16 R14 pending invitations stay when everyone may read and join, and are answered and withdrawn as before"
    )
    func madePublic() throws {
        let world = try world()
        try world.perform(UpdatePreferences(autoAcceptInvitations: false), as: "eve")
        try world.user("fay")
        try world.perform(UpdatePreferences(autoAcceptInvitations: false), as: "fay")
        _ = try invite(["cid", "dan", "eve", "fay"], in: world)
        func waiting() throws -> Set<UserID> {
            Set(try world.perform(ListInvitations(channel: "group"), as: "bob").items.map(\.userId))
        }
        try world.perform(UpdateChannel(channel: "group", isPublic: true, policy: PolicyChanges(read: .everyone)), as: "ann")
        #expect(try waiting() == ["cid", "dan", "eve", "fay"])
        #expect(try world.perform(ListMyInvitations(), as: "cid").items.map(\.channel.channelId) == ["group"])
        #expect(try world.perform(AcceptInvitation(channel: "group"), as: "cid").membership?.state == .member)
        #expect(try world.perform(DeclineInvitation(channel: "group"), as: "dan").state == .declined)
        let withdrawn = try world.perform(WithdrawInvitations(channel: "group", users: ["eve"]), as: "bob").results
        #expect(withdrawn.map(\.outcome) == [.withdrawn])
        // Joining still accepts.
        try world.perform(JoinChannel(channel: "group"), as: "fay")
        #expect(try waiting() == [])
        for user in ["cid", "dan", "eve", "fay"] as [UserID] {
            #expect(try world.perform(ListMyInvitations(), as: user).items == [], "\(user)")
        }
        #expect(try world.perform(GetChannel(channel: "group"), as: "ann").channel.counters.memberCount == 4)
    }

    @Test("R14 R33 if non-members may follow a channel, its stream has no invitations, not even earlier ones")
    func publicGroup() throws {
        let world = try world()
        try world.user("watcher")
        _ = try invite(["cid"], welcome: "Come in!", in: world)
        try world.perform(UpdateChannel(channel: "group", isPublic: true, policy: PolicyChanges(read: .everyone)), as: "ann")
        let notices = try world.notices { _ = try invite(["dan", "eve"], welcome: "You too!", in: world) }
        let rows = notices.compactMap { if case .event(let event, .channel) = $0 { event.rows } else { nil } }
        // Eve is a member immediately, which everybody learns.
        #expect(rows.count == 1 && rows.allSatisfy { $0[Invitation.self] == nil && $0[Member.self] != nil })
        func invited(_ user: UserID) throws -> [UserID] {
            try world.perform(GetChannelChanges(channel: "group", after: 0), as: user).rows[Invitation.self, default: []].map(
                \.userId)
        }
        let (byWatcher, byBob) = try (invited("watcher"), invited("bob"))
        #expect(byWatcher == [])
        #expect(byBob == ["bob", "cid"])
        #expect(try world.code(ListInvitations(channel: "group"), as: "watcher") == .notMember)
        #expect(try Set(world.perform(ListInvitations(channel: "group"), as: "bob").items.map(\.userId)) == ["cid", "dan"])
    }

    @Test("SB-15 EM-25 R14 accepting makes a member, also by joining; again it changes nothing", arguments: ["accept", "join"])
    func accepts(how: String) throws {
        let world = try world()
        _ = try invite(["cid"], in: world)
        world.advance(milliseconds: 5)
        let operation: any Handled = how == "accept" ? AcceptInvitation(channel: "group") : JoinChannel(channel: "group")
        let notices = try world.notices { _ = try world.perform(operation, as: "cid") }
        #expect(try world.code(SendMessage(channel: "group", clientId: "1", text: "x"), as: "cid") == nil)
        let kinds = notices.compactMap {
            if case .event(let event, let audience) = $0 { "\(event.kind.rawValue) \(audience)" } else { nil }
        }
        let expected = [
            "member.joined \(Audience.channel("group"))", "member.joined \(Audience.user("cid"))",
            "invitation.accepted \(Audience.user("bob"))",
        ]
        #expect(kinds == expected)
        #expect(try world.perform(ListMyInvitations(), as: "cid").items == [])
        let before = try world.dump()
        #expect(try world.code(operation, as: "cid") == nil)
        #expect(try world.dump() == before)
    }

    @Test("SB-16 EM-26 R14 declining ends it, and another invitation is needed; declining again is refused")
    func declines() throws {
        let world = try world()
        _ = try invite(["cid"], in: world)
        #expect(try world.perform(DeclineInvitation(channel: "group"), as: "cid").state == .declined)
        let codes = try [
            world.code(DeclineInvitation(channel: "group"), as: "cid"), world.code(AcceptInvitation(channel: "group"), as: "cid"),
            world.code(JoinChannel(channel: "group"), as: "cid"),
        ]
        #expect(codes == [.notInvited, .notInvited, .inviteRequired])
        #expect(try invite(["cid"], as: "ann", in: world).map(\.outcome) == [.invited])
        #expect(try world.perform(AcceptInvitation(channel: "group"), as: "cid").membership?.state == .member)
    }

    @Test(
        "SB-10 SB-07 operators who are asked first become operators on accepting; automatic acceptance notifies the inviter once")
    func askedOperators() throws {
        let world = try CoreWorld()
        for user in ["ann", "bob", "cid"] as [UserID] { try world.user(user) }
        try world.perform(UpdatePreferences(autoAcceptInvitations: false), as: "bob")
        let create = CreateChannel(channel: "trip", type: .group).with { $0.operators = ["bob", "cid"] }
        let notices = try world.notices { try world.perform(create, as: "ann") }
        let toAnn = notices.compactMap { if case .event(let event, .user("ann")) = $0 { event } else { nil } }
        let ended = toAnn.flatMap { event in
            (event.rows.invitations ?? []).map { "\(event.kind.rawValue) \($0.userId) \($0.state)" }
        }
        #expect(Set(ended) == ["invitation.accepted cid accepted", "invitation.sent bob pending"])
        #expect(try world.perform(AcceptInvitation(channel: "trip"), as: "bob").membership?.role == .operator)
        #expect(try world.perform(GetMember(channel: "trip", user: "cid"), as: "ann").member.role == .operator)
    }

    @Test("R14 R30 inviting a banned user is refused by the rule of inviting, with the end of the ban")
    func invitesBanned() throws {
        let world = try world()
        let until = world.now.after(seconds: 60)
        try world.execute("UPDATE members SET state = 'none', banned_until = \(until) WHERE user_id = 'bob'")
        let expected = RoostError(
            .banned, "The user is banned from the channel.", rule: "invitation.send: not while banned", until: until,
            retryAfterMilliseconds: 60_000)
        #expect(try invite(["bob"], as: "ann", in: world) == [MemberResult(userId: "bob", outcome: .refused, error: expected)])
    }

    @Test("R14 users without an invitation can't accept or decline one")
    func notInvited() throws {
        let world = try world(.community)
        #expect(try world.code(AcceptInvitation(channel: "group"), as: "eve") == .notInvited)
        #expect(try world.code(DeclineInvitation(channel: "group"), as: "eve") == .notInvited)
        #expect(try world.code(DeclineInvitation(channel: "group"), as: "bob") == .notInvited)
        #expect(try world.code(InviteMembers(channel: "group", users: ["cid"]), as: "eve") == .notMember)
    }

    @Test("R14 an invitation is withdrawn by its inviter, and by users who may remove members")
    func withdraws() throws {
        let world = try world()
        _ = try invite(["cid"], as: "bob", in: world)
        _ = try invite(["dan"], as: "ann", in: world)
        let byBob = try world.perform(WithdrawInvitations(channel: "group", users: ["cid", "dan", "eve"]), as: "bob").results
        #expect(byBob.map(\.outcome) == [.withdrawn, .refused, .notInvited])
        let byAnn = try world.perform(WithdrawInvitations(channel: "group", users: ["dan"]), as: "ann").results
        #expect(byAnn.map(\.outcome) == [.withdrawn])
        #expect(try world.code(AcceptInvitation(channel: "group"), as: "cid") == .notInvited)
        #expect(world.events(to: .user("cid")).last?.kind == .invitationWithdrawn)
    }

    @Test("SB-16 answering an ended invitation is not_invited in a private channel too, and strangers learn nothing from it")
    func endedInvitations() throws {
        let world = try world()
        _ = try invite(["cid", "dan"], in: world)
        try world.perform(DeclineInvitation(channel: "group"), as: "cid")
        try world.perform(WithdrawInvitations(channel: "group", users: ["dan"]), as: "bob")
        func answers(_ user: UserID) throws -> [RoostError?] {
            let own = try world.refusal(DeclineInvitation(channel: "group"), as: user)
            let explained = try? world.perform(ExplainPermission(channel: "group", permission: .invitationAnswer), as: user)
            return [own, try world.refusal(AcceptInvitation(channel: "group"), as: user), explained?.refusal]
        }
        let (cid, dan, stranger) = (try answers("cid"), try answers("dan"), try answers("eve"))
        #expect(cid.map { $0?.code } == [.notInvited, .notInvited, .notInvited] && dan == cid)
        let nowhere = try world.refusal(DeclineInvitation(channel: "nowhere"), as: "eve")
        #expect(stranger == [nowhere, nowhere, nil])
        for user in ["cid", "dan"] as [UserID] {
            #expect(try world.code(GetChannel(channel: "group"), as: user) == .notFound)
            #expect(try world.code(ListInvitations(channel: "group"), as: user) == .notFound)
        }
        // Nor does it reveal what happened to the channel since.
        try world.perform(DeleteChannel(channel: "group"), as: "ann")
        #expect(try answers("cid") == cid)
    }

    @Test(
        "SB-17 R14 R38 in a group all members are notified of an invitation and of its end; elsewhere only the two users concerned",
        arguments: [ChannelType.group, .community])
    func audience(type: ChannelType) throws {
        let world = try world(type)
        let notices = try world.notices {
            _ = try invite(["cid"], in: world)
            try world.perform(DeclineInvitation(channel: "group"), as: "cid")
        }
        let kinds = notices.compactMap {
            if case .event(let event, let audience) = $0 { "\(event.kind.rawValue) \(audience)" } else { nil }
        }
        let members = Audience.channel("group")
        let expected = [
            type == .group ? "invitation.received \(members)" : nil, "invitation.sent \(Audience.user("bob"))",
            "invitation.received \(Audience.user("cid"))",
            type == .group ? "invitation.declined \(members)" : nil, "invitation.declined \(Audience.user("cid"))",
            "invitation.declined \(Audience.user("bob"))",
        ].compactMap { $0 }
        #expect(kinds == expected)
    }

    @Test("SB-01 R14 the cap on members holds when inviting and again when accepting")
    func caps() throws {
        let world = try world()
        try world.perform(UpdateChannel(channel: "group").with { $0.policy = PolicyChanges(maxMembers: 3) }, as: "ann")
        #expect(try invite(["cid", "dan"], in: world).map(\.outcome) == [.invited, .invited])
        try world.perform(AcceptInvitation(channel: "group"), as: "dan")
        #expect(try world.code(AcceptInvitation(channel: "group"), as: "cid") == .memberLimit)
        let full = try invite(["eve"], in: world)
        #expect(
            full == [
                MemberResult(
                    userId: "eve", outcome: .refused,
                    error: RoostError(.memberLimit, "The channel has room for 3 members.", limit: 3))
            ])
    }

    @Test("R14 X-20 an invitation of a user at the limit of channels is declined for them")
    func autoDeclines() throws {
        let world = try world()
        world.options.channelsPerUser = 1
        try world.channel("own", owner: "eve")
        #expect(try invite(["eve"], in: world).map(\.outcome) == [.autoDeclined])
        #expect(try world.code(CreateChannel(channel: "more"), as: "eve") == .channelLimit)
    }

    @Test("SB-18 R14 the preference is the user's own, true by default, and sent to the user's own devices")
    func preference() throws {
        let world = try world()
        #expect(try world.perform(GetPreferences(), as: "eve") == Preferences(autoAcceptInvitations: true))
        let notices = try world.notices { try world.perform(UpdatePreferences(autoAcceptInvitations: false), as: "eve") }
        let again = try world.notices { try world.perform(UpdatePreferences(autoAcceptInvitations: false), as: "eve") }
        #expect(notices.count == 1 && again == [])
        #expect(world.events(to: .user("eve")).last?.rows == Rows([Preferences(autoAcceptInvitations: false)]))
    }

    @Test("SB-07 SB-18 a group's first users are invited: those who want to be asked are")
    func creation() throws {
        let world = try world()
        let create = CreateChannel(channel: "new", type: .group, users: ["cid", "eve"])
        let view = try world.perform(create, as: "ann")
        #expect(view.channel.counters.memberCount == 2)
        #expect(try world.perform(ListMyInvitations(), as: "cid").items.map(\.invitation.inviter) == ["ann"])
        let accepted = world.events(to: .user("eve")).last?.rows.invitations
        #expect(accepted?.map(\.state) == [.accepted] && accepted?.first?.inviter == "ann")
    }

    @Test("EM-24 a welcome text has 500 characters, a call 100 users, each once")
    func limits() throws {
        let world = try world()
        let text = String(repeating: "x", count: 501)
        let many = (0...100).map { UserID("u\($0)") }
        let codes = try [
            world.code(InviteMembers(channel: "group", users: ["cid"], welcome: text), as: "ann"),
            world.code(InviteMembers(channel: "group", users: many), as: "ann"),
            world.code(InviteMembers(channel: "group", users: ["cid", "cid"]), as: "ann"),
            world.code(InviteMembers(channel: "group", users: []), as: "ann"),
            world.code(InviteMembers(channel: "group", users: ["cid"], welcome: String(text.dropLast())), as: "ann"),
        ]
        #expect(codes == [.limitExceeded, .limitExceeded, .invalidArgument, .invalidArgument, nil])
    }

    @Test("R14 at most 1000 invitations into a channel are pending, however they are spread over calls")
    func pendingLimit() throws {
        let world = try world()
        try world.execute(
            """
            INSERT INTO invitations (channel_id, user_id, inviter_id, role, state, invited_at, invited_seq, revision, channel_seq, user_seq,
                                     inviter_seq)
            WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 999)
            SELECT 'group', 'waiting-' || n, 'ann', 'member', 'pending', 0, 0, 1, 0, 0, 0 FROM numbers
            """)
        let results = try invite(["cid", "dan"], in: world)
        #expect(results.map(\.outcome) == [.invited, .refused] && results.last?.error?.code == .limitExceeded)
    }

    @Test("R14 at most 1000 invitations to one user are pending, over all inviters and channels")
    func pendingLimitOfUser() throws {
        let world = try world()
        try world.execute(
            """
            INSERT INTO invitations (channel_id, user_id, inviter_id, role, state, invited_at, invited_seq, revision, channel_seq, user_seq,
                                     inviter_seq)
            WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 999)
            SELECT 'other-' || n, 'cid', 'ann', 'member', 'pending', 0, 0, 1, 0, 0, 0 FROM numbers
            """)
        #expect(try invite(["cid"], in: world).map(\.outcome) == [.invited])
        try world.channel("last", type: .group, owner: "eve")
        let results = try world.perform(InviteMembers(channel: "last", users: ["cid", "dan"]), as: "eve").results
        #expect(results.map(\.outcome) == [.refused, .invited] && results.first?.error?.code == .limitExceeded)
    }
}
