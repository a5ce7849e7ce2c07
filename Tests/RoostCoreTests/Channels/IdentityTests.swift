import RoostAPI
import RoostDatabase
import RoostTestSupport
import Testing

@testable import RoostCore

/// Ids, aliases, distinct channels and idempotency keys.
@Suite("Identity of channels") struct IdentityTests {
    private func world() throws -> CoreWorld {
        let world = try CoreWorld()
        for user in ["ann", "bob", "cid", "dan"] as [UserID] { try world.user(user) }
        return world
    }

    @Test("ST-03 R02 a channel answers to its id and to type:id, on every path")
    func alias() throws {
        let world = try world()
        try world.channel("general", type: .messaging, owner: "ann", members: ["bob"])
        #expect(try world.perform(GetChannel(channel: "messaging:general"), as: "bob").channel.channelId == "general")
        #expect(try world.code(GetChannel(channel: "group:general"), as: "bob") == .notFound)
        let message = try world.perform(SendMessage(channel: "messaging:general", clientId: "1", text: "hi"), as: "bob")
        #expect(message.channelId == "general")
        #expect(try world.perform(SendMessage(channel: "general", clientId: "1", text: "hi"), as: "bob") == message)
        #expect(try world.perform(SendMessage(channel: "messaging:general", clientId: "1", text: "hi"), as: "bob") == message)
        let operations: [any Handled] = [
            EditMessage(channel: "messaging:general", message: message.messageId, text: "ho"),
            MarkRead(channel: "messaging:general"), WatchChannel(channel: "messaging:general"),
            UnwatchChannel(channel: "messaging:general"), HideChannel(channel: "messaging:general"),
            UpdateChannel(channel: "messaging:general", displayName: "G"), FreezeChannel(channel: "messaging:general"),
            AddMembers(channel: "messaging:general", users: ["cid"]), RemoveMembers(channel: "messaging:general", users: ["cid"]),
            ListMembers(channel: "messaging:general"), GetChannelChanges(channel: "messaging:general", after: 0),
            DeleteMessage(channel: "messaging:general", message: message.messageId), LeaveChannel(channel: "messaging:general"),
        ]
        #expect(try operations.map { try world.code($0, as: "ann", connection: 1) } == operations.map { _ in nil })
        let streams = Set(world.events().map(\.stream)).filter { if case .channel = $0 { true } else { false } }
        #expect(streams == [.channel("general")])
    }

    @Test("ST-03 R02 a name that another channel answers to can't be taken")
    func aliasTaken() throws {
        let world = try world()
        try world.channel("general", type: .messaging, owner: "ann")
        try world.channel("group:plans", type: .group, owner: "ann")
        let codes = try [
            world.code(CreateChannel(channel: "messaging:general", type: .messaging), as: "bob"),
            world.code(CreateChannel(channel: "plans", type: .group), as: "bob"),
            world.code(CreateChannel(channel: "messaging:other", type: .group), as: "bob"),
            world.code(CreateChannel(channel: "elsewhere:general", type: .messaging), as: "bob"),
            world.code(CreateChannel(channel: "general", type: .group), as: "bob"),
        ]
        #expect(codes == [.alreadyExists, .alreadyExists, .invalidArgument, nil, .alreadyExists])
    }

    @Test(
        "AM-13 R02 an id has 1 to 128 characters without control characters, slash and comma, in form C",
        arguments: [
            "", "a/b", "a,b", "a\u{0}b", "a\nb", "a\u{7F}", "\u{85}", "\u{2028}", ".", "..", String(repeating: "x", count: 129),
            "e\u{301}",
        ])
    func invalid(id: String) throws {
        let world = try world()
        let before = try world.dump()
        let refusal = try world.refusal(CreateChannel(channel: ChannelID(id)), as: "ann")
        #expect(refusal?.field == "channel" && [.invalidArgument, .limitExceeded].contains(refusal?.code))
        #expect(try world.dump() == before)
    }

    @Test("AM-13 R02 ids that look alike are different channels", arguments: ["а", "ａ", "A"])
    func lookalikes(id: String) throws {
        let world = try world()
        try world.channel("a", owner: "ann")
        #expect(try world.code(CreateChannel(channel: ChannelID(id)), as: "ann") == nil)
    }

    @Test("AM-25 I9 the answer with an existing channel waits for the membership in it, which another node may have made")
    func existingChannel() throws {
        let world = try world()
        try world.perform(CreateChannel(type: .conversation, users: ["bob"]), as: "ann")
        let again = CreateChannel(type: .conversation, users: ["ann"])
        let bob = Caller(user: "bob")
        let callerSeq = try world.inContext(scope: again.scope(for: bob), as: bob) { context in
            _ = try again.handle(in: &context)
            return context.callerSeq
        }
        let head = try world.database.read { try $0.streams(of: "bob").user }
        #expect(callerSeq == head)
    }

