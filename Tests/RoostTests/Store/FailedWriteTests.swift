import Foundation
import GRDB
import Logging
import RoostAPI
import Synchronization
import Testing

@testable import Roost

/// A write of the files that fails, and what continues without it.
@MainActor @Suite("Store: writes that fail", .timeLimit(.minutes(5)))
struct FailedWriteTests {
    private let directory = URL.temporaryDirectory.appending(component: "roost-\(UUID().uuidString)")
    private let url = URL(filePath: "/")
    private let problems = AsyncStream.makeStream(of: StorageProblem.self)

    private var folder: URL { directory.appending(component: SyncFiles.folderName(of: "ann", at: url)) }

    private func chat(_ transport: any Transport = TinyServer(), onProblem: @escaping @Sendable () -> Void = {}) -> Chat {
        let continuation = problems.continuation
        let configuration = Chat.Configuration(
            storage: .directory(directory),
            onStorageProblem: { problem in
                continuation.yield(problem)
                onProblem()
            },
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, transport: transport)
        return Chat(url: url, user: "ann", configuration: configuration) { "token" }
    }

    /// Has a file refuse some writes until the trigger is dropped.
    ///
    /// - Parameter writes: Such as `INSERT ON operations`.
    private func refuse(_ writes: String, when condition: String = "1", in name: String) async throws -> DatabaseQueue {
        var configuration = Configuration()
        configuration.busyMode = .timeout(20)
        let queue = try DatabaseQueue(path: folder.appending(component: name).path, configuration: configuration)
        try await queue.write { database in
            try database.execute(
                sql: "CREATE TRIGGER refused BEFORE \(writes) WHEN \(condition) BEGIN SELECT RAISE(ABORT, 'it is full'); END")
        }
        return queue
    }

    /// A chat that keeps every message except `big`, and none until the work ends, because the outbox is being read.
    private func busyChat() async throws -> (chat: Chat, work: BusyWork, reading: Task<Void, any Error>) {
        let chat = chat()
        let outbox = try await chat.driver.prepare().outbox
        _ = try await refuse("INSERT ON operations", when: "NEW.client_id = 'big'", in: "outbox.sqlite")
        let work = BusyWork()
        let reading = Task { try await outbox.read { _ in work.run() } }
        try await until { work.isRunning }
        return (chat, work, reading)
    }

    /// Enqueues a message whose text is its id as well.
    private func send(_ text: String, by driver: SyncDriver) -> Task<Void, any Error> {
        let message = SendMessage(channel: "general", clientId: ClientID(text), text: text)
        return Task { try await driver.enqueue(.send(message)) }
    }

    /// Waits until a message is being written. Later ones aren't written together with it.
    private func waitUntilWriting(_ driver: SyncDriver) async throws {
        try await until { await !driver.replies.isEmpty }
        // A timer's input may have come since, and waits for the write.
        try await until { await driver.inputs.allSatisfy { if case .enqueue = $0 { false } else { true } } }
    }

