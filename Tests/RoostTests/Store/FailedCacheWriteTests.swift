import Foundation
import GRDB
import Logging
import RoostAPI
import Testing

@testable import Roost

/// A write of the cache that fails together with one of the outbox: what is reported of the outbox is still in its file.
@MainActor @Suite("Store: writes of the cache that fail", .timeLimit(.minutes(5)))
struct FailedCacheWriteTests {
    private let directory = URL.temporaryDirectory.appending(component: "roost-\(UUID().uuidString)")
    private let url = URL(filePath: "/")

    private func chat(_ transport: any Transport = TinyServer()) -> Chat {
        let configuration = Chat.Configuration(
            storage: .directory(directory), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, transport: transport)
        return Chat(url: url, user: "ann", configuration: configuration) { "token" }
    }

    /// Has a file refuse some writes until the trigger is dropped.
    private func refuse(_ writes: String, in file: String = "cache.sqlite") async throws -> DatabaseQueue {
        var configuration = GRDB.Configuration()
        configuration.busyMode = .timeout(20)
        let folder = directory.appending(component: SyncFiles.folderName(of: "ann", at: url))
        let queue = try DatabaseQueue(path: folder.appending(component: file).path, configuration: configuration)
        try await queue.write { database in
            try database.execute(sql: "CREATE TRIGGER refused BEFORE \(writes) BEGIN SELECT RAISE(ABORT, 'it is full'); END")
        }
        return queue
    }

    private func operations(of chat: Chat) async throws -> [String] {
        try await chat.driver.files().outbox.items().map { type(of: $0.operation.operation).name }
    }

    @Test("an operation that the user gives up is gone from the file, though its overlay couldn't be removed in the same batch")
    func discarded() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat()
        try await chat.channel("general").hide()
        let item = try #require(try await chat.driver.files().outbox.items().first)
        let queue = try await refuse("DELETE ON overlays")
        await chat.driver.request(.discard(.operation(item.id, of: item.channel)))
        await chat.driver.rest()
        #expect(try await operations(of: chat) == [])
        #expect(await chat.driver.machine?.queues.isEmpty == true)
        try await queue.write { try $0.execute(sql: "DROP TRIGGER refused") }
        try await until { chat.outbox.entries.isEmpty && chat.outbox.phase == .loaded }
        await chat.disconnect()
    }

    @Test("an operation that replaces another one is alone in the file when its call returns")
    func superseded() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat()
        let driver = chat.driver
        let hide = OutboxOperation.hide(HideChannel(channel: "general"))
        try await driver.enqueue(hide)
        _ = try await refuse("INSERT ON users")
        try await driver.enqueue(
            .unhide(UnhideChannel(channel: "general")), besideWriting: [.users([UserSummary(userId: "bob", version: 1)])])
        #expect(try await operations(of: chat) == ["channel.unhide"])
        #expect(await driver.machine?.queues["general"]?.items.count == 1)
        await chat.disconnect()
    }

    @Test("a wait for a message doesn't end as discarded while the file still has the message")
    func notDiscarded() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat()
        let channel = chat.channel("general")
        let sending = Task { try await channel.sendConfirmed(MessageDraft(text: "hi", clientId: "c1")) }
        try await until { try await operations(of: chat) == ["message.send"] }
        let queue = try await refuse("DELETE ON operations", in: "outbox.sqlite")
        await chat.driver.request(.discard(.message(MessageKey(channel: "general", clientId: "c1"))))
        await chat.driver.rest()
        try await queue.write { try $0.execute(sql: "DROP TRIGGER refused") }
        // The message remains, and so does the wait for it.
        try await chat.connect()
        #expect(try await sending.value.content.text == "hi")
        await chat.disconnect()
    }

    @Test("a message whose row couldn't be stored stays in the file until it is")
    func arrived() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat()
        try await chat.connect()
        let queue = try await refuse("INSERT ON messages")
        try await chat.channel("general").send("hi")
        try await until { if case .waiting = chat.connection.status { true } else { false } }
        #expect(try await operations(of: chat) == ["message.send"])
        try await queue.write { try $0.execute(sql: "DROP TRIGGER refused") }
        let list = chat.channel("general").messages()
        try await until { list.items.last?.text == "hi" && list.items.last?.state == .sent }
        try await until { try await operations(of: chat) == [] }
        await chat.disconnect()
    }

    @Test(
        "SB-04 a message of an ephemeral channel whose row couldn't be stored isn't sent twice, whether its answer or its event is first",
        arguments: [true, false])
    func ephemeral(isAnswered: Bool) async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let sent = message(4, "hi", by: "ann", clientId: "c1")
        let server = ScriptedServer { call in
            switch call.operation {
            case "message.send": isAnswered ? .result(sent) : .nothing
            default: .result(Done())
            }
        }
        var page = fresh()
        page.rows.channel?.isEphemeral = true
        await server.resume(with: [page])
        let chat = chat(server)
        let driver = chat.driver
        try await chat.connect()
        try await driver.enqueue(.send(SendMessage(channel: "general", clientId: "c1", text: "hi")))
        try await until { await server.operations().contains("message.send") }
        if isAnswered { try await until { await driver.machine?.acknowledged.isEmpty == false } }
        let queue = try await refuse("INSERT ON messages")
        try await server.send(alone(sent))
        try await until { if case .waiting = chat.connection.status { true } else { false } }
        try await queue.write { try $0.execute(sql: "DROP TRIGGER refused") }
        try await chat.connect()
        // The next operation in the channel is sent after those that remain.
        try await chat.channel("general").hide()
        try await until { await server.operations().contains("channel.hide") }
        #expect(await server.operations().count { $0 == "message.send" } == 1)
        await chat.disconnect()
    }

    @Test(
        "ST-10 I6 nothing remains of a channel that a non-member has watched, though the store couldn't be written when the watch ended"
    )
    func visited() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let server = ScriptedServer { call in
            switch call.operation {
            case "channel.watch": .result(VisitTests.state())
            default: .result(Done())
            }
        }
        let chat = chat(server)
        try await chat.connect()
        let channel = chat.channel("general")
        try await channel.watch()
        let store = try await chat.driver.files().store
        #expect(try await store.read { try $0.cursor(of: "general") } == 3)
        let queue = try await refuse("DELETE ON positions")
        // The connection ends with the store.
        try? await channel.unwatch()
        try await until { if case .waiting = chat.connection.status { true } else { false } }
        #expect(try await store.read { try $0.cursor(of: "general") } == 3)
        try await queue.write { try $0.execute(sql: "DROP TRIGGER refused") }
        try await chat.connect()
        try await until { try await store.read { try $0.cursor(of: "general") } == nil }
        await chat.disconnect()
    }
}

extension SyncDriver {
    /// Enqueues an operation in one batch with a write of the cache.
    fileprivate func enqueue(_ operation: OutboxOperation, besideWriting writes: [StoreWrite]) async throws {
        _ = try await prepare()
        let outputs = machine?.handle(.enqueue(1 << 40, operation, id: .random(in: 1...Int64.max), at: environment.now())) ?? []
        isDraining = true
        await perform([.store(writes)] + outputs)
        isDraining = false
        await drain()
    }
}
