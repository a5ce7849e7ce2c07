import Foundation
import Logging
import RoostAPI
import Testing

@testable import Roost

/// A server whose data were replaced by others than its own backup.
@MainActor @Suite("Live objects: another server", .timeLimit(.minutes(5)))
struct OtherServerTests {
    private let directory = URL.temporaryDirectory.appending(component: "roost-\(UUID().uuidString)")

    private func chat(_ server: ScriptedServer) -> Chat {
        var configuration = Chat.Configuration(
            storage: .directory(directory), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = server
        return Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
    }

    @Test(
        "operations for another server wait for the app, even after a restart, and are given up or sent to this one",
        arguments: [true, false])
    func decision(isDiscarding: Bool) async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        do {
            let chat = chat(ScriptedServer { _ in .nothing })
            try await chat.connect()
            await chat.disconnect()
            try await chat.setAutoAcceptInvitations(false)
            try await chat.channel("general").hide()
            for await entries in chat.outbox.updates where entries.count == 2 { break }
            #expect(chat.outbox.entries.map(\.state) == [.pending, .pending] && !chat.outbox.isForAnotherServer)
        }
        let server = ScriptedServer(named: "other", epoch: "second") { _ in .result(Done()) }
        do {
            let chat = chat(server)
            try await chat.connect()
            for await entries in chat.outbox.updates where entries.first?.state == .forAnotherServer { break }
            #expect(chat.outbox.isForAnotherServer)
            await chat.disconnect()
        }

        let chat = chat(server)
        let outbox = chat.outbox
        try await outbox.loaded()
        #expect(outbox.entries.map(\.operation) == ["preferences.update", "channel.hide"])
        #expect(outbox.entries.map(\.state) == [.forAnotherServer, .forAnotherServer] && outbox.isForAnotherServer)
        try await chat.connect()
        try await chat.setSharing(typing: false)
        if isDiscarding {
            await outbox.discardOperationsForAnotherServer()
        } else {
            await outbox.sendOperationsForAnotherServer()
        }
        for await entries in outbox.updates where entries.isEmpty { break }
        #expect(!outbox.isForAnotherServer && outbox.count == 0)
        let sent = await server.operations().filter { $0 != "stream.resume" }
        #expect(sent.filter { $0 == "preferences.update" }.count == (isDiscarding ? 1 : 2))
        #expect(sent.contains("channel.hide") == !isDiscarding)
        await chat.disconnect()
    }

    @Test("a list reports that a message and a change were for another server; they aren't retried, and can be given up")
    func messages() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        do {
            let server = ScriptedServer { _ in .nothing }
            let chat = chat(server)
            try await chat.connect()
            try await chat.channel("general").send(MessageDraft(text: "hi", clientId: "c1"))
            try await chat.channel("general").send(MessageDraft(text: "again", clientId: "c2"))
            let list = chat.channel("general").messages()
            try await until { list.items.map(\.state) == [.pending, .pending] }
            await chat.disconnect()
        }
        let server = ScriptedServer(named: "other", epoch: "second") { _ in .nothing }
        let chat = chat(server)
        let list = chat.channel("general").messages()
        try await until { list.items.map(\.state) == [.pending, .pending] }
        try await chat.connect()
        try await until { list.items.map(\.state) == [.forAnotherServer, .forAnotherServer] }
        let first = try #require(list.items.first)
        await list.retry(first)
        await list.retry("c2")
        for entry in chat.outbox.entries { await chat.outbox.retry(entry) }
        await list.discard(first)
        try await until { list.items.map(\.text) == ["again"] }
        #expect(list.items.map(\.state) == [.forAnotherServer])
        try await until { await server.operations().contains("stream.resume") }
        // The shown users are requested too, sooner or later.
        #expect(await Set(server.operations()).isSubset(of: ["stream.resume", "user.listChanged"]))
        // Sending it again means this server.
        try await chat.channel("general").send(MessageDraft(text: "again", clientId: "c2"))
        try await until { list.items.map(\.state) == [.pending] }
        try await until { await server.operations().contains("message.send") }
        await chat.disconnect()
    }

    @Test("a change for another server isn't shown, and its row says why, whatever else was changed")
    func change() {
        func item(_ id: Int64, _ text: String, for server: String) -> OutboxItem {
            let edit = EditMessage(channel: "general", message: MessageID(rawValue: 2), text: text)
            return OutboxItem(
                id: id, number: id, operation: .edit(edit), createdAt: Timestamp(milliseconds: 0), server: server)
        }
        let row = MessageItem(message(2, "old"), sender: UserSummary(userId: "bob"))
        let others = row.changed(by: [item(1, "theirs", for: "other")], server: "server")
        #expect(others.text == "old" && others.change == .forAnotherServer)
        let both = row.changed(by: [item(1, "theirs", for: "other"), item(2, "new", for: "server")], server: "server")
        #expect(both.text == "new" && both.change == .forAnotherServer)
    }
}