    @Test("of operations that are written together, none is kept after one that can't be: each caller is refused and may retry")
    func together() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let (chat, work, reading) = try await busyChat()
        defer { work.end() }
        let driver = chat.driver
        // The first is being written when the others arrive, and these are written together.
        let first = send("first", by: driver)
        try await waitUntilWriting(driver)
        // The second repeats the first of them, which isn't in the file yet.
        let others = ["big", "big", "small"].map { send($0, by: driver) }
        try await until { await driver.inputs.count { if case .enqueue = $0 { true } else { false } } == 3 }
        work.end()
        try await reading.value
        try await first.value
        for other in others {
            let error = await #expect(throws: RoostError.self) { try await other.value }
            #expect(error?.code == .storageFailed && error?.message.contains("it is full") == true)
        }
        #expect(try await driver.files().outbox.items().compactMap { $0.operation.sent?.content.text } == ["first"])
    }

    @Test("operations that arrive while another one can't be written are kept")
    func meanwhile() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let (chat, work, reading) = try await busyChat()
        defer { work.end() }
        let driver = chat.driver
        let big = send("big", by: driver)
        try await waitUntilWriting(driver)
        let small = send("small", by: driver)
        try await until { await !driver.inputs.isEmpty }
        work.end()
        try await reading.value
        await #expect(throws: RoostError.self) { try await big.value }
        try await small.value
        #expect(try await driver.files().outbox.items().compactMap { $0.operation.sent?.content.text } == ["small"])
        #expect(await driver.machine?.item(.message(MessageKey(channel: "general", clientId: "small"))) != nil)
        await chat.disconnect()
    }

    @Test("the deletion or discarding of an unsent message doesn't succeed while the file still has the message")
    func notRemoved() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat()
        let driver = chat.driver
        let key = MessageKey(channel: "general", clientId: "c1")
        try await driver.enqueue(.send(SendMessage(channel: key.channel, clientId: key.clientId, text: "hi")))
        let queue = try await refuse("DELETE ON operations", in: "outbox.sqlite")
        let delete = OutboxOperation.delete(DeleteMessage(channel: key.channel, message: MessageID(rawValue: 0)), of: key.clientId)
        await #expect(throws: RoostError.self) { try await driver.enqueue(delete) }
        #expect(await driver.machine?.item(.message(key)) != nil)
        await driver.request(.discard(.message(key)))
        await driver.rest()
        #expect(await driver.machine?.item(.message(key)) != nil)
        try await queue.write { try $0.execute(sql: "DROP TRIGGER refused") }
        try await driver.enqueue(delete)
        #expect(try await driver.files().outbox.count() == 0)
        await chat.disconnect()
    }

    /// Waits for the first problem, which is the outbox's.
    private func waitUntilOutboxNotWritten() async {
        for await problem in problems.stream {
            #expect(problem.kind == .outboxNotWritten)
            break
        }
    }

    @Test("an answered operation that the file can't remove is removed with the next write, and not sent again meanwhile")
    func removedLater() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let server = ScriptedServer { _ in .result(Done()) }
        let chat = chat(server)
        try await chat.connect()
        let queue = try await refuse("DELETE ON operations", in: "outbox.sqlite")
        try await chat.channel("general").hide()
        await waitUntilOutboxNotWritten()
        #expect(try await chat.driver.files().outbox.count() == 1)
        #expect(try await chat.driver.savedOutbox().items.isEmpty)
        try await queue.write { try $0.execute(sql: "DROP TRIGGER refused") }
        try await chat.channel("other").hide()
        try await until { try await chat.driver.files().outbox.count() == 0 }
        #expect(await server.operations().count { $0 == "channel.hide" } == 2)
        await chat.disconnect()
    }

    @Test("an answered operation that couldn't be removed from the file doesn't prevent a log-out", arguments: [true, false])
    func removedByLogOut(isStillFull: Bool) async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat(ScriptedServer { _ in .result(Done()) })
        try await chat.connect()
        let queue = try await refuse("DELETE ON operations", in: "outbox.sqlite")
        try await chat.channel("general").hide()
        await waitUntilOutboxNotWritten()
        if !isStillFull { try await queue.write { try $0.execute(sql: "DROP TRIGGER refused") } }
        try await chat.logOut()
        #expect(!FileManager.default.fileExists(atPath: folder.path))
    }

    @Test("a log-out while the outbox can't be read fails with storage_failed, and works with the discarding option")
    func unreadableByLogOut() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat()
        try await chat.channel("general").send("unsent")
        let queue = try DatabaseQueue(path: folder.appending(component: "outbox.sqlite").path)
        try await queue.write { try $0.execute(sql: "ALTER TABLE operations RENAME TO others") }
        let error = await #expect(throws: RoostError.self) { try await chat.logOut() }
        #expect(error?.code == .storageFailed && error?.message.contains("can't be read") == true)
        try await chat.logOut(discardingUnsent: true)
        #expect(!FileManager.default.fileExists(atPath: folder.path))
    }

    /// A chat whose message was edited in flight, and answered while its outbox can't remove anything.
    private func editedAndAnswered(
        _ answer: ScriptedServer.Answer
    ) async throws -> (server: ScriptedServer, chat: Chat, outbox: DatabaseQueue) {
        let (gate, open) = AsyncStream.makeStream(of: Void.self)
        let edited = message(4, "b", by: "ann", clientId: "c1", changedAt: 5)
        let server = ScriptedServer { call in
            switch call.operation {
            case "message.send": .held(until: gate, answer)
            case "message.edit": .result(edited)
            default: .result(Done())
            }
        }
        let chat = chat(server)
        try await chat.connect()
        try await chat.driver.enqueue(.send(SendMessage(channel: "general", clientId: "c1", text: "a")))
        try await until { await server.operations().contains("message.send") }
        let edit = EditMessage(channel: "general", message: MessageID(rawValue: 0), text: "b")
        try await chat.driver.enqueue(.edit(edit, of: "c1"))
        let outbox = try await refuse("DELETE ON operations", in: "outbox.sqlite")
        open.finish()
        await waitUntilOutboxNotWritten()
        return (server, chat, outbox)
    }

    @Test("an edit after a message whose answer can't be written is sent for the message that the server has")
    func answeredWithEdit() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let (server, chat, outbox) = try await editedAndAnswered(.result(message(4, "a", by: "ann", clientId: "c1")))
        // A caller waits for this one, so the client continues from the contents of the file.
        await #expect(throws: RoostError.self) { try await chat.channel("other").hide() }
        try await outbox.write { try $0.execute(sql: "DROP TRIGGER refused") }
        try await until { await server.operations().contains("message.edit") }
        let edits = await server.calls.filter { $0.operation == "message.edit" }
        let ids = edits.map { edit -> JSONValue? in if case .object(let fields) = edit.with { fields["message"] } else { nil } }
        #expect(ids == [.string("4")])
        try await until { try await chat.driver.files().outbox.count() == 0 }
        #expect(await server.operations().count { $0 == "message.send" } == 1)
        await chat.disconnect()
    }

    @Test("a message in flight that is refused while the outbox can't be written keeps the edit that was made of it")
    func refusedWithEdit() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let (server, chat, outbox) = try await editedAndAnswered(.error(RoostError(.notPermitted, "No.")))
        try await outbox.write { try $0.execute(sql: "DROP TRIGGER refused") }
        try await chat.channel("other").hide()
        try await until { try await chat.driver.files().outbox.count() == 1 }
        let items = try await chat.driver.files().outbox.items()
        #expect(items.map { $0.operation.sent?.content.text } == ["b"])
        #expect(items.map { $0.failure?.code } == [.notPermitted])
        #expect(await server.operations().contains("message.edit") == false)
        await chat.disconnect()
    }

    @Test("an operation isn't sent until the file can note that it may be sent")
    func notNoted() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let server = ScriptedServer { _ in .result(Done()) }
        let chat = chat(server)
        try await chat.channel("general").hide()
        let queue = try await refuse("UPDATE ON operations", when: "NEW.first_sent_at IS NOT NULL", in: "outbox.sqlite")
        try await chat.connect()
        await waitUntilOutboxNotWritten()
        #expect(await server.operations().contains("channel.hide") == false)
        #expect(try await chat.driver.files().outbox.items().map(\.firstSentAt) == [nil])
        try await queue.write { try $0.execute(sql: "DROP TRIGGER refused") }
        try await until { await server.operations().contains("channel.hide") }
        for await entries in chat.outbox.updates where entries.isEmpty { break }
        await chat.disconnect()
    }

    /// A file that refuses writes until the problem was reported.
    private final class Refusing: Sendable {
        private let file = Mutex<DatabaseQueue?>(nil)
        func begin(_ queue: DatabaseQueue) { file.withLock { $0 = queue } }
        func end() {
            file.withLock { file in
                try? file?.write { try $0.execute(sql: "DROP TRIGGER refused") }
                file = nil
            }
        }
    }

    @Test(
        "SB-04 a message of an ephemeral channel that is noted just when another write fails is sent, and isn't taken for another chat's",
        arguments: [false, true])
    func notedBesideFailure(hasOther: Bool) async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let (gate, open) = AsyncStream.makeStream(of: Void.self)
        let server = ScriptedServer { call in
            switch call.operation {
            case "channel.hide": .held(until: gate, .result(Done()))
            case "message.send": .nothing
            default: .result(Done())
            }
        }
        var page = fresh()
        page.rows.channel?.isEphemeral = true
        await server.resume(with: [page])
        let refusing = Refusing()
        let chat = chat(server) { refusing.end() }
        let driver = chat.driver
        try await chat.connect()
        try await chat.channel("general").hide()
        try await until { await server.operations().contains("channel.hide") }
        refusing.begin(try await refuse("DELETE ON operations", in: "outbox.sqlite"))
        // During another write, a message arrives, and the answer whose removal is written together with it.
        let outbox = try await driver.files().outbox
        let work = BusyWork()
        defer { work.end() }
        let reading = Task { try await outbox.read { _ in work.run() } }
        try await until { work.isRunning }
        let other = Task { try await driver.enqueue(.mute(MuteNotifications(channel: "other"))) }
        try await waitUntilWriting(driver)
        let beside = hasOther ? self.chat() : nil
        _ = try await beside?.driver.files()
        let sending = send("hi", by: driver)
        // Timers may be among them.
        try await until { await driver.inputs.contains { if case .enqueue = $0 { true } else { false } } }
        open.finish()
        try await until { await driver.inputs.contains { if case .transport(_, .message) = $0 { true } else { false } } }
        work.end()
        try await reading.value
        try await other.value
        try await sending.value
        await waitUntilOutboxNotWritten()
        try await until { await server.operations().contains("message.send") }
        #expect(await driver.machine?.item(.message(MessageKey(channel: "general", clientId: "hi"))) != nil)
        await chat.disconnect()
        await beside?.disconnect()
    }

    @Test(
        "if the met server, and that earlier operations are for it, can't be written at once, they are written with the next write")
    func serverNotNoted() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat(ScriptedServer { _ in .nothing })
        try await chat.channel("general").hide()
        let queue = try await refuse("UPDATE ON outbox_state", in: "outbox.sqlite")
        try await chat.connect()
        await waitUntilOutboxNotWritten()
        let outbox = try await chat.driver.files().outbox
        #expect(try await outbox.saved().server == nil)
        #expect(try await chat.driver.savedOutbox().server == "server")
        try await queue.write { try $0.execute(sql: "DROP TRIGGER refused") }
        try await chat.channel("other").hide()
        let saved = try await outbox.saved()
        #expect(saved.server == "server" && saved.items.map(\.server) == ["server", "server"])
        await chat.disconnect()
    }

    @Test("lists are notified when the start removes overlays that an earlier process had left")
    func staleOverlay() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        do {
            let chat = chat()
            try await chat.connect()
            await chat.disconnect()
            try await hideWithoutOutbox(chat)
        }
        let chat = chat()
        let list = chat.channels()
        try await list.loaded()
        #expect(list.items.map(\.id) == [])
        _ = try await chat.driver.prepare()
        for await update in list.updates where update.items.map(\.id) == ["general"] { break }
    }

    /// Leaves a channel hidden in the cache alone, as if the process had ended between the two files.
    private func hideWithoutOutbox(_ chat: Chat) async throws {
        try await chat.channel("general").hide()
        let outbox = try await chat.driver.files().outbox
        try await outbox.apply(outbox.items().map { .remove($0.id, of: $0.channel) })
    }

    @Test("overlays of the outbox that can't be written at the start are a reason to wait, and not to give up")
    func overlays() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        do {
            let chat = chat()
            try await chat.connect()
            await chat.disconnect()
            try await hideWithoutOutbox(chat)
        }
        let queue = try await refuse("DELETE ON overlays", in: "cache.sqlite")
        let chat = chat()
        let connecting = Task { try await chat.connect() }
        for await status in chat.connection.updates {
            if case .failed(let error) = status { throw error }
            if case .waiting = status { break }
        }
        try await queue.write { try $0.execute(sql: "DROP TRIGGER refused") }
        try await connecting.value
        #expect(try await chat.driver.files().store.read { try $0.overlays() } == [:])
        await chat.disconnect()
    }

    @Test("a list whose opening can't be recorded still shows its messages")
    func opening() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat()
        try await chat.connect()
        _ = try await refuse("INSERT ON opened_channels", in: "cache.sqlite")
        let list = chat.channel("general").messages()
        try await list.loaded()
        #expect(list.items.map(\.text) == ["welcome"])
        try await chat.channel("general").sendConfirmed("hi")
        for await update in list.updates where update.items.last?.text == "hi" { break }
        #expect(list.phase == .loaded)
        await chat.disconnect()
    }
}
