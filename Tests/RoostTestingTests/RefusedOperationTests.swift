import Roost
import RoostAPI
import RoostTestSupport
import RoostTesting
import Testing

/// The sample of docs/messages.md about refused operations, which apps start from.
@MainActor @Suite("Samples: refused operations", .timeLimit(.minutes(5)))
struct RefusedOperationTests {
    @Test("the loop over other refused operations leaves a refused message, and a refused edit, in their rows")
    func messageStays() async throws {
        let server = try await RoostTestServer()
        let (ann, bob) = (server.chat(as: "ann"), server.chat(as: "bob"))
        try await ann.connect()
        try await bob.connect()
        let general = try await ann.createChannel("general", users: ["bob"])
        try await general.sendConfirmed("ann's")
        try await general.freeze()
        let talk = try await ann.createConversation(with: ["bob"])
        let (channels, messages) = (bob.channels(), bob.channel("general").messages())
        try await eventually("both channels, and the message in one") {
            channels.items.count == 2 && messages.items.map(\.text) == ["ann's"]
        }
        let message = try #require(messages.items.last?.message)
        try await bob.channel("general").edit(message.messageId, text: "bob's")
        try await bob.channel("general").send("while frozen")
        // Nobody leaves a conversation.
        try await bob.channel(talk.id).leave()
        try await bob.outbox.loaded()
        try await eventually("three refusals") {
            let entries = bob.outbox.entries
            return entries.count == 3 && entries.allSatisfy { if case .failed = $0.state { true } else { false } }
        }
        await discardOthers(of: bob)
        try await eventually("one discarded operation") { bob.outbox.entries.count == 2 }
        #expect(Set(bob.outbox.entries.map(\.operation)) == [EditMessage.name, SendMessage.name])
        try await eventually("both refusals in their rows") {
            guard messages.items.map(\.text) == ["ann's", "while frozen"] else { return false }
            guard case .failed = messages.items[0].change, case .failed = messages.items[1].state else { return false }
            return true
        }
        await ann.disconnect()
        await bob.disconnect()
        try await server.stop()
    }
}