    @Test("AM-24 AM-25 R04 each set of people has one conversation, regardless of creator and order")
    func conversation() throws {
        let world = try world()
        let first = try world.perform(CreateChannel(type: .conversation, users: ["bob"]), as: "ann").channel
        try world.send("hi", to: first.channelId, as: "ann")
        let again = try world.perform(CreateChannel(type: .conversation, displayName: "else", users: ["ann", "ann"]), as: "bob")
        #expect(again.channel.channelId == first.channelId && again.channel.displayName == nil)
        #expect(again.lastMessage?.text == "hi")
        let three = try world.perform(CreateChannel(type: .conversation, users: ["bob", "cid"]), as: "ann").channel
        #expect(three.channelId != first.channelId && three.isDistinct)
        #expect(try world.perform(CreateChannel(type: .conversation, users: ["ann", "bob"]), as: "cid").channel == three)
    }

    @Test(
        "AM-25 R04 people whose ids were stored before the rules for Korean keep their conversation: its key has their ids in the former order"
    )
    func formerOrder() {
        // In form C the second id is one syllable, U+D55C, which comes after the first. By their bytes it comes before it.
        let ids: [UserID] = ["\u{D559}", "\u{D558}\u{11AB}"]
        #expect(ids[1] < ids[0])
        let key = Fingerprint.of("conversation\n\u{D559}\n\u{D558}\u{11AB}")
        #expect(DistinctKey.of(.conversation, members: ids) == key)
        #expect(DistinctKey.of(.conversation, members: ids.reversed()) == key)
        // Of ids that are equal in form C, both count, in the order of their bytes.
        let equal: [UserID] = ["\u{D55C}", "\u{D558}\u{11AB}"]
        let both = Fingerprint.of("conversation\n\u{D558}\u{11AB}\n\u{D55C}")
        #expect(DistinctKey.of(.conversation, members: equal) == both)
        #expect(DistinctKey.of(.conversation, members: equal.reversed()) == both)
    }

    @Test("AM-24 a conversation needs another user", arguments: [nil, [], ["ann"]] as [[UserID]?])
    func alone(users: [UserID]?) throws {
        let world = try world()
        let refusal = try world.refusal(CreateChannel(type: .conversation, users: users), as: "ann")
        #expect(refusal?.code == .invalidArgument && refusal?.field == "users")
    }

