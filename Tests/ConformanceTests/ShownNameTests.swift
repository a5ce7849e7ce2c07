import Foundation
import Roost
import RoostAPI
import RoostServer
import RoostTestSupport
import Testing

/// Names beside messages, with the SDK against the real server.
@MainActor @Suite struct ShownNameTests {
    @Test("AM-30 the name of a message's sender arrives with pages and after events, and is available offline")
    func names() async throws {
        let server = try await TestServer()
        let folder = TemporaryDirectory.make()
        let (ann, bob) = (chat("ann", at: server, in: folder), chat("bob", at: server))
        try await ann.connect()
        try await bob.connect()
        try await bob.updateMe(displayName: "Bob", avatarFileId: "bob.png")
        let general = try await ann.createChannel("general")
        let (messages, channels) = (general.messages(), ann.channels())
        try await messages.loaded()
        try await bob.channel("general").join()
        try await bob.channel("general").sendConfirmed(MessageDraft(text: "hi"))
        try await wait("the name of an event's sender") {
            messages.items.map(\.sender.name) == ["Bob"] && channels.items.first?.lastSender?.avatarFileId == "bob.png"
        }
        try await ann.updateMe(displayName: "Ann")
        try await general.sendConfirmed(MessageDraft(text: "hello"))
        try await wait("the own name") { messages.items.map(\.sender.name) == ["Bob", "Ann"] }

        // A rename is sent immediately, and later messages have the new name too.
        try await bob.updateMe(displayName: "Robert")
        try await wait("the new name, live") {
            messages.items.map(\.sender.name) == ["Robert", "Ann"] && channels.items.first?.lastSender?.name == "Ann"
        }
        _ = try await bob.channel("general").sendConfirmed(MessageDraft(text: "again"))
        try await wait("the new name of a new message") { messages.items.map(\.sender.name) == ["Robert", "Ann", "Robert"] }
        await ann.disconnect()
        await bob.disconnect()
        try await server.stop()

        let offline = chat("ann", at: server, in: folder)
        let stored = offline.channel("general").messages()
        try await stored.loaded()
        #expect(stored.items.map(\.sender.name) == ["Robert", "Ann", "Robert"])
        let user = offline.user("bob")
        try await user.loaded()
        #expect(user.user.avatarFileId == "bob.png")
    }

    @Test("SB-61 SB-62 R39 a new name is shown everywhere immediately and after any absence, without a page that names the user")
    func everywhere() async throws {
        let server = try await TestServer()
        let (ann, bob) = (chat("ann", at: server), chat("bob", at: server))
        for client in [ann, bob] { try await client.connect() }
        let general = try await ann.createChannel("general", users: ["bob"])
        try await bob.channel("general").sendConfirmed(MessageDraft(text: "hi"))
        let (messages, channels, members) = (general.messages(), ann.channels(), general.members())
        let (watchers, typing, profile) = (general.watchers(), general.typing(), ann.user("bob"))
        try await messages.loaded()
        try await channels.loaded()
        try await members.loaded()
        try await watchers.loaded()
        try await profile.loaded()
        try await general.watch()
        let room = bob.channel("general")
        try await room.loaded()
        try await room.watch()
        try await wait("bob to watch") { watchers.items.contains { $0.userId == "bob" } }
        func names() -> [String?] {
            [
                messages.items.last?.sender.name, channels.items.first?.lastSender?.name, profile.user.name,
                members.items.first { $0.id == "bob" }?.user.name, watchers.items.first { $0.userId == "bob" }?.name,
            ]
        }
        func all(_ name: String) -> [String?] { Array(repeating: name, count: 5) }
        try await whileTyping(in: room) {
            try await wait("bob to type") { typing.users.map(\.userId) == ["bob"] }
            try await bob.updateMe(displayName: "Bob")
            try await wait("the new name everywhere") { names() == all("Bob") && typing.users.map(\.name) == ["Bob"] }
        }
        // Two names in quick succession: the last one arrives too.
        try await bob.updateMe(displayName: "Bobby")
        try await bob.updateMe(displayName: "Rob", avatarFileId: "rob.png")
        try await wait("the last of two names") { names() == all("Rob") && messages.items.last?.sender.avatarFileId == "rob.png" }

        try await bob.updateMe(status: "on holiday")
        try await wait("the status") {
            messages.items.last?.sender.status == "on holiday"
                && members.items.first { $0.id == "bob" }?.user.status == "on holiday"
        }

        await ann.disconnect()
        try await bob.updateMe(displayName: "Robert", status: "")
        try await ann.connect()
        try await wait("the name of a time away") { names() == all("Robert") && messages.items.last?.sender.status == nil }
        try await server.stop()
    }

    @Test("SB-61 X-37 invisible users are notified of new names too, even if nobody else looks")
    func invisible() async throws {
        let server = try await TestServer()
        let (ann, bob) = (try await server.socket("ann"), try await server.socket("bob"))
        try await ann.call(UpdatePreferences(sharesPresence: false))
        let others = (0..<12).map { UserID("u\($0)") }
        let root = try await server.socket("root", role: .admin)
        for user in others { try await root.call(UpsertUser(user: user)) }
        try await ann.call(CreateChannel(channel: "general", users: ["bob"] + others))
        try await ann.call(WatchChannel(channel: "general", limit: 0))
        try await bob.call(UpdateMe(displayName: "Bob"))
        var named: [String?] = []
        while named.isEmpty { named = try await ann.nextSignal().users?.users.map(\.displayName) ?? [] }
        #expect(named == ["Bob"])
        try await server.stop()
    }

    @Test("an event has no users; a page and a resume have each user they name once")
    func bytes() async throws {
        let server = try await TestServer()
        let (ann, bob) = (try await server.socket("ann"), try await server.socket("bob"))
        try await ann.call(CreateChannel(channel: "general", users: ["bob"]))
        for number in 1...2 { try await bob.call(SendMessage(channel: "general", clientId: ClientID("\(number)"), text: "hi")) }
        let event = try await text(of: ann, with: #""text":"hi""#)
        #expect(event.contains(#""sender":"bob""#) && !event.contains(#""users""#))
        for operation in [
            #""message.list","with":{"channel":"general"}"#, #""channel.query","with":{}"#,
            #""stream.resume","with":{"after":0,"channels":{}}"#,
        ] {
            try await ann.send(text: #"{"call":99,"operation":\#(operation)}"#)
            let answer = try await text(of: ann, with: #""reply":99"#)
            #expect(answer.components(separatedBy: #"{"userId":"bob","version":1}"#).count == 2, "\(answer)")
        }
        try await server.stop()
    }

    private func text(of socket: RawSocket, with part: String) async throws -> String {
        while let text = await socket.nextText() {
            if text.contains(part) { return text }
        }
        throw Missed(part)
    }
}
