import Roost
import RoostAPI
import RoostTestSupport
import Testing

/// Who is online, over real sockets and as the SDK shows it.
@Suite struct PresenceTests {
    /// Follows who is online from signal to signal until they are some.
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

    @Test("SB-63 D-38 X-31 watchers are told who comes online with the first connection and goes with the last; others aren't")
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
        // The second device is still there: the next signal is about cid.
        await cid.close()
        try await follow(ann, from: ["ann", "bob", "cid"], to: ["ann", "bob"])
        await tablet.close()
        try await follow(ann, from: ["ann", "bob"], to: ["ann"])
        // Whoever isn't watching hears nothing of it, and neither does anybody after leaving.
        let bob = try await server.socket("bob")
        try await follow(ann, from: ["ann"], to: ["ann", "bob"])
        try await ann.call(UnwatchChannel(channel: "general"))
        let other = try await server.socket("cid")
        _ = try await ann.call(GetMe())
        for socket in [ann, bob, other] { #expect(await socket.signals.allSatisfy { $0.presence == nil }) }
        try await server.stop()
    }

    @Test(
        "X-37 whoever is invisible is offline and watches nothing for all others, at once, on every device and after a new connection"
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
