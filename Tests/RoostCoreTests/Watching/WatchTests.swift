import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@Suite("Watching")
struct WatchTests {
    @Test("ST-05 D-22 D-23 a watch answers with config, channel, membership, online, watchers, members, read and messages")
    func answers() throws {
        let world = try CoreWorld()
        world.presence = KnownPresence(online: (1...7).map { UserID("u\($0)") }, watching: ["bob", "ghost"])
        try world.channel("general", owner: "ann", members: ["bob"])
        let message = try world.send("hi", to: "general", as: "ann")
        let watched = try world.perform(WatchChannel(channel: "general", limit: 1), as: "ann", connection: 3)

        let view = try world.perform(GetChannel(channel: "general"), as: "ann")
        let members = try world.perform(ListMembers(channel: "general"), as: "ann").items.map(\.member)
        let users = try world.perform(GetUsers(users: ["ann", "bob"]), as: "ann")
        let policy = try #require(ChannelPolicy.preset(.community))
        let expected = WatchedChannel(
            config: policy, channel: view.channel, membership: view.membership, online: 7, watcherCount: 3,
            watchers: Dictionary(uniqueKeysWithValues: users.map { ($0.userId.rawValue, $0) }),
            members: Dictionary(uniqueKeysWithValues: members.map { ($0.userId.rawValue, $0) }), users: users.map(\.summary),
            read: [
                "ann": ReadState(readSeq: 1, lastReadAt: nil, unreadCount: 0),
                "bob": ReadState(readSeq: 1, lastReadAt: nil, unreadCount: 1),
            ],
            messages: MessagePage(
                messages: [message], hasOlder: false, hasNewer: false, seq: 2,
                users: users.filter { $0.userId == "ann" }.map(\.summary)),
            ownCapabilities: view.ownCapabilities)
        #expect(watched == expected)
        #expect(world.notices.last == .watching(ConnectionID(rawValue: 3), "ann", "general", at: 2, online: 7))
    }

