import Roost
import RoostAPI
import RoostTestSupport
import Testing

/// The SDK's live objects against the real server: typing, receipts, watchers and an app's own signals.
@MainActor @Suite struct LiveObjectTests {
    @Test(
        "SB-02 R26 other users who type are shown by name; a message, a pause and the end of the connection end it")
    func typing() async throws {
        let server = try await TestServer()
        let (ann, bob, phone) = (chat("ann", at: server), chat("bob", at: server), chat("bob", at: server))
        for client in [ann, bob, phone] { try await client.connect() }
        try await bob.updateMe(displayName: "Bob B.")
        let general = try await ann.createChannel("general", users: ["bob"])
        let (mine, atPhone) = (bob.channel("general"), phone.channel("general"))
        try await wait("the channel") { mine.currentUserMembership == .member }
        let (atAnn, own, onPhone) = (general.typing(), mine.typing(), atPhone.typing())
        var heard: [[String]] = []
        let token = atAnn.observe { heard.append($0.map(\.name)) }

        mine.startTyping()
        mine.startTyping()
        try await wait("bob to type") { atAnn.users.map(\.name) == ["Bob B."] }
        #expect(own.users.isEmpty && onPhone.users.isEmpty)
        /// Has bob type and end it. Otherwise it would expire ten seconds after it began: a busy machine may take as long, but not each time.
        func expectEnd(_ what: String, _ end: @MainActor () async throws -> Void) async throws {
            var quickest = Duration.seconds(60)
            for _ in 0..<5 where quickest > .seconds(5) {
                mine.startTyping()
                try await wait("bob to type") { !atAnn.users.isEmpty }
                let start = ContinuousClock.now
                try await end()
                try await wait(what) { atAnn.users.isEmpty }
                quickest = min(quickest, ContinuousClock.now - start)
            }
            #expect(quickest <= .seconds(5))
        }
        try await expectEnd("bob to have written") { try await mine.sendConfirmed("hi") }
        // The server was notified too: the client doesn't repeat that he types.
        try await expectEnd("bob to stop") { mine.stopTyping() }
        try await whileTyping(in: general) {
            try await wait("ann to type") { own.users.map(\.id) == ["ann"] && onPhone.users.map(\.id) == ["ann"] }
            await bob.disconnect()
            try await wait("nobody to be known to type") { own.users.isEmpty }
            #expect(onPhone.users.map(\.id) == ["ann"])
        }
        // Without a connection it does nothing.
        mine.startTyping()
        mine.stopTyping()
        #expect(heard.first == [] && heard.contains(["Bob B."]))
        token.invalidate()
        try await server.stop()
    }

    @Test("SB-02 R26 a system message about a user doesn't end their typing")
    func systemMessageWhileTyping() async throws {
        let server = try await TestServer()
        let (ann, bob, cid) = (chat("ann", at: server), chat("bob", at: server), chat("cid", at: server))
        for client in [ann, bob, cid] { try await client.connect() }
        let atBob = try await bob.createChannel(
            CreateChannel(channel: "general", users: ["ann"], policy: PolicyChanges(announcesJoins: true)))
        let (general, atCid) = (ann.channel("general"), cid.channel("general"))
        try await wait("the channel") { general.currentUserMembership == .member }
        let typing = general.typing()
        try await typing.loaded()
        var heard: [[UserID]] = []
        let token = typing.observe { users in
            // They are reported again once their names are known.
            if heard.last != users.map(\.id) { heard.append(users.map(\.id)) }
        }
        try await whileTyping(in: atBob) {
            try await wait("bob to type") { typing.users.map(\.id) == ["bob"] }
            try await atBob.addMembers(["cid"])
            try await wait("the server's message") { general.lastMessage?.kind == .system }
            try await wait("the channel") { atCid.currentUserMembership == .member }
            // The next signal arrives after the message, at each stage.
            atCid.startTyping()
            try await wait("cid to type") { typing.users.count == 2 }
        }
        #expect(heard == [[], ["bob"], ["bob", "cid"]])
        token.invalidate()
        try await server.stop()
    }