    @Test("AM-24 a conversation made by a service has at least two people, without the service")
    func madeByService() throws {
        let world = try world()
        for users in [nil, [], ["ann"]] as [[UserID]?] {
            let create = CreateChannel(type: .conversation, users: users)
            let refusal = try world.refusal(create, as: "dan", role: .service)
            #expect(refusal?.code == .invalidArgument && refusal?.field == "users")
        }
        let create = CreateChannel(type: .conversation, users: ["ann", "bob"])
        let talk = try world.perform(create, as: "dan", role: .service).channel
        #expect(talk.counters.memberCount == 2)
        #expect(
            try world.perform(CreateChannel(type: .conversation, users: ["bob"]), as: "ann").channel.channelId == talk.channelId)
    }

    @Test("SB-05 SB-07 D-12 D-14 R04 its members have one distinct group; without the flag each create makes another")
    func distinct() throws {
        let world = try world()
        func create(_ distinct: Bool?, _ users: [UserID], as user: UserID) throws -> Channel {
            try world.perform(CreateChannel(type: .group, users: users).with { $0.isDistinct = distinct }, as: user).channel
        }
        let first = try create(true, ["bob"], as: "ann")
        #expect(first.isDistinct)
        #expect(try create(true, ["ann", "bob"], as: "bob") == first)
        let others = try [create(nil, ["bob"], as: "ann"), create(false, ["bob"], as: "ann")]
        #expect(Set((others + [first]).map(\.channelId)).count == 3)
        #expect(others.map(\.isDistinct) == [false, false])
        #expect(try create(true, ["bob", "cid"], as: "ann").channelId != first.channelId)
    }

    @Test("SB-06 several channels with the same people stay separate")
    func notDistinct() throws {
        let world = try world()
        let ids = try (0..<2).map { _ in try world.perform(CreateChannel(type: .group, users: ["bob"]), as: "ann").channel.channelId
        }
        try world.send("one", to: ids[0], as: "ann")
        #expect(try ids.map { try world.perform(ListMessages(channel: $0), as: "bob").messages.map(\.text) } == [["one"], []])
    }

    @Test(
        "SB-05 SB-20 a distinct channel stops being distinct once it is deleted or anyone is invited, uninvited, added or removed, joins, leaves or declines",
        arguments: ["invite", "add", "join", "leave", "remove", "decline", "withdraw", "delete"])
    func endsDistinct(how: String) throws {
        let world = try world()
        if ["decline", "withdraw"].contains(how) {
            try world.perform(UpdatePreferences(autoAcceptInvitations: false), as: "bob")
        }
        var create = CreateChannel(type: .group, users: ["bob"])
        create.isDistinct = true
        if how == "join" { create.isPublic = true }
        let first = try world.perform(create, as: "ann").channel
        #expect(try world.perform(create, as: "ann").channel.channelId == first.channelId)
        let id = first.channelId
        switch how {
        case "invite": try world.perform(InviteMembers(channel: id, users: ["cid"]), as: "ann")
        case "add": try world.perform(AddMembers(channel: id, users: ["cid"]), as: "ann")
        case "join": try world.perform(JoinChannel(channel: id), as: "cid")
        case "leave": try world.perform(LeaveChannel(channel: id), as: "bob")
        case "remove": try world.perform(RemoveMembers(channel: id, users: ["bob"]), as: "ann")
        case "decline": try world.perform(DeclineInvitation(channel: id), as: "bob")
        case "withdraw": try world.perform(WithdrawInvitations(channel: id, users: ["bob"]), as: "ann")
        default: try world.perform(DeleteChannel(channel: id), as: "ann")
        }
        let event = world.events(to: .channel(id)).last { $0.rows.channel != nil }
        #expect(event?.rows.channel?.isDistinct == false)
        let second = try world.perform(create, as: "ann").channel
        #expect(second.channelId != id && second.isDistinct)
        #expect(try world.perform(GetChannel(channel: id), as: "ann").channel.isDistinct == false)
    }

    @Test("SB-05 SB-18 accepting the invitation of a distinct channel leaves it distinct for the set it was made for")
    func acceptKeepsTheSet() throws {
        let world = try world()
        try world.perform(UpdatePreferences(autoAcceptInvitations: false), as: "bob")
        let create = CreateChannel(type: .group, users: ["bob"]).with { $0.isDistinct = true }
        let id = try world.perform(create, as: "ann").channel.channelId
        try world.perform(AcceptInvitation(channel: id), as: "bob")
        #expect(try world.perform(create, as: "ann").channel.channelId == id)
    }

    @Test(
        "SB-05 R04 X-20 a channel that left out a user with too many channels isn't distinct, whether they would have been asked or not",
        arguments: [true, false])
    func leavesOut(accepts: Bool) throws {
        let world = try world()
        world.options.channelsPerUser = 2
        for id in ["one", "two"] as [ChannelID] { try world.channel(id, owner: "bob") }
        try world.perform(UpdatePreferences(autoAcceptInvitations: accepts), as: "bob")
        let create = CreateChannel(type: .group, users: ["bob"], isDistinct: true)
        let without = try world.perform(create, as: "ann").channel
        #expect(without.isDistinct == false && without.counters.memberCount == 1)
        #expect(try world.perform(ListMyInvitations(), as: "bob").items.isEmpty)
        try world.perform(LeaveChannel(channel: "one"), as: "bob")
        let with = try world.perform(CreateChannel(type: .group, users: ["ann"], isDistinct: true), as: "bob")
        #expect(with.channel.channelId != without.channelId && with.channel.isDistinct && with.membership?.state == .member)
    }

    @Test("AM-24 SB-10 a refusal because of a named user says in which field")
    func fields() throws {
        let world = try world()
        func field(_ create: CreateChannel, as user: UserID = "ann") throws -> [String?] {
            let refusal = try world.refusal(create, as: user)
            return [refusal?.code.rawValue, refusal?.field]
        }
        #expect(try field(CreateChannel(operators: ["ghost"])) == ["not_found", "operators"])
        #expect(try field(CreateChannel(users: ["ghost"], operators: ["ghost"])) == ["not_found", "users"])
        let small = PolicyChanges(maxMembers: 2)
        #expect(try field(CreateChannel(users: ["bob", "cid"], policy: small)) == ["member_limit", "users"])
        #expect(try field(CreateChannel(users: ["bob"], operators: ["cid"], policy: small)) == ["member_limit", "operators"])

        world.options.channelsPerUser = 1
        try world.channel("one", owner: "bob")
        #expect(try field(CreateChannel(users: ["bob"])) == ["channel_limit", "users"])
        #expect(try field(CreateChannel(users: ["cid"], operators: ["bob"])) == ["channel_limit", "operators"])
        #expect(try field(CreateChannel(users: ["cid"]), as: "bob") == ["channel_limit", nil])

        try world.perform(UpdatePreferences(autoAcceptInvitations: false), as: "dan")
        try world.execute(
            """
            INSERT INTO invitations (channel_id, user_id, inviter_id, role, state, invited_at, invited_seq, revision, channel_seq, user_seq,
                                     inviter_seq)
            WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < \(Int64(Limits.pendingInvitationsPerUser)))
            SELECT 'c' || n, 'dan', 'cid', 'member', 'pending', 0, 1, 1, 1, 1, 1 FROM numbers
            """)
        #expect(try field(CreateChannel(type: .group, operators: ["dan"])) == ["limit_exceeded", "operators"])
    }

    @Test("SB-11 a group can be made distinct later, unless its members have another distinct one, and can stop being distinct")
    func updatesDistinct() throws {
        let world = try world()
        for id in ["one", "two"] as [ChannelID] {
            try world.perform(CreateChannel(channel: id, type: .group, users: ["bob"]), as: "ann")
        }
        func set(_ distinct: Bool, _ id: ChannelID) throws -> RoostError.Code? {
            try world.code(UpdateChannel(channel: id).with { $0.isDistinct = distinct }, as: "ann")
        }
        #expect(try [set(true, "one"), set(true, "two"), set(false, "one"), set(true, "two")] == [nil, .alreadyExists, nil, nil])
        try world.channel("open", owner: "ann")
        #expect(try set(true, "open") == .kindForbids)
    }

    @Test("SB-05 SB-11 a group is made distinct for its members and all invited users; it has 100 members at most")
    func updatesDistinctWithInvited() throws {
        let world = try world()
        for user in ["cid", "dan"] as [UserID] {
            try world.perform(UpdatePreferences(autoAcceptInvitations: false), as: user)
        }
        func makeDistinct(_ id: ChannelID) throws -> RoostError.Code? {
            try world.code(UpdateChannel(channel: id).with { $0.isDistinct = true }, as: "ann")
        }
        try world.perform(CreateChannel(channel: "pair", type: .group, users: ["bob"], isDistinct: true), as: "ann")
        try world.perform(CreateChannel(channel: "three", type: .group, users: ["bob"]), as: "ann")
        try world.perform(InviteMembers(channel: "three", users: ["cid"]), as: "ann")
        #expect(try makeDistinct("three") == nil)
        let three = CreateChannel(type: .group, users: ["bob", "cid"], isDistinct: true)
        #expect(try world.perform(three, as: "ann").channel.channelId == "three")

        let others = (1..<Limits.membersPerGroup).map { UserID("u\($0)") }
        for user in others { try world.user(user) }
        let policy = PolicyChanges(maxMembers: Limits.membersPerGroup + 1)
        try world.perform(CreateChannel(channel: "many", type: .group, users: others, policy: policy), as: "ann")
        try world.perform(InviteMembers(channel: "many", users: ["dan"]), as: "ann")
        #expect(try makeDistinct("many") == nil)
        try world.perform(AddMembers(channel: "many", users: ["cid"]), as: "ann")
        #expect(try makeDistinct("many") == .limitExceeded)
    }

    @Test("SB-12 R02 a create repeated with its key answers with the first one's channel, for 7 days")
    func idempotencyKey() throws {
        let world = try world()
        let create = CreateChannel(type: .group, users: ["bob"]).with { $0.idempotencyKey = "k1" }
        let first = try world.perform(create, as: "ann").channel.channelId
        let before = try world.dump()
        #expect(try world.perform(create, as: "ann").channel.channelId == first)
        #expect(try world.dump() == before)
        #expect(try world.code(create.with { $0.displayName = "else" }, as: "ann") == .keyReused)
        #expect(try world.perform(create, as: "cid").channel.channelId != first)
        world.advance(milliseconds: Int64(Limits.idempotencyKeyHours) * 3_600_000)
        #expect(try world.perform(create, as: "ann").channel.channelId != first)
    }

    @Test("SB-12 a user's keys of creations are limited at a time, the app's backend's aren't, and a known key still answers")
    func keyCount() throws {
        let world = try world()
        func create(_ key: String) -> CreateChannel { CreateChannel(type: .group).with { $0.idempotencyKey = key } }
        let first = try world.perform(create("first"), as: "ann").channel.channelId
        try world.execute(
            """
            INSERT INTO idempotency_keys (user_id, request_key, request, channel_id, created_at)
            WITH RECURSIVE numbers (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM numbers WHERE n < \(Int64(Limits.idempotencyKeysPerUser)))
            SELECT u.user_id, 'k' || numbers.n, '', 'c', \(world.now) FROM numbers, users u
            """)
        let refusal = try world.refusal(create("more"), as: "ann")
        #expect([refusal?.code.rawValue, refusal?.field] == ["limit_exceeded", "idempotencyKey"])
        #expect(refusal?.limit == Int64(Limits.idempotencyKeysPerUser))
        #expect(try world.perform(create("first"), as: "ann").channel.channelId == first)
        #expect(try world.code(CreateChannel(type: .group), as: "ann") == nil)
        #expect(try world.code(create("more"), as: "ann", role: .admin) == nil)
    }
}
