import Roost
import RoostAPI
import RoostTesting
import Testing

@Suite("Samples of tests", .timeLimit(.minutes(5)))
struct TestingSamples {
    // sample.begin
    @MainActor @Test func whatBobSays() async throws {
        let server = try await RoostTestServer()
        let (ann, bob) = (server.chat(as: "ann"), server.chat(as: "bob"))
        try await ann.connect()
        try await bob.connect()
        try await ann.createChannel("general")
        let general = try await bob.joinChannel("general")

        let screen = ChatScreenModel("general", of: ann)
        try await general.sendConfirmed("hi")
        for await update in screen.messages.updates where update.items.last?.text == "hi" { break }
        await screen.appeared(screen.messages.items[0])
        for await unread in ann.unread.updates where unread.unreadCount == 0 { break }

        await ann.disconnect()
        await bob.disconnect()
        try await server.stop()
    }
    // sample.end

    // sample.begin
    @MainActor @Test func offline() async throws {
        let server = try await RoostTestServer()
        let ann = server.chat(as: "ann")
        try await ann.connect()
        try await ann.createChannel("general")
        let screen = ChatScreenModel("general", of: ann)
        for await view in screen.channel.updates where view != nil { break }

        try await server.startOutage()
        screen.draft = "later"
        await screen.send()
        for await update in screen.messages.updates where update.items.last?.state == .pending { break }
        try await server.endOutage()
        for await update in screen.messages.updates where update.items.last?.state == .sent { break }

        await ann.disconnect()
        try await server.stop()
    }
    // sample.end

    // sample.begin
    @MainActor @Test func silence() async throws {
        let server = try await RoostTestServer()
        let (ann, bob) = (server.chat(as: "ann"), server.chat(as: "bob"))
        try await ann.connect()
        try await bob.connect()
        let general = try await ann.createChannel("general", users: ["bob"])
        try await general.silence(for: .seconds(3600))

        let screen = ChatScreenModel("general", of: bob)
        for await view in screen.channel.updates where view?.channel.isMuted == true { break }
        screen.draft = "when I may"
        await screen.send()
        for await update in screen.messages.updates {
            if case .waiting = update.items.last?.state { break }
        }
        server.advance(by: .seconds(3601))
        for await update in screen.messages.updates where update.items.last?.state == .sent { break }

        await ann.disconnect()
        await bob.disconnect()
        try await server.stop()
    }
    // sample.end

    // sample.begin
    @MainActor @Test func push() async throws {
        let (pushes, pushed) = AsyncStream.makeStream(of: PushNotification.self)
        let server = try await RoostTestServer(onPush: { pushed.yield($0) })
        try await server.call(UpsertUser(user: "bob"), as: "backend", role: .admin)
        let ann = server.chat(as: "ann")
        try await ann.connect()
        let general = try await ann.createChannel("general", users: ["bob"])

        try await general.sendConfirmed("Are you there?")
        for await push in pushes {
            #expect(push.message.text == "Are you there?" && push.recipients.map(\.user) == ["bob"])
            break
        }

        await ann.disconnect()
        try await server.stop()
    }
    // sample.end
}

private func signedIn(at server: RoostTestServer) -> Chat {
    // sample.begin
    let chat = Chat(url: server.url, user: "ann", configuration: server.configuration()) { try await server.token(for: "ann") }
    // sample.end
    return chat
}

private func preparing(server: RoostTestServer) async throws {
    // sample.begin
    try await server.call(UpsertUser(user: "bob", displayName: "Bob"), as: "backend", role: .admin)
    // sample.end
}

// sample.begin
/// The rows of a preview: a message from bob, one on its way, and one that was refused.
func previewRows() -> [MessageItem] {
    let (ann, bob) = (UserSummary(userId: "ann", displayName: "Ann"), UserSummary(userId: "bob", displayName: "Bob"))
    let time = Timestamp(milliseconds: 1_772_368_205_250)
    let hello = Message(
        messageId: MessageID(rawValue: 1), channelId: "general", seq: 2, changeSeq: 2, sender: "bob", clientId: "1", text: "hello",
        createdAt: time)
    let refusal = RoostError(.frozen, "The channel is frozen.")
    return [
        MessageItem(hello, sender: bob), MessageItem("hi", sender: ann, createdAt: time),
        MessageItem("Anyone here?", sender: ann, createdAt: time, state: .failed(refusal)),
    ]
}
// sample.end
