import Roost
import RoostAPI
import RoostTestSupport
import RoostTesting
import Testing

/// The model of the article on a chat screen, which apps start from.
@MainActor @Suite("Samples: the chat screen", .timeLimit(.minutes(5)))
struct ChatScreenModelTests {
    @Test("a text that can't be sent returns to the field, with the reason; one that is sent doesn't")
    func refusedText() async throws {
        let server = try await RoostTestServer()
        let screen = ChatScreenModel("general", of: server.chat(as: "ann"))
        let long = String(repeating: "x", count: Limits.messageTextLength + 1)
        screen.draft = long
        await screen.send()
        #expect(screen.draft == long && screen.sendProblem != nil)
        screen.draft = "short"
        await screen.send()
        #expect(screen.draft == "" && screen.sendProblem == nil)
        try await server.stop()
    }

    @Test("the refusal of a text stays while rows appear; white space can't be sent")
    func refusalStays() async throws {
        let server = try await RoostTestServer()
        let ann = server.chat(as: "ann")
        try await ann.connect()
        try await ann.createChannel("general").sendConfirmed("hi")
        let screen = ChatScreenModel("general", of: ann)
        for await view in screen.channel.updates where view != nil { break }
        for await update in screen.messages.updates where update.items.last?.text == "hi" { break }
        screen.draft = " \n"
        #expect(!screen.canSend)
        screen.draft = String(repeating: "x", count: Limits.messageTextLength + 1)
        #expect(screen.canSend)
        await screen.send()
        let refusal = screen.sendProblem
        await screen.appeared(try #require(screen.messages.items.last))
        #expect(refusal != nil && screen.sendProblem == refusal && screen.loadProblem == nil)
        await ann.disconnect()
        try await server.stop()
    }

    @Test("a row that leaves the screen while it loads older rows shows no error, and the next row loads them")
    func cancelledRow() async throws {
        let server = try await RoostTestServer()
        let (ann, bob) = (server.chat(as: "ann"), server.chat(as: "bob"))
        try await ann.connect()
        let general = try await ann.createChannel("general")
        for number in 1..<120 { try await general.send("\(number)") }
        try await general.sendConfirmed("120")
        try await bob.connect()
        try await bob.joinChannel("general")
        let screen = ChatScreenModel("general", of: bob)
        for await update in screen.messages.updates where update.items.count >= 30 { break }
        // What is on the device already; the page before it has to come from the server.
        await screen.appeared(try #require(screen.messages.items.first))
        for _ in 1...2 {
            let first = try #require(screen.messages.items.first)
            let row = Task { await screen.appeared(first) }
            row.cancel()
            await row.value
        }
        #expect(screen.loadProblem == nil)
        let count = screen.messages.items.count
        await screen.appeared(try #require(screen.messages.items.first))
        #expect(screen.messages.items.count > count && screen.loadProblem == nil)
        await ann.disconnect()
        await bob.disconnect()
        try await server.stop()
    }

    @Test("a message that arrives above a pending row is marked as read once it is visible")
    func aboveWaiting() async throws {
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
        try await general.sendConfirmed("hi")
        for await update in screen.messages.updates where update.items.contains(where: { $0.text == "hi" }) { break }
        for await unread in bob.unread.updates where unread.unreadCount == 1 { break }
        let rows = screen.messages.items
        #expect(rows.map(\.text) == ["hi", "when I may"])
        await screen.appeared(try #require(rows.first))
        try await eventually("nothing unread") { screen.channel.unreadCount == 0 }
        #expect(screen.loadProblem == nil)
        await ann.disconnect()
        await bob.disconnect()
        try await server.stop()
    }

    @Test("a refused change of another user's message is discarded")
    func refusedChange() async throws {
        let server = try await RoostTestServer()
        let (ann, bob) = (server.chat(as: "ann"), server.chat(as: "bob"))
        try await ann.connect()
        try await bob.connect()
        try await bob.createChannel("general")
        try await ann.joinChannel("general")
        try await bob.channel("general").sendConfirmed("bob's")
        let screen = ChatScreenModel("general", of: ann)
        for await update in screen.messages.updates where update.items.last?.text == "bob's" { break }
        let message = try #require(screen.messages.items.last?.message)
        try await screen.channel.edit(message.messageId, text: "ann's")
        var refused: MessageItem?
        for await update in screen.messages.updates {
            guard let item = update.items.last, case .failed = item.change else { continue }
            refused = item
            break
        }
        let row = try #require(refused)
        #expect(screen.refusal(of: row) != nil)
        await screen.discard(row)
        for await update in screen.messages.updates where update.items.last?.change == nil { break }
        let last = try #require(screen.messages.items.last)
        #expect(last.text == "bob's" && screen.refusal(of: last) == nil)
        await ann.disconnect()
        await bob.disconnect()
        try await server.stop()
    }
}