    @Test("D-22 ST-05 a watch has each member's last read message, the newest that the caller may see")
    func lastRead() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob", "cid", "dan"])
        let messages = try (1...3).map { try world.send("\($0)", to: "general", as: "ann") }
        try world.perform(MarkRead(channel: "general", seq: messages[1].seq), as: "bob")
        try world.perform(MarkRead(channel: "general"), as: "cid")
        func lastRead(_ caller: UserID = "ann") throws -> [String: MessageID?] {
            try world.perform(WatchChannel(channel: "general", limit: 1), as: caller, connection: 1).read
                .mapValues(\.lastReadMessageId)
        }
        // Sending doesn't count as reading.
        #expect(try lastRead() == ["ann": nil, "bob": messages[1].messageId, "cid": messages[2].messageId, "dan": nil])
        // For a position without a message it is the previous one; for a message deleted for good too.
        try world.perform(UpdateChannel(channel: "general", displayName: "General"), as: "ann")
        try world.perform(MarkRead(channel: "general"), as: "dan")
        try world.perform(PurgeMessage(channel: "general", message: messages[1].messageId), as: "root", role: .admin)
        #expect(try lastRead()["bob"] == messages[0].messageId && lastRead()["dan"] == messages[2].messageId)
        // Earlier messages aren't named to users who don't see them.
        try world.user("eve")
        try world.perform(AddMembers(channel: "general", users: ["eve"], hideHistory: true), as: "ann")
        #expect(try lastRead("eve").values.allSatisfy { $0 == nil })
    }

    @Test("ST-11 ST-12 a watch shows as many watchers as requested, up to 300, and as fit into a page; their number in any case")
    func watchersLimit() throws {
        let world = try CoreWorld()
        let crowd = (0..<400).map { UserID("u\($0)") }
        world.presence = KnownPresence(watching: crowd)
        try world.channel("general", owner: "ann")
        for user in crowd { try world.user(user) }
        func watchers(_ limit: Int?) throws -> Int {
            let watched = try world.perform(WatchChannel(channel: "general", watchersLimit: limit), as: "ann", connection: 1)
            #expect(watched.watcherCount == 401)
            return watched.watchers.count
        }
        #expect(try [watchers(0), watchers(25), watchers(300), watchers(nil)] == [0, 25, 300, 30])
        let over = try world.refusal(WatchChannel(channel: "general", watchersLimit: 301), as: "ann", connection: 1)
        #expect(over?.code == .limitExceeded && over?.field == "watchersLimit" && over?.limit == 300)
        let under = try world.refusal(WatchChannel(channel: "general", watchersLimit: -1), as: "ann", connection: 1)
        #expect(under?.code == .invalidArgument && under?.field == "watchersLimit")
        let large: JSONValue = ["text": .string(String(repeating: "x", count: 95_000))]
        for user in crowd.prefix(20) { _ = try world.perform(UpsertUser(user: user, metadata: large), as: "root", role: .admin) }
        #expect(try watchers(300) < 20)
    }

    @Test("ST-05 the answer shows 30 members and 30 watchers at most")
    func bounds() throws {
        let world = try CoreWorld()
        let crowd = (0..<40).map { UserID("u\($0)") }
        world.presence = KnownPresence(watching: crowd)
        try world.channel("general", owner: "ann", members: crowd)
        let watched = try world.perform(WatchChannel(channel: "general"), as: "ann", connection: 1)
        let counts = [watched.members.count, watched.read.count, watched.watchers.count, watched.watcherCount]
        #expect(counts == [30, 30, 30, 41])
    }

    @Test("ST-05 D-22 in a channel with more members than are named, the caller and their read position are always included")
    func callerAmongMany() throws {
        let world = try CoreWorld()
        let crowd = (0..<40).map { UserID("u\($0)") }
        try world.channel("general", owner: "zoe", members: crowd)
        try world.user("amy")
        try world.perform(AddMembers(channel: "general", users: ["amy"]), as: "zoe")
        // The first member and the last.
        for caller in ["zoe", "amy"] as [UserID] {
            let watched = try world.perform(WatchChannel(channel: "general"), as: caller, connection: 1)
            #expect(watched.members.count == 30 && watched.read.count == 30)
            #expect(watched.members[caller.rawValue]?.userId == caller && watched.read[caller.rawValue] != nil)
            #expect(watched.users?.contains { $0.userId == caller } == true)
        }
        // Non-members aren't among them.
        try world.channel("show", type: .livestream, owner: "zoe", members: crowd)
        try world.user("zzz")
        let guest = try world.perform(WatchChannel(channel: "show"), as: "zzz", connection: 2)
        #expect(guest.members.count == 30 && guest.members["zzz"] == nil)
    }

    @Test(
        "AM-13 ST-05 two members whose ids are equal as texts and differ in their bytes don't stop a watch: it shows one, the caller if it is one"
    )
    func spellings() throws {
        let world = try CoreWorld()
        let users: [UserID] = ["\u{105c9}", "\u{105d2}\u{307}"]
        world.presence = KnownPresence(watching: users)
        try world.channel("general", owner: "ann", members: users)
        let seen = try world.perform(WatchChannel(channel: "general"), as: "ann", connection: 1)
        #expect(seen.members.count == 2 && seen.watchers.count == 2)
        for user in users {
            let own = try world.perform(WatchChannel(channel: "general"), as: user, connection: 2)
            #expect(own.members[user.rawValue]?.userId == user)
        }
    }

    @Test("ST-05 I9 a user who may watch but not read gets no messages or read positions, as on any other path")
    func withoutReading() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["gus"])
        let guide = PutRole(role: "guide", rank: 10, permissions: [.channelWatch])
        try world.perform(guide, as: "root", role: .admin)
        try world.setRole("guide", of: "gus", in: "general")
        try world.send("secret", to: "general", as: "ann")
        let policy = PolicyChanges(read: .operators)
        try world.perform(UpdateChannel(channel: "general", policy: policy), as: "root", role: .admin)
        #expect(try world.code(ListMessages(channel: "general"), as: "gus") == .notPermitted)
        for limit in [nil, 0, 100] {
            let watched = try world.perform(WatchChannel(channel: "general", limit: limit), as: "gus", connection: 1)
            #expect(watched.messages.messages.isEmpty && !watched.messages.hasOlder, "\(String(describing: limit))")
            #expect(watched.read.isEmpty && watched.members.count == (limit == 0 ? 0 : 2), "\(String(describing: limit))")
        }
        #expect(try world.code(ListReaders(channel: "general"), as: "gus") == .notPermitted)
        let watched = try world.perform(WatchChannel(channel: "general"), as: "ann", connection: 2)
        #expect(watched.messages.messages.count == 1 && watched.read.keys.sorted() == ["ann"])
    }

    @Test("ST-05 I10 a watch says whether its user may read now, which the channel's last event may not know")
    func mayRead() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["gus"])
        func guides(_ permissions: [Permission]) throws {
            try world.perform(PutRole(role: "guide", rank: 10, permissions: permissions), as: "root", role: .admin)
        }
        try guides([.channelWatch])
        try world.setRole("guide", of: "gus", in: "general")
        let policy = PolicyChanges(read: .operators)
        try world.perform(UpdateChannel(channel: "general", policy: policy), as: "root", role: .admin)
        func sent() throws -> [Notice] {
            let notices = try world.notices { () throws -> Void in
                try world.perform(WatchChannel(channel: "general"), as: "gus", connection: 1)
                try world.perform(QueryAndWatchChannels(query: QueryChannels()), as: "gus", connection: 2)
            }
            return notices.filter { if case .mayRead = $0 { true } else { false } }
        }
        #expect(try sent() == [])
        try guides([.channelWatch, .historyRead])
        let expected: [Notice] = [
            .mayRead(ConnectionID(rawValue: 1), "general"), .mayRead(ConnectionID(rawValue: 2), "general"),
        ]
        #expect(try sent() == expected)
    }

    @Test("D-22 X-33 others' read and delivered positions aren't shown in large channels, where nobody may request them")
    func largeChannel() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        func shown() throws -> Set<String> {
            Set(try world.perform(WatchChannel(channel: "general"), as: "ann", connection: 1).read.keys)
        }
        #expect(try shown() == ["ann", "bob"])
        try world.execute("UPDATE channel_heads SET member_count = \(Limits.largeChannelMembers) WHERE channel_id = 'general'")
        #expect(try shown() == ["ann", "bob"])
        try world.execute("UPDATE channel_heads SET member_count = \(Limits.largeChannelMembers + 1) WHERE channel_id = 'general'")
        #expect(try shown() == ["ann"])
    }

    @Test("ST-06 ST-12 pages of watchers have 300 at most, at an offset of 10,000 at most, with their names and pictures")
    func pages() throws {
        let world = try CoreWorld()
        let crowd = (0..<10_400).map { UserID("u\($0)") }
        world.presence = KnownPresence(watching: crowd)
        try world.channel("general", owner: "ann", members: ["u7"])
        func page(_ offset: Int?, _ limit: Int?) throws -> WatcherPage {
            try world.perform(ListWatchers(channel: "general", limit: limit, offset: offset), as: "ann")
        }
        let first = try page(nil, nil)
        #expect(first.watchers.map(\.userId) == Array(crowd.prefix(30)) && first.watcherCount == 10_400)
        // A user unknown to the server still has an id.
        #expect(first.watchers[7].version > 0 && first.watchers[8] == UserSummary(userId: "u8"))
        #expect(try page(10_000, 300).watchers.map(\.userId) == Array(crowd[10_000..<10_300]))
        #expect(try page(300, 1).watchers.map(\.userId) == ["u300"])
        let codes = try [(0, 0), (0, 301), (-1, 1), (10_001, 1)].map {
            try world.code(ListWatchers(channel: "general", limit: $1, offset: $0), as: "ann")
        }
        #expect(codes == [.invalidArgument, .limitExceeded, .invalidArgument, .limitExceeded])
        try world.user("zoe")
        try world.channel("hidden", type: .messaging, owner: "ann")
        #expect(try world.code(ListWatchers(channel: "hidden"), as: "zoe") == .notFound)
    }

    @Test("ST-01 ST-05 R06 D-23 online users are counted in a channel that the watch itself makes, except invisible ones")
    func countsInNewChannel() throws {
        let world = try CoreWorld()
        for user in ["ann", "bob", "cid", "dan"] as [UserID] { try world.user(user) }
        try world.perform(UpdatePreferences(sharesPresence: false), as: "dan")
        world.presence = OnlyConnections(users: ["ann", "bob", "dan", "zoe"])
        let watch = WatchChannel(channel: "new", create: CreateChannel(users: ["bob", "cid", "dan"]))
        #expect(try world.perform(watch, as: "ann", connection: 1).online == 2)
        let talk = WatchChannel(channel: "talk", create: CreateChannel(type: .conversation, users: ["bob"]))
        #expect(try world.perform(talk, as: "ann", connection: 1).online == 2)
        // It is the same conversation under another name.
        let other = WatchChannel(channel: "other", create: CreateChannel(type: .conversation, users: ["bob"]))
        #expect(try world.perform(other, as: "ann", connection: 1).online == 2)
    }

    /// Presence from connections only, before the first event of a channel is delivered.
    private struct OnlyConnections: Presence {
        let users: Set<UserID>
        func onlineMemberCount(of channel: ChannelID) -> Int { 0 }
        func isOnline(_ user: UserID, _ channel: ChannelID) -> Bool { false }
        func watcherCount(of channel: ChannelID) -> Int { 0 }
        func watchers(of channel: ChannelID, offset: Int, limit: Int, elsewhere: [UserID]?) -> [UserID] { [] }
        func isWatching(_ user: UserID, _ channel: ChannelID) -> Bool { false }
        func isConnected(_ user: UserID) -> Bool { users.contains(user) }
    }

    @Test("ST-05 neither a watch nor a channel's changes name members to users who may not list them")
    func unlisted() throws {
        let world = try CoreWorld()
        for user in ["ann", "bob", "mod"] as [UserID] { try world.user(user) }
        let closed = PolicyChanges(discovery: .admins, read: .members)
        try world.perform(PutChannelType(type: "closed", basedOn: .community, policy: closed), as: "root", role: .admin)
        try world.perform(CreateChannel(channel: "general", type: "closed", users: ["bob"]), as: "ann")
        #expect(try world.code(ListMembers(channel: "general"), as: "mod", role: .moderator) == .kindForbids)
        let watched = try world.perform(WatchChannel(channel: "general"), as: "mod", role: .moderator, connection: 1)
        #expect(watched.members.isEmpty)
        #expect(try !world.perform(WatchChannel(channel: "general"), as: "ann", connection: 2).members.isEmpty)
        let changes = GetChannelChanges(channel: "general", after: 0)
        let seen = try world.perform(changes, as: "mod", role: .moderator)
        #expect(seen.rows.members == nil && !seen.hasMore)
        #expect(try world.perform(changes, as: "ann").rows.members?.isEmpty == false)
    }

    @Test("ST-01 ST-09 §8.9 a mistake in the creation or query of a watch is named by its place")
    func namesPlaces() throws {
        let world = try CoreWorld()
        try world.user("ann")
        let long = String(repeating: "x", count: 129)
        for (operation, field) in [
            (WatchChannel(channel: "new", create: CreateChannel(displayName: long)), "create.displayName"),
            (WatchChannel(channel: "new", create: CreateChannel(users: ["nobody"])), "create.users"),
            (WatchChannel(channel: "new", create: CreateChannel(channel: "other")), "create"),
            (WatchChannel(channel: "new", limit: 101, create: CreateChannel()), "limit"),
        ] {
            #expect(try world.refusal(operation, as: "ann", connection: 1)?.field == field)
        }
        // A refusal because of the caller has no place.
        let guest = try world.refusal(
            WatchChannel(channel: "new", create: CreateChannel()), as: "ann", role: .guest, connection: 1)
        #expect(guest?.code == .notPermitted && guest?.field == nil)
        #expect(
            try world.refusal(QueryAndWatchChannels(query: QueryChannels(limit: 101)), as: "ann", connection: 1)?.field
                == "query.limit")
    }

    private func watchings(_ notices: [Notice]) -> [ChannelID] {
        notices.compactMap { if case .watching(_, _, let channel, _, _) = $0 { channel } else { nil } }
    }

    @Test(
        "ST-01 ST-03 AM-23 R06 watching creates a channel that doesn't exist, from its creation field, and only once"
    )
    func creates() throws {
        let world = try CoreWorld()
        for user in ["ann", "bob", "zoe"] as [UserID] { try world.user(user) }
        var watch = WatchChannel(channel: "messaging:plans")
        watch.create = CreateChannel(displayName: "Plans", users: ["bob"])
        var answer = try world.perform(watch, as: "ann", connection: 1)
        #expect(answer.channel.channelId == "plans" && answer.channel.type == .messaging && answer.channel.displayName == "Plans")
        #expect(answer.membership?.role == .owner && answer.members.keys.sorted() == ["ann", "bob"] && answer.watcherCount == 1)
        #expect(world.notices.contains { if case .event(let event, _) = $0 { event.kind == .channelCreated } else { false } })
        #expect(watchings(world.notices) == ["plans"])
        // It exists now.
        watch.create?.displayName = "Others"
        answer = try world.perform(watch, as: "bob", connection: 2)
        #expect(answer.channel.displayName == "Plans" && answer.membership?.role == .member)
        // An id may have a colon without naming a type.
        let watchRoom = WatchChannel(channel: "room:1", create: CreateChannel())
        let room = try world.perform(watchRoom, as: "ann", connection: 1).channel
        #expect(room.channelId == "room:1" && room.type == .community)
        #expect(try world.perform(watchRoom, as: "ann", connection: 1).channel == room)
        // A user who may not see it neither learns of it nor makes another, and one who may not create makes none.
        #expect(try world.code(watch, as: "zoe", connection: 3) == .notFound)
        var news = WatchChannel(channel: "news")
        news.create = CreateChannel(type: .broadcast)
        #expect(try world.code(news, as: "ann", connection: 1) == .kindForbids)
        #expect(try world.code(news, as: "ann") == .notConnected)
        for wrong in [CreateChannel(channel: "other"), CreateChannel(idempotencyKey: "1"), CreateChannel(type: "A B")] {
            news.create = wrong
            #expect(try world.refusal(news, as: "ann", connection: 1)?.code == .invalidArgument)
        }
        #expect(try world.code(GetChannel(channel: "news"), as: "ann") == .notFound)
        // The allowed ids are those of channel creation.
        let before = try world.dump()
        for wrong: ChannelID in ["\u{202E}lareneg", "general ", "gen\u{200B}eral", "messaging:.."] {
            var watch = WatchChannel(channel: wrong)
            watch.create = CreateChannel()
            #expect(try world.refusal(watch, as: "ann", connection: 1)?.field == "channel", "\(wrong)")
        }
        #expect(try world.dump() == before)
    }

    @Test("ST-01 I23 a channel that its creator may not watch is refused before it is made, not rolled back")
    func refusesBeforeMaking() throws {
        let world = try CoreWorld()
        for user in ["ann", "bob", "root"] as [UserID] { try world.user(user) }
        // The app's backend isn't a member of channels it creates, and nobody reads the other channel.
        let talk = WatchChannel(channel: "talk", create: CreateChannel(type: .conversation, users: ["ann", "bob"]))
        let shut = WatchChannel(channel: "shut", create: CreateChannel(policy: PolicyChanges(read: .nobody)))
        var runs = 0
        try world.batch { () throws in
            runs += 1
            #expect(try world.code(talk, as: "root", role: .service, connection: 1) == .notFound)
            #expect(try world.code(shut, as: "root", role: .admin, connection: 1) == .kindForbids)
        }
        // A transaction in which an operation is refused after it has written runs again.
        #expect(runs == 1)
        for channel in ["talk", "shut"] as [ChannelID] {
            #expect(try world.code(GetChannel(channel: channel), as: "root", role: .admin) == .notFound)
        }
        // Without the watch they may be made.
        #expect(try world.code(CreateChannel(type: .conversation, users: ["ann", "bob"]), as: "root", role: .service) == nil)
        #expect(try world.code(CreateChannel(policy: PolicyChanges(read: .nobody)), as: "root", role: .admin) == nil)
    }

    @Test("ST-01 AM-25 for a type with one channel per set of members, the existing one is watched")
    func createsDistinct() throws {
        let world = try CoreWorld()
        try world.user("bob")
        try world.channel("talk", type: .conversation, owner: "ann", members: ["bob"])
        var watch = WatchChannel(channel: "another")
        watch.create = CreateChannel(type: .conversation, users: ["bob"])
        #expect(try world.perform(watch, as: "ann", connection: 1).channel.channelId == "talk")
        #expect(watchings(world.notices) == ["talk"])
    }

    @Test("ST-09 R06 a query watches the channels of its page that the caller may watch")
    func queries() throws {
        let world = try CoreWorld()
        for id in ["a", "b", "c"] as [ChannelID] { try world.channel(id, owner: "ann") }
        try world.channel("open", type: .livestream, owner: "bob")
        try world.channel("closed", owner: "bob")
        let own = QueryChannels(sort: .created, limit: 2)
        let notices = try world.notices {
            let page = try world.perform(QueryAndWatchChannels(query: own), as: "ann", connection: 4)
            #expect(page == (try world.perform(own, as: "ann")))
            #expect(page.items.map(\.channel.channelId) == ["c", "b"] && page.nextCursor != nil)
        }
        #expect(watchings(notices) == ["c", "b"])
        let all = try world.notices {
            let query = QueryChannels(membership: .notMember)
            let page = try world.perform(QueryAndWatchChannels(query: query), as: "ann", connection: 4)
            #expect(Set(page.items.map(\.channel.channelId)) == ["open", "closed"])
            #expect(page.items.filter { $0.ownCapabilities.contains(.channelWatch) }.map(\.channel.channelId) == ["open"])
        }
        #expect(watchings(all) == ["open"])
        #expect(try world.code(QueryAndWatchChannels(query: own), as: "ann") == .notConnected)
        #expect(try world.code(QueryAndWatchChannels(query: QueryChannels(limit: 101)), as: "ann", connection: 4) == .limitExceeded)
    }

    @Test("ST-05 SB-60 SB-04 a watch without messages says whether there are any, like one with messages")
    func hasOlder() throws {
        let world = try CoreWorld()
        func hasOlder(_ channel: ChannelID) throws -> [Bool] {
            try [0, 1].map { limit in
                let watch = WatchChannel(channel: channel, limit: limit)
                return try world.perform(watch, as: "ann", connection: 1).messages.hasOlder
            }
        }
        try world.channel("general", owner: "ann")
        #expect(try hasOlder("general") == [false, false])
        for text in ["1", "2"] { try world.send(text, to: "general", as: "ann") }
        #expect(try hasOlder("general") == [true, true])
        try world.perform(ResetHistory(channel: "general"), as: "ann")
        #expect(try hasOlder("general") == [false, false])
        try world.perform(CreateChannel(channel: "talk", type: .group, isEphemeral: true), as: "ann")
        for text in ["1", "2"] { try world.send(text, to: "talk", as: "ann") }
        #expect(try hasOlder("talk") == [false, false])
    }

    @Test("ST-02 watching needs a connection")
    func needsConnection() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        let codes = try [
            world.code(WatchChannel(channel: "general"), as: "ann"), world.code(UnwatchChannel(channel: "general"), as: "ann"),
        ]
        #expect(codes == [.notConnected, .notConnected])
    }
}
