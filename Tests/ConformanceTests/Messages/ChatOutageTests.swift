import Foundation
import RoostAPI
import RoostTestSupport
import Testing

/// What the screen of `roost chat` shows and does without a connection.
@Suite struct ChatOutageTests {
    private func world(_ users: [UserID] = ["ann"], type: ChannelType = .group) async throws -> (TestServer, RawSocket) {
        let server = try await TestServer()
        for user in users { _ = try await server.socket(user) }
        let bob = try await server.socket("bob")
        try await bob.call(CreateChannel(channel: "team", type: type, users: users))
        return (server, bob)
    }

    @Test("SB-58 SB-59 R08 /edit and /delete mean the user's last message, also one that isn't sent yet, and no older one")
    func unsent() async throws {
        let (server, bob) = try await world()
        let proxy = try await TCPProxy.start(targets: [server.port])
        let ann = try TerminalScreen.chat(of: "ann", on: server, variables: ["ROOST_URL": "http://127.0.0.1:\(proxy.port)"])
        try await ann.wait(for: "#team · 2 members")
        ann.type("sent before\r")
        try await ann.wait("the message to be stored") { $0.contains { $0.hasSuffix("sent before") && !$0.hasPrefix(">") } }
        proxy.setMode(.refuse)
        proxy.cutAll()
        try await ann.wait(for: "reconnecting in")

        ann.type("first\r")
        try await ann.wait("the row on its way") { $0.contains { $0.hasSuffix("first …") } }
        ann.type("/edit first, changed\r")
        try await ann.wait("the change where the message is") { $0.contains { $0.hasSuffix("first, changed …") } }
        ann.type("second\r")
        try await ann.wait("the row on its way") { $0.contains { $0.hasSuffix("second …") } }
        ann.type("/delete\r")
        try await ann.wait("it to be gone") { lines in !lines.contains { $0.hasSuffix("second …") } }
        #expect(ann.lines.contains { $0.hasSuffix("sent before") } && ann.lines.contains { $0.hasSuffix("first, changed …") })

        // The failure of a command without a connection stays readable, and names the command, until there is one.
        ann.type("/members\r")
        try await ann.wait(for: "/members: There is no connection to the server. (not_connected)")
        proxy.setMode(.pass)
        // A typed line doesn't wait for the next attempt.
        ann.type("third\r")
        try await ann.wait(for: "● online")
        try await ann.wait("all to be sent") { $0.contains { $0.hasSuffix("third") } && !$0.contains { $0.hasSuffix("…") } }
        #expect(!ann.lines.contains { $0.contains("There is no connection") })
        let texts = try await bob.call(ListMessages(channel: "team")).messages.map(\.text)
        #expect(texts == ["sent before", "first, changed", "third"])
        ann.type("\u{03}")
        try await ann.end()
        await proxy.stop()
        try await server.stop()
    }

    @Test("a chat that ends without a connection says what is unsent, and the next one sends it")
    func unsentAtEnd() async throws {
        let (server, bob) = try await world()
        let proxy = try await TCPProxy.start(targets: [server.port])
        let variables = ["ROOST_URL": "http://127.0.0.1:\(proxy.port)", "XDG_STATE_HOME": TemporaryDirectory.make().path]
        let ann = try TerminalScreen.chat(of: "ann", on: server, variables: variables)
        try await ann.wait(for: "#team · 2 members")
        proxy.setMode(.refuse)
        proxy.cutAll()
        try await ann.wait(for: "reconnecting in")
        ann.type("later\r")
        try await ann.wait("the row on its way") { $0.contains { $0.hasSuffix("later …") } }
        ann.type("/quit\r")
        try await ann.wait(for: "1 message is unsent: it goes out the next time you chat.")
        try await ann.end()

        proxy.setMode(.pass)
        let next = try TerminalScreen.chat(of: "ann", on: server, variables: variables)
        try await next.wait("it to be sent") { $0.contains { $0.hasSuffix("later") && !$0.hasPrefix(">") } }
        #expect(try await bob.call(ListMessages(channel: "team")).messages.map(\.text) == ["later"])
        next.type("/quit\r")
        try await next.end()
        await proxy.stop()
        try await server.stop()
    }