    @Test("SB-02 R26 D-22 receipts show who has read, live and after an absence, without those who don't share it")
    func receipts() async throws {
        let server = try await TestServer()
        let (ann, bob, cid) = (chat("ann", at: server), chat("bob", at: server), chat("cid", at: server))
        for client in [ann, bob, cid] { try await client.connect() }
        for client in [bob, cid] { try await client.outbox.loaded() }
        let general = try await ann.createChannel("general", users: ["bob", "cid"])
        let (atBob, atCid) = (bob.channel("general"), cid.channel("general"))
        try await wait("the channel") { atBob.currentUserMembership == .member && atCid.currentUserMembership == .member }
        let first = try await general.sendConfirmed("1")
        let receipts = general.receipts()
        try await receipts.loaded()
        #expect(receipts.readers(of: first) == [] && Set(receipts.positions.keys) == ["ann", "bob", "cid"])
        try await wait("the message") { atBob.lastMessage == first && atCid.lastMessage == first }
        try await atBob.markRead()
        try await wait("bob to have read") { receipts.readers(of: first) == ["bob"] }
        try await atCid.markRead()
        try await wait("both to have read") { receipts.readers(of: first) == ["cid", "bob"] }

        // Changes during an absence are shown after it.
        await ann.disconnect()
        let second = try await atBob.sendConfirmed("2")
        try await cid.setSharing(reading: false)
        try await wait("the second message") { atCid.lastMessage == second }
        try await atCid.markRead()
        try await atBob.markRead()
        try await wait("everything to be sent") { bob.outbox.count == 0 && cid.outbox.count == 0 }
        try await ann.connect()
        try await wait("bob's position, and cid's no more") {
            receipts.positions["bob"]?.readSeq == second.seq && receipts.positions["cid"] == nil
        }
        #expect(try await ann.call(WatchChannel(channel: "general")).read.keys.sorted() == ["ann", "bob"])
        #expect(try await cid.call(WatchChannel(channel: "general")).read.keys.sorted() == ["ann", "bob", "cid"])
        try await cid.preferences.loaded()
        #expect(cid.preferences.sharesReading == false && cid.preferences.sharesTyping)
        try await server.stop()
    }

    @Test("SB-02 R26 a user who joins after a message isn't among its readers, and is among the next one's")
    func newcomers() async throws {
        let server = try await TestServer()
        let (ann, bob, dan) = (chat("ann", at: server), chat("bob", at: server), chat("dan", at: server))
        for client in [ann, bob, dan] { try await client.connect() }
        let general = try await ann.createChannel("general", users: ["bob"])
        let first = try await general.sendConfirmed("1")
        let receipts = general.receipts()
        try await receipts.loaded()
        try await dan.channel("general").join()
        try await wait("the newcomer's position") { receipts.positions["dan"]?.joinedSeq != nil }
        #expect(receipts.positions["dan"]?.readSeq ?? 0 >= first.seq)
        #expect(receipts.readers(of: first) == [] && receipts.recipients(of: first) == [])
        let second = try await general.sendConfirmed("2")
        let atDan = dan.channel("general")
        try await wait("the message") { atDan.lastMessage == second }
        try await atDan.markRead()
        try await wait("the newcomer to have read") { receipts.readers(of: second) == ["dan"] }
        #expect(receipts.readers(of: first) == [] && receipts.recipients(of: first) == [])
        try await server.stop()
    }

