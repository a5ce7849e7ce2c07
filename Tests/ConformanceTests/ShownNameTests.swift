import Foundation
import Roost
import RoostAPI
import RoostServer
import RoostTestSupport
import Testing

/// Names beside messages, with the SDK against the real server.
@MainActor @Suite struct ShownNameTests {
    @Test("X-01 AM-30 the name of who sent a message comes with pages and after events, and is there offline")
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

        // A rename comes with the next answer that names the user.
        try await bob.updateMe(displayName: "Robert")
        _ = try await ann.call(QueryChannels(includingUsers: ["bob"]))
        _ = try await bob.channel("general").sendConfirmed(MessageDraft(text: "again"))
        _ = try await ann.call(QueryChannels())
        try await wait("the new name") { messages.items.map(\.sender.name) == ["Robert", "Ann", "Robert"] }
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

    @Test("an event has no users, and a page and a resume have those whom they name, each once")
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
        while case .text(let text) = await socket.next() {
            if text.contains(part) { return text }
        }
        throw Missed(part)
    }
}
