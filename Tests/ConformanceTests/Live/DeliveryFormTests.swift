import Roost
import RoostAPI
import RoostServer
import RoostTestSupport
import Synchronization
import Testing

/// The three forms in which a message reaches a member: watched, as a notification, pushed.
@Suite struct DeliveryFormTests {
    @Test("ST-07 R37 each online device gets one form of a message, and a member without one gets a push")
    func forms() async throws {
        let pushed = Mailbox<PushNotification>()
        let server = try await TestServer { $0.pushSender = { for push in $0 { pushed.put(push) } } }
        let ann = try await server.socket("ann")
        let admin = try await server.socket("root", role: .admin)
        for user: UserID in ["bob", "cid", "dan", "eve"] { try await admin.call(UpsertUser(user: user)) }
        try await ann.call(CreateChannel(channel: "general", users: ["bob", "cid", "dan", "eve"]))
        let (watching, other, cid, eve) = (
            try await server.socket("bob"), try await server.socket("bob"), try await server.socket("cid"),
            try await server.socket("eve")
        )
        try await watching.call(WatchChannel(channel: "general"))
        // Eve is online, though others can't see it.
        try await eve.call(UpdatePreferences(sharesPresence: false))
        let sent = try await ann.call(SendMessage(channel: "general", clientId: "1", text: "hi"))
        let first = try #require(await pushed.next())
        #expect(first.message == sent && first.recipients.map(\.user) == ["dan"])
        for (socket, isWatching) in [(watching, true), (other, false), (cid, false), (eve, false)] {
            #expect(try await forms(of: "hi", at: socket) == [isWatching])
        }
        // A member who has disconnected gets a push, and one who has connected doesn't.
        await cid.close()
        let dan = try await server.socket("dan")
        try await Polling.value {
            (try? await admin.call(ListUserPresence(users: ["cid"])).users.first?.isOnline) ?? true
        } until: {
            !$0
        }
        try await ann.call(SendMessage(channel: "general", clientId: "2", text: "ho"))
        let second = try #require(await pushed.next())
        #expect(second.message.text == "ho" && second.recipients.map(\.user) == ["cid"])
        await dan.close()
        try await server.stop()
    }

    @Test("ST-07 R37 a member who is online gets no push in a channel of more members than are checked at once")
    func manyMembers() async throws {
        let pushed = Mailbox<PushNotification>()
        let server = try await TestServer { $0.pushSender = { for push in $0 { pushed.put(push) } } }
        let ann = try await server.socket("ann")
        let admin = try await server.socket("root", role: .admin)
        let users = (0..<Limits.usersPerCall + 20).map { UserID("u\(1000 + $0)") }
        for user in users { try await admin.call(UpsertUser(user: user)) }
        try await ann.call(CreateChannel(channel: "general", users: Array(users.prefix(Limits.membersPerCall))))
        try await ann.call(AddMembers(channel: "general", users: Array(users.dropFirst(Limits.membersPerCall))))
        let last = try await server.socket(users[users.count - 1])
        try await ann.call(SendMessage(channel: "general", clientId: "1", text: "hi"))
        let push = try #require(await pushed.next())
        #expect(push.recipients.map(\.user) == Array(users.dropLast()))
        await last.close()
        try await server.stop()
    }

    /// For each event with the text that a socket has received by now, whether it is marked as from a watched channel.
    private func forms(of text: String, at socket: RawSocket) async throws -> [Bool] {
        _ = try await socket.post(GetMe())
        var forms: [Bool] = []
        while let frame = await socket.nextText(), !frame.hasPrefix(#"{"reply""#) {
            if frame.contains(#""text":"\#(text)""#) { forms.append(frame.hasPrefix(#"{"watching":true"#)) }
        }
        return forms
    }

    @Test("ST-07 pushes are retried if the sender fails, and after the server was down")
    func again() async throws {
        let pushed = Mailbox<String>()
        let failures = Mutex(1)
        let directory = TemporaryDirectory.make()
        let sender: PushSender = { pushes in
            let fails = failures.withLock { left in
                left -= 1
                return left >= 0
            }
            if fails { throw RoostError(.unavailable, "Not now.") }
            for push in pushes { pushed.put(push.message.text) }
        }
        var server = try await TestServer(directory: directory) { $0.pushSender = sender }
        let admin = try await server.socket("root", role: .admin)
        try await admin.call(UpsertUser(user: "bob"))
        var ann = try await server.socket("ann")
        try await ann.call(CreateChannel(channel: "general", users: ["bob"]))
        try await ann.call(SendMessage(channel: "general", clientId: "1", text: "1"))
        #expect(await pushed.next() == "1")
        failures.withLock { $0 = 1000 }
        try await ann.call(SendMessage(channel: "general", clientId: "2", text: "2"))
        try await Polling.value {
            failures.withLock { $0 }
        } until: {
            $0 < 1000
        }
        try await server.stop()
        // A server without a sender leaves them to one that has one.
        server = try await TestServer(directory: directory)
        ann = try await server.socket("ann")
        try await ann.call(MarkRead(channel: "general"))
        let page = server
        try await Polling.value {
            try MetricsText(try await page.request("GET", "/metrics").body).value("roost_effects_unknown_kinds")
        } until: {
            $0 == 1
        }
        try await server.stop()
        failures.withLock { $0 = 0 }
        server = try await TestServer(directory: directory) { $0.pushSender = sender }
        ann = try await server.socket("ann")
        try await ann.call(SendMessage(channel: "general", clientId: "3", text: "3"))
        #expect(await [pushed.next(), pushed.next()] == ["2", "3"])
        try await server.stop()
    }
}
