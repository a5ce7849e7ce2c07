import Foundation
import Logging
import RoostAPI
import Testing

@testable import Roost

@MainActor @Suite("Outbox: what its entries say", .timeLimit(.minutes(5)))
struct OutboxEntryTests {
    /// What an entry says of its operation.
    private struct Said: Hashable {
        var operation: String
        var clientId: ClientID?
        var messages: [MessageID] = []
        var content: MessageContent?

        init(_ entry: LiveOutbox.Entry) {
            (operation, clientId) = (entry.operation, entry.clientId)
            (messages, content) = (entry.messages, entry.content)
        }

        init(_ operation: String, _ clientId: ClientID? = nil, _ messages: [MessageID] = [], _ content: MessageContent? = nil) {
            (self.operation, self.clientId, self.messages, self.content) = (operation, clientId, messages, content)
        }
    }

    @Test("an entry has the client id and the content of a message, what an edit replaces, a draft, and the messages to change")
    func contents() async throws {
        let configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, transport: TinyServer())
        let chat = Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
        let store = try await chat.driver.prepare().store
        let seqs: ClosedRange<Seq> = 1...9
        let texts = seqs.map { message($0, "\($0)", by: "ann") }
        try await store.write([
            .forget(Harness.channel), .messages(texts, of: Harness.channel),
            .position(Harness.channel, Position(cursor: 9, windowStart: 0, messageCount: nil)),
        ])
        let (general, ids) = (chat.channel(Harness.channel), texts.map(\.messageId))
        let clientId = try await general.send(MessageDraft(text: "hi", tags: ["t"]))
        try await general.edit(ids[0], text: "one")
        try await general.edit(ids[1], tags: ["u"])
        try await general.delete(ids[2])
        try await general.deleteForMe([ids[3], ids[4]])
        try await general.setDraft("see you", metadata: ["at": "noon"])
        try await general.muteNotifications()
        try await until { chat.outbox.entries.count == 7 }
        let expected = [
            Said("message.send", clientId, [], MessageContent(text: "hi", tags: ["t"])),
            Said("message.edit", nil, [ids[0]], MessageContent(text: "one")),
            Said("message.edit", nil, [ids[1]], MessageContent(text: "", tags: ["u"])), Said("message.delete", nil, [ids[2]]),
            Said("message.deleteForMe", nil, [ids[3], ids[4]]),
            Said("draft.set", nil, [], MessageContent(text: "see you", metadata: ["at": "noon"])),
            Said("channel.muteNotifications"),
        ]
        #expect(Set(chat.outbox.entries.map { Said($0) }) == Set(expected))
    }
}