    @Test("R25 EM-35 marking as unread is shown at once, offline too, on all of the user's devices, and in the order of the marks")
    func markUnread() async throws {
        let server = try await TestServer()
        let (ann, bob, phone) = (chat("ann", at: server), chat("bob", at: server), chat("bob", at: server))
        for client in [ann, bob, phone] { try await client.connect() }
        let general = try await ann.createChannel("general", users: ["bob"])
        let (mine, atPhone) = (bob.channel("general"), phone.channel("general"))
        try await wait("the channel") { mine.currentUserMembership == .member && atPhone.currentUserMembership == .member }
        var sent: [Message] = []
        for text in ["1", "2", "3"] { sent.append(try await general.sendConfirmed(MessageDraft(text: text))) }
        try await wait("the messages") { mine.unreadCount == 3 && atPhone.unreadCount == 3 }
        try await bob.markAllRead()
        try await wait("all to be read") { mine.unreadCount == 0 && atPhone.unreadCount == 0 && bob.unread.total.unreadCount == 0 }
        try await mine.markUnread(from: sent[1].seq)
        try await wait("two to be unread") { mine.unreadCount == 2 && atPhone.unreadCount == 2 }

        try await bob.outbox.loaded()
        await bob.disconnect()
        try await mine.markRead()
        try await wait("none to be unread") { mine.unreadCount == 0 }
        try await mine.markUnread(from: sent[2].seq)
        try await wait("one to be unread") { mine.unreadCount == 1 && bob.unread.total.unreadCount == 1 }
        #expect(atPhone.unreadCount == 2)
        try await bob.connect()
        try await wait("one to be unread everywhere") {
            bob.outbox.count == 0 && mine.unreadCount == 1 && atPhone.unreadCount == 1
        }
        #expect(try await bob.call(GetUnread(channel: "general")).unreadCount == 1)
        try await server.stop()
    }

    @Test(
        "ST-06 ST-14 ST-16 a live list of watchers follows arrivals and departures, with differences, and is right after a reconnect"
    )
    func watchers() async throws {
        let server = try await TestServer()
        let (ann, bob, cid) = (chat("ann", at: server), chat("bob", at: server), chat("cid", at: server))
        for client in [ann, bob, cid] { try await client.connect() }
        let general = try await ann.createChannel("general", users: ["bob", "cid"])
        try await general.watch()
        let list = general.watchers()
        var updates: [ListUpdate<UserSummary>] = []
        let token = list.observe { updates.append($0) }
        try await list.loaded()
        #expect(list.items.map(\.id) == ["ann"] && list.watcherCount == 1 && !list.hasMore)
        try await bob.channel("general").watch()
        try await wait("bob") { list.items.map(\.id) == ["ann", "bob"] && list.watcherCount == 2 }
        try await cid.channel("general").watch()
        try await wait("cid") { list.items.map(\.id) == ["ann", "bob", "cid"] }
        try await bob.channel("general").unwatch()
        try await wait("bob to be gone") { list.items.map(\.id) == ["ann", "cid"] && list.watcherCount == 2 }
        #expect(updates.last?.removed == [1] && updates.contains { $0.inserted == [2] })
        await ann.disconnect()
        await cid.disconnect()
        try await bob.channel("general").watch()
        try await ann.connect()
        try await wait("those who watch now") { Set(list.items.map(\.id)) == ["ann", "bob"] && list.watcherCount == 2 }
        token.invalidate()
        try await server.stop()
    }

    @Test("ST-15 the most recent watchers come first among the last active watchers, and those who stop aren't listed")
    func lastActiveWatchers() async throws {
        let server = try await TestServer()
        let (ann, bob, cid) = (chat("ann", at: server), chat("bob", at: server), chat("cid", at: server))
        for client in [ann, bob, cid] { try await client.connect() }
        let general = try await ann.createChannel("general", users: ["bob", "cid"])
        try await general.watch()
        try await bob.channel("general").watch()
        let list = general.watchers()
        try await list.loaded()
        #expect(list.lastActiveWatchers.map(\.id) == ["bob", "ann"])
        try await cid.channel("general").watch()
        try await wait("cid") { list.lastActiveWatchers.map(\.id) == ["cid", "bob", "ann"] }
        try await bob.channel("general").unwatch()
        try await wait("bob to be gone") { list.lastActiveWatchers.map(\.id) == ["cid", "ann"] }
        try await bob.channel("general").watch()
        try await wait("bob again") { list.lastActiveWatchers.map(\.id) == ["bob", "cid", "ann"] }
        try await server.stop()
    }

