import Foundation
import Roost
import RoostAPI
import RoostServer
import RoostTestSupport
import Testing

/// Who is online, over real sockets and as the SDK shows it.
@Suite struct PresenceTests {
    private func now() -> Timestamp { Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000)) }

    /// Follows who is online from signal to signal until it matches.
    private func follow(_ socket: RawSocket, from known: Set<UserID>, to wanted: Set<UserID>) async throws {
        var online = known
        while online != wanted {
            let signal = try await socket.nextSignal()
            guard let change = signal.presence else { continue }
            online.formUnion(change.online)
            online.subtract(change.offline)
            #expect(change.isWhole && change.onlineCount == online.count)
        }
    }

    @Test("SB-63 D-38 X-31 only watchers are notified of users who come online with their first connection and go with their last")
    func comingAndGoing() async throws {
        let server = try await TestServer()
        let (ann, cid) = (try await server.socket("ann"), try await server.socket("cid"))
        let root = try await server.socket("root", role: .admin)
        try await root.call(UpsertUser(user: "bob"))
        try await ann.call(CreateChannel(channel: "general", users: ["bob", "cid"]))
        #expect(try await ann.call(WatchChannel(channel: "general")).online == 2)
        let (phone, tablet) = (try await server.socket("bob"), try await server.socket("bob"))
        try await follow(ann, from: ["ann", "cid"], to: ["ann", "bob", "cid"])
        await phone.close()
        // The second device is still connected: the next signal is about cid.
        await cid.close()
        try await follow(ann, from: ["ann", "bob", "cid"], to: ["ann", "bob"])
        await tablet.close()
        try await follow(ann, from: ["ann", "bob"], to: ["ann"])
        // Users who don't watch aren't notified, and neither are those who have left.
        let bob = try await server.socket("bob")
        try await follow(ann, from: ["ann"], to: ["ann", "bob"])
        try await ann.call(UnwatchChannel(channel: "general"))
        #expect(try await root.call(WatchChannel(channel: "general")).online == 2)
        let other = try await server.socket("cid")
        // They would have been notified no later than the admin who watches.
        try await follow(root, from: ["ann", "bob"], to: ["ann", "bob", "cid"])
        for socket in [ann, bob, other] {
            _ = try await socket.call(GetMe())
            #expect(await socket.signals.allSatisfy { $0.presence == nil })
        }
        try await server.stop()
    }

    @Test("ST-05 D-23 a user who begins to watch while members come and go is sent the changes that the answer lacks")
    func whileComing() async throws {
        let server = try await TestServer()
        let ann = try await server.socket("ann")
        try await server.socket("bob").close()
        try await ann.call(CreateChannel(channel: "general", users: ["bob"]))
        for round in 0..<24 {
            // At any moment of bob's connecting or disconnecting.
            async let coming = server.socket("bob")
            for _ in 0..<round % 20 { await Task.yield() }
            var online = try await ann.call(WatchChannel(channel: "general", limit: 0)).online
            let bob = try await coming
            while online != 2 { online = try await ann.nextSignal().presence?.onlineCount ?? online }
            try await ann.call(UnwatchChannel(channel: "general"))
            async let going: Void = bob.close()
            for _ in 0..<round % 20 { await Task.yield() }
            online = try await ann.call(WatchChannel(channel: "general", limit: 0)).online
            await going
            while online != 1 { online = try await ann.nextSignal().presence?.onlineCount ?? online }
            try await ann.call(UnwatchChannel(channel: "general"))
        }
        try await server.stop()
    }

    @Test("X-37 a user may change their visibility 20 times a minute, since it concerns all of their connections and channels")
    func flipping() async throws {
        let server = try await TestServer()
        let ann = try await server.socket("ann")
        let refusals = try await ann.refusals(of: (0..<60).map { UpdatePreferences(sharesPresence: $0.isMultiple(of: 2)) })
        let refused = refusals.compactMap { $0 }
        #expect(refused.count >= 60 - 2 * Limits.presenceChangesPerMinute)
        #expect(refused.allSatisfy { $0.code == .rateLimited && $0.limit == Int64(Limits.presenceChangesPerMinute) })
        // Other preferences don't concern connections, and have another rate limit.
        _ = try await ann.call(UpdatePreferences(sharesTyping: false))
        try await server.stop()
    }

    @Test("SB-63 X-31 a user whose line is cut goes offline once nothing was received from them for the configured time")
    func cutLine() async throws {
        let server = try await TestServer { configuration in
            (configuration.pingInterval, configuration.idleTimeout) = (.seconds(1), .seconds(5))
        }
        let proxy = try await TCPProxy.start(targets: [server.port])
        let url = try #require(URL(string: "http://127.0.0.1:\(proxy.port)"))
        let bob = Chat(url: url, user: "bob", configuration: .tested()) { try await server.token("bob") }
        try await bob.connect()
        // From here on the socket is read all the time: it answers pings only while read, and would go offline too.
        let ann = try await server.socket("ann")
        try await ann.call(CreateChannel(channel: "general", users: ["bob"]))
        #expect(try await ann.call(WatchChannel(channel: "general")).online == 2)
        let isCut = ContinuousClock.now
        proxy.setMode(.swallow)
        try await follow(ann, from: ["ann", "bob"], to: ["ann"])
        // Five seconds after the last answer to a ping, which came up to two before the cut, or three on a busy machine.
        let waited = ContinuousClock.now - isCut
        #expect(waited >= .seconds(2) && waited <= .seconds(30), "\(waited)")
        #expect(try await ann.call(ListMembers(channel: "general")).items.first { $0.member.userId == "bob" }?.isOnline == false)
        await bob.disconnect()
        await proxy.stop()
        try await server.stop()
    }

    @Test(
        "X-37 to others an invisible user is offline and watches nothing, immediately, on every device and after a reconnect"
    )
    func invisible() async throws {
        let server = try await TestServer()
        let (ann, phone, tablet) = (try await server.socket("ann"), try await server.socket("bob"), try await server.socket("bob"))
        try await ann.call(CreateChannel(channel: "general", users: ["bob"]))
        try await phone.call(WatchChannel(channel: "general"))
        #expect(try await ann.call(WatchChannel(channel: "general")).online == 2)
        try await tablet.call(UpdatePreferences(sharesPresence: false))
        try await follow(ann, from: ["ann", "bob"], to: ["ann"])
        let state = try await ann.call(WatchChannel(channel: "general"))
        #expect(state.online == 1 && state.watcherCount == 1 && Set(state.watchers.keys) == ["ann"])
        let members = try await ann.call(ListMembers(channel: "general"))
        #expect(members.items.filter(\.isOnline).map(\.id) == ["ann"])
        let laptop = try await server.socket("bob")
        let own = try await laptop.call(WatchChannel(channel: "general"))
        #expect(own.online == 1 && own.watcherCount == 1 && Set(own.watchers.keys) == ["ann"])
        try await phone.call(UpdatePreferences(sharesPresence: true))
        try await follow(ann, from: ["ann"], to: ["ann", "bob"])
        #expect(Set(try await ann.call(ListWatchers(channel: "general")).watchers.map(\.userId)) == ["ann", "bob"])
        try await server.stop()
    }

    @Test(
        "ST-10 ST-16 SB-63 a presence object's channel is unwatched once the object is gone, over reconnects too, unless the app watches it"
    )
    @MainActor func released() async throws {
        let server = try await TestServer()
        let ann = chat("ann", at: server)
        try await ann.connect()
        let general = try await ann.createChannel("general")
        let bob = try await server.socket("bob")
        try await bob.call(JoinChannel(channel: "general"))
        func isWatching() async throws -> Bool {
            try await bob.call(ListWatchers(channel: "general")).watchers.contains { $0.userId == "ann" }
        }
        func wait(for wanted: Bool) async throws {
            let deadline = ContinuousClock.now + .seconds(20)
            while try await isWatching() != wanted, ContinuousClock.now < deadline { try await Task.sleep(for: .milliseconds(10)) }
            #expect(try await isWatching() == wanted)
        }
        var first: LivePresence? = general.presence()
        var second: LivePresence? = general.presence()
        try await first?.loaded()
        try await second?.loaded()
        #expect(try await isWatching())
        first = nil
        await ann.disconnect()
        try await ann.connect()
        try await wait(for: true)
        second = nil
        try await wait(for: false)
        await ann.disconnect()
        try await ann.connect()
        _ = try await ann.me()
        #expect(try await !isWatching())
        // Channels that the app itself watches stay watched.
        try await general.watch()
        first = general.presence()
        try await first?.loaded()
        first = nil
        await ann.disconnect()
        try await ann.connect()
        try await wait(for: true)
        try await general.unwatch()
        #expect(try await !isWatching())
        await ann.disconnect()
        try await ann.connect()
        _ = try await ann.me()
        #expect(try await !isWatching())
        await bob.close()
        try await server.stop()
    }

    @Test(
        "ST-01 ST-03 ST-10 a channel watched by another of its names isn't watched again after it was unwatched by its own"
    )
    @MainActor func otherName() async throws {
        let server = try await TestServer()
        let ann = chat("ann", at: server)
        try await ann.connect()
        let watched = try await ann.watch("messaging:plans", creating: CreateChannel())
        let id = watched.channel.channelId
        let root = try await server.socket("root", role: .admin)
        func watchers() async throws -> [UserID] { try await root.call(ListWatchers(channel: id)).watchers.map(\.userId) }
        #expect(try await watchers() == ["ann"])
        await ann.disconnect()
        try await ann.connect()
        let deadline = ContinuousClock.now + .seconds(20)
        while try await watchers() != ["ann"], ContinuousClock.now < deadline { try await Task.sleep(for: .milliseconds(10)) }
        #expect(try await watchers() == ["ann"])
        try await ann.channel(id).unwatch()
        await ann.disconnect()
        try await ann.connect()
        _ = try await ann.me()
        #expect(try await watchers() == [])
        await root.close()
        try await server.stop()
    }

    @Test(
        "SB-64 X-37 a user was last online when their last device went, over sockets, HTTP and the SDK; a restart keeps it"
    )
    @MainActor func lastActive() async throws {
        let server = try await TestServer()
        let ann = chat("ann", at: server)
        try await ann.connect()
        let (phone, tablet) = (try await server.socket("bob"), try await server.socket("bob"))
        let hidden = try await server.socket("cid")
        try await hidden.call(UpdatePreferences(sharesPresence: false))
        let general = try await ann.createChannel("general", users: ["bob", "cid"])
        func bob() async throws -> UserPresence? {
            let answer = try await ann.presence(of: ["bob", "cid", "nobody"])
            #expect(answer.users.last == UserPresence(userId: "cid", isOnline: false) && answer.users.count == 2)
            return answer.users.first
        }
        #expect(try await bob() == UserPresence(userId: "bob", isOnline: true))
        await phone.close()
        #expect(try await bob()?.isOnline == true)
        let before = now()
        await tablet.close()
        await hidden.close()
        var known = try await bob()
        let deadline = ContinuousClock.now + .seconds(20)
        while known?.lastActiveAt == nil, ContinuousClock.now < deadline {
            try await Task.sleep(for: .milliseconds(200))
            known = try await bob()
        }
        let last = try #require(known?.lastActiveAt)
        #expect(before.milliseconds - 1000...now().milliseconds ~= last.milliseconds)
        let overHTTP = try await server.request(
            "POST", "/v1/users/presence", token: try await server.token("cid"), body: #"{"users":["cid","bob","nobody"]}"#)
        #expect(
            try overHTTP.decoded(UserPresences.self).users == [
                UserPresence(userId: "bob", isOnline: false, lastActiveAt: last), UserPresence(userId: "cid", isOnline: false),
            ])
        let members = general.members()
        try await members.loaded()
        #expect(members.items.first { $0.id == "bob" }?.lastActiveAt == last)
        #expect(members.items.filter { $0.id != "bob" }.allSatisfy { $0.lastActiveAt == nil })
        // The user comes back and goes: the list follows while the channel is watched.
        try await general.watch()
        let back = try await server.socket("bob")
        try await wait("bob to be back") { members.items.first { $0.id == "bob" }?.isOnline == true }
        #expect(members.items.first { $0.id == "bob" }?.lastActiveAt == nil)
        await back.close()
        try await wait("bob to be gone") { members.items.first { $0.id == "bob" }?.isOnline == false }
        #expect(members.items.first { $0.id == "bob" }?.lastActiveAt.map { $0 >= last } == true)
        // Users connected when the server stops were online then.
        let stayed = try await server.socket("bob")
        #expect(try await bob()?.isOnline == true)
        let ending = now()
        await ann.disconnect()
        try await server.stop()
        let again = try await TestServer(directory: server.directory)
        let cid = try await again.socket("cid")
        let answer = try await cid.call(ListUserPresence(users: ["ann", "bob"]))
        #expect(
            answer.users.map(\.userId) == ["ann", "bob"] && answer.users.allSatisfy { $0.lastActiveAt.map { $0 >= ending } == true }
        )
        await stayed.close()
        try await again.stop()
    }

    @Test("SB-64 D-38 a user who asks who is online more than ten times a second is refused, and nobody else is")
    func rate() async throws {
        let server = try await TestServer.shared()
        let (ann, bob) = (try await server.socket("rate-ann"), try await server.socket("rate-bob"))
        let calls = Array(repeating: ListUserPresence(users: ["rate-bob"]), count: 30)
        let refusals = try await ann.refusals(inBurstsOf: calls).compactMap { $0 }
        #expect(refusals.allSatisfy { $0.code == .rateLimited && (1...1000).contains($0.retryAfterMilliseconds ?? 0) })
        #expect(try await bob.call(ListUserPresence(users: ["rate-ann"])).users.first?.isOnline == true)
        for socket in [ann, bob] { await socket.close() }
    }

    @Test("SB-61 SB-62 SB-63 D-38 with the SDK a watched channel shows who is online, live and after a reconnect")
    @MainActor func shown() async throws {
        let server = try await TestServer()
        let (ann, bob) = (chat("ann", at: server), chat("bob", at: server))
        for client in [ann, bob] { try await client.connect() }
        let general = try await ann.createChannel("general", users: ["bob"])
        let presence = general.presence()
        try await presence.loaded()
        let members = general.members()
        try await members.loaded()
        func online() -> [UserID] { members.items.filter { $0.isOnline == true }.map(\.id).sorted() }
        #expect(presence.onlineCount == 2 && online() == ["ann", "bob"])
        var counts: [Int] = []
        let token = presence.observe { counts.append($0) }
        await bob.disconnect()
        try await wait("bob to be gone") { presence.onlineCount == 1 && online() == ["ann"] }
        await ann.disconnect()
        try await bob.connect()
        try await ann.connect()
        try await wait("bob to be there after a reconnect") { presence.onlineCount == 2 && online() == ["ann", "bob"] }
        try await bob.setSharing(presence: false)
        try await wait("bob to be invisible") { presence.onlineCount == 1 && online() == ["ann"] }
        try await wait("bob's own setting") { bob.preferences.sharesPresence == false && bob.preferences.sharesTyping }
        #expect(counts.prefix(2) == [2, 1])
        token.invalidate()
        let refused = ann.channel("nowhere").presence()
        await #expect(throws: RoostError.self) { try await refused.loaded() }
        try await server.stop()
    }
}