    @Test("AM-41 a user who was removed while away is told so, with the right words")
    func removed() async throws {
        let (server, bob) = try await world()
        let proxy = try await TCPProxy.start(targets: [server.port])
        let ann = try TerminalScreen.chat(of: "ann", on: server, variables: ["ROOST_URL": "http://127.0.0.1:\(proxy.port)"])
        try await ann.wait(for: "#team · 2 members")
        proxy.setMode(.refuse)
        proxy.cutAll()
        try await ann.wait(for: "reconnecting in")
        try await bob.call(RemoveMembers(channel: "team", users: ["ann"]))
        proxy.setMode(.pass)
        // A typed line doesn't wait for the next attempt. Its own call is too early, before there is a connection.
        ann.type("/who\r")
        try await ann.wait(for: "#team · you are no longer a member")
        try await ann.wait(for: "● online")
        ann.type("/who\rx")
        try await ann.wait("the words") { lines in
            lines.last == "> x" && lines.contains { $0.contains("you are no longer a member of #team; /list shows") }
        }
        #expect(!ann.lines.contains { $0.contains("not_member") || $0.contains("invite_required") })
        ann.type("\u{03}")
        try await ann.end()
        await proxy.stop()
        try await server.stop()
    }

    @Test("AM-41 a chat whose stored channel is from another server's data creates it here, and doesn't say that the user left it")
    func newServer() async throws {
        let (first, _) = try await world()
        let proxy = try await TCPProxy.start(targets: [first.port])
        let variables = ["ROOST_URL": "http://127.0.0.1:\(proxy.port)", "XDG_STATE_HOME": TemporaryDirectory.make().path]
        let before = try TerminalScreen.chat(of: "ann", on: first, variables: variables)
        try await before.wait(for: "#team · 2 members")
        before.type("/quit\r")
        try await before.end()
        try await first.stop()

        let second = try await TestServer()
        proxy.setTargets([second.port])
        // Too narrow for an absence's words beside the connection's state: they would stay until a key is pressed.
        let ann = try TerminalScreen.chat(of: "ann", on: second, width: 80, variables: variables)
        try await ann.wait("the new channel, and no word of the old one") { lines in
            lines.contains { $0.contains("#team · 1 member") } && lines.contains { $0.contains("the channel was just created") }
                && !lines.contains { $0.contains("no longer") }
        }
        ann.type("/quit\r")
        try await ann.end()
        await proxy.stop()
        try await second.stop()
    }

    @Test("MN-02 Tab offers nobody if nobody can be mentioned")
    func mentions() async throws {
        let (server, _) = try await world(type: .conversation)
        let ann = try TerminalScreen.chat(of: "ann", on: server)
        try await ann.wait(for: "#team · 2 members")
        ann.type("hi @bo\t")
        try await ann.wait(for: "nobody can be mentioned in this channel")
        #expect(ann.lines.last == "> hi @bo")
        ann.type("\u{03}")
        try await ann.end()
        try await server.stop()
    }

    @Test("D-29 a muted channel isn't counted above another one, and muting says when it expires")
    func muted() async throws {
        let (server, bob) = try await world()
        try await bob.call(CreateChannel(channel: "other", users: ["ann"]))
        let ann = try TerminalScreen.chat(of: "ann", on: server)
        try await ann.wait(for: "#team · 2 members")
        try await bob.call(SendMessage(channel: "other", clientId: "1", text: "psst"))
        try await ann.wait("the count") { $0.first?.contains("other 1") == true }
        let hers = try await server.socket("ann")
        try await hers.call(MuteNotifications(channel: "other"))
        try await ann.wait("no count") { $0.first?.contains("other") == false }
        ann.type("/mute 45m\r")
        try await ann.wait(for: "#team is muted: it isn't counted in your total until 2")
        ann.type("/mute\r")
        try await ann.wait(for: "#team is muted: it isn't counted in your total until /unmute")
        ann.type("\u{03}")
        try await ann.end()
        try await server.stop()
    }

    @Test("R23 end shows the newest messages again wherever /goto was, and so does sending one", arguments: [20, 30, 60, 90])
    func backToNewest(distance: Int) async throws {
        let (server, bob) = try await world()
        var sent: [Message] = []
        for number in 1...100 {
            sent.append(try await bob.call(SendMessage(channel: "team", clientId: ClientID("\(number)"), text: "text \(number).")))
        }
        let ann = try TerminalScreen.chat(of: "ann", on: server)
        try await ann.wait(for: "text 100.")
        for (keys, newest) in [("\u{1B}[F", "text 100."), ("from the past\r", "from the past")] {
            let place = sent[100 - distance]
            ann.type("/goto \(place.messageId)\r")
            try await ann.wait("the place alone") { lines in
                lines.contains { $0.contains(place.text) } && !lines.contains { $0.contains("text 100.") }
            }
            ann.type(keys)
            try await ann.wait("the newest at the bottom") { lines in
                lines.dropLast(2).last { !$0.isEmpty }?.hasSuffix(newest) == true && !lines.contains { $0.contains("scrolled up") }
            }
        }
        ann.type("\u{03}")
        try await ann.end()
        try await server.stop()
    }
}