    @Test("ST-12 a list of watchers is loaded page by page")
    func pages() async throws {
        let server = try await TestServer()
        let ann = chat("ann", at: server)
        try await ann.connect()
        let users = (1...7).map { UserID("u\($0)") }
        for user in users { _ = try await server.socket(user) }
        let general = try await ann.createChannel("general", users: users)
        var sockets: [RawSocket] = []
        for user in users {
            let socket = try await server.socket(user)
            try await socket.call(WatchChannel(channel: "general"))
            sockets.append(socket)
        }
        let list = general.watchers(pageSize: 3)
        try await list.loaded()
        #expect(list.items.map(\.id) == Array(users.prefix(3)) && list.hasMore && list.watcherCount == 7)
        try await list.loadMore()
        try await list.loadMore()
        #expect(list.items.map(\.id) == users && !list.hasMore)
        for socket in sockets { await socket.close() }
        try await server.stop()
    }

    @Test("ST-01 ST-09 R06 R39 one call makes and watches, one queries and watches, and both are watched again after a reconnect")
    func watchesAtOnce() async throws {
        let server = try await TestServer()
        let (ann, bob) = (chat("ann", at: server), chat("bob", at: server))
        for client in [ann, bob] { try await client.connect() }
        let made = try await ann.watch("messaging:plans", creating: CreateChannel(displayName: "Plans", users: ["bob"]))
        #expect(made.channel.channelId == "plans" && made.watcherCount == 1)
        try await ann.createChannel("team", users: ["bob"])
        let page = try await bob.watch(QueryChannels(sort: .created))
        #expect(page.items.map(\.channel.channelId) == ["team", "plans"])
        let root = try await server.socket("root", role: .admin)
        func watchers(_ channel: ChannelID) async throws -> [UserID] {
            try await root.call(ListWatchers(channel: channel)).watchers.map(\.userId).sorted()
        }
        func expectWatchers(_ wanted: [UserID], _ channel: ChannelID) async throws {
            let end = ContinuousClock.now + .seconds(20)
            while try await watchers(channel) != wanted {
                guard ContinuousClock.now < end else { throw Missed("\(wanted) to watch \(channel)") }
            }
        }
        #expect(try await watchers("plans") == ["ann", "bob"])
        #expect(try await watchers("team") == ["bob"])
        await bob.disconnect()
        try await expectWatchers([], "team")
        try await bob.connect()
        try await expectWatchers(["ann", "bob"], "plans")
        try await expectWatchers(["bob"], "team")
        try await server.stop()
    }

    @Test("an app's own signals reach watchers and the sender's other devices, with their contents")
    func signals() async throws {
        let server = try await TestServer()
        let (ann, bob, phone) = (chat("ann", at: server), chat("bob", at: server), chat("bob", at: server))
        for client in [ann, bob, phone] { try await client.connect() }
        let general = try await ann.createChannel("general", users: ["bob"])
        let (mine, atPhone) = (bob.channel("general"), phone.channel("general"))
        try await wait("the channel") { mine.currentUserMembership == .member }
        for channel in [general, atPhone] { try await channel.watch() }
        var (atAnn, onPhone) = (general.signals.makeAsyncIterator(), atPhone.signals.makeAsyncIterator())
        try await mine.sendSignal("wave", metadata: ["hand": "left"])
        let expected = ("bob" as UserID, "wave", ["hand": "left"] as JSONValue?)
        for signal in [await atAnn.next(), await onPhone.next()] {
            #expect(signal.map { ($0.sender, $0.type, $0.metadata) == expected } == true)
        }
        await #expect(throws: RoostError.self) { try await mine.sendSignal("", metadata: nil) }
        await #expect(throws: RoostError.self) { try await chat("zoe", at: server).channel("general").sendSignal("wave") }
        try await server.stop()
    }
}
