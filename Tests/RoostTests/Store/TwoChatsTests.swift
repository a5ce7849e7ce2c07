import Foundation
import GRDB
import Logging
import RoostAPI
import Synchronization
import Testing

@testable import Roost

/// Two chats of one user in one process, which share their files.
@MainActor @Suite("Two chats of one directory", .timeLimit(.minutes(5)))
struct TwoChatsTests {
    private let directory = URL.temporaryDirectory.appending(component: "roost-\(UUID().uuidString)")

    private func chat(
        _ server: any Transport, _ logger: Logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
        clock: any Clock<Duration> = ContinuousClock()
    ) -> Chat {
        let configuration = Chat.Configuration(storage: .directory(directory), logger: logger, transport: server, clock: clock)
        return Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
    }

    /// The work of a chat that is never connected and then released.
    private func leave(_ text: String) async throws {
        try await chat(TinyServer()).channel("general").send(text)
    }

    @Test("R08 I1 a chat sends what another chat has left that is gone, and its outbox shows it meanwhile")
    func left() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let first = chat(TinyServer())
        try await first.connect()
        let list = first.channel("general").messages()
        try await leave("from the other")
        try await until { list.items.last?.text == "from the other" && list.items.last?.state == .sent }
        try await until { first.outbox.phase == .loaded && first.outbox.entries.isEmpty }
        await first.disconnect()

        // Without a connection it is shown, and sent with the next one.
        try await leave("later")
        try await until { list.items.last?.text == "later" && list.items.last?.state == .pending }
        try await until { await first.driver.machine?.queues.isEmpty == false }
        try await until { first.outbox.entries.map(\.operation) == ["message.send"] }
        try await first.connect()
        try await until { list.items.last?.state == .sent }
        #expect(list.items.map(\.text) == ["welcome", "from the other", "later"])
        try await first.logOut()
    }

    /// Counts what is logged.
    private struct LogCounter: LogHandler {
        let count: Count
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.error
        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) { count.value.add(1, ordering: .relaxed) }
    }

    private final class Count: Sendable {
        let value = Atomic(0)
    }

    @Test("R08 I1 operations that another chat has left are sent later if the outbox can't be read at that moment")
    func unreadable() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let count = Count()
        let first = chat(TinyServer(), Logger(label: "test") { _ in LogCounter(count: count) })
        try await first.connect()
        let folder = directory.appending(component: SyncFiles.folderName(of: "ann", at: URL(filePath: "/")))
        let outbox = try DatabaseQueue(path: folder.appending(component: "outbox.sqlite").path)
        let before = count.value.load(ordering: .relaxed)
        do {
            let other = chat(TinyServer())
            try await other.channel("general").send("left")
            try await outbox.write { try $0.execute(sql: "ALTER TABLE operations RENAME TO hidden") }
        }
        try await until { count.value.load(ordering: .relaxed) > before }
        try await outbox.write { try $0.execute(sql: "ALTER TABLE hidden RENAME TO operations") }
        // Any further input is an occasion.
        first.nudge()
        try await until { try await first.driver.files().outbox.count() == 0 }
        await first.disconnect()
    }

    @Test("SB-04 R08 I1 a message that is left to the chat that sends it is sent if that chat is gone just then")
    func leftJustThen() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let server = ScriptedServer { _ in .nothing }
        var page = fresh()
        page.rows.channel?.isEphemeral = true
        await server.resume(with: [page])
        let second = try await offline(server)
        let driver = second.driver
        let key = MessageKey(channel: "general", clientId: "c1")
        try await driver.enqueue(.send(SendMessage(channel: key.channel, clientId: key.clientId, text: "hi")))
        var first: Chat? = chat(server)
        _ = try await first?.driver.files()
        // The start of its sending is being written at this moment.
        let folder = directory.appending(component: SyncFiles.folderName(of: "ann", at: URL(filePath: "/")))
        var configuration = Configuration()
        configuration.allowsUnsafeTransactions = true
        let outbox = try DatabaseQueue(path: folder.appending(component: "outbox.sqlite").path, configuration: configuration)
        try await outbox.writeWithoutTransaction { database in
            try database.execute(sql: "BEGIN IMMEDIATE; UPDATE operations SET first_sent_at = 1, server = 'server'")
        }
        let edit = EditMessage(channel: key.channel, message: MessageID(rawValue: 0), text: "changed")
        let editing = Task { try await driver.enqueue(.edit(edit, of: key.clientId)) }
        try await until { await !driver.replies.isEmpty }
        try await until { await driver.inputs.isEmpty }
        first = nil
        try await until { await driver.mayHaveOrphanedOperations }
        try await outbox.writeWithoutTransaction { try $0.execute(sql: "COMMIT") }
        let error = await #expect(throws: RoostError.self) { try await editing.value }
        #expect(error?.code == .notFound)
        try await until { await driver.machine?.item(.message(key)) != nil }
        try await second.connect()
        try await until { await server.operations().contains("message.send") }
        await second.disconnect()
    }

    /// Has a chat leave a message that it has started to send, and a channel hidden in the cache alone, as if a process had ended between the two
    /// files.
    private func leaveSent(_ key: MessageKey, by chat: Chat) async throws {
        try await chat.driver.enqueue(.send(SendMessage(channel: key.channel, clientId: key.clientId, text: "hi")))
        try await chat.channel(key.channel).hide()
        let outbox = try await chat.driver.files().outbox
        for item in try await outbox.items() {
            let isMessage = item.message != nil
            let sending = OutboxWrite.sending(item.id, of: item.channel, at: Timestamp(milliseconds: 1), to: "server")
            try await outbox.apply([isMessage ? sending : .remove(item.id, of: item.channel)])
        }
    }

    @Test("SB-04 R08 I1 a message that is left to the chat that sends it is sent if that chat ends while another one is being made")
    func leftWhileMade() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let server = ScriptedServer { _ in .nothing }
        var page = fresh()
        page.rows.channel?.isEphemeral = true
        await server.resume(with: [page])
        var first: Chat? = try await offline(server)
        if let first { try await leaveSent(MessageKey(channel: "general", clientId: "c1"), by: first) }
        let second = chat(server)
        let driver = second.driver
        // It writes the overlays once it has read the outbox, while the other chat exists.
        let work = BusyWork()
        defer { work.end() }
        try await driver.files().store.change { database in
            let reached = DatabaseFunction("reached", argumentCount: 0) { _ in
                work.run()
                return nil
            }
            database.add(function: reached)
            try database.execute(sql: "CREATE TEMP TRIGGER held BEFORE DELETE ON overlays BEGIN SELECT reached(); END")
        }
        let preparing = Task { _ = try await driver.prepare() }
        try await until { work.isRunning }
        first = nil
        try await until { try await !driver.files().isShared }
        work.end()
        try await preparing.value
        try await second.connect()
        try await until { await server.operations().contains("message.send") }
        await second.disconnect()
    }

    @Test("SB-04 R08 I1 a message of a chat that is gone is sent by the one that connects, while another only shows it")
    func leftBesideIdle() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let server = ScriptedServer { _ in .nothing }
        var page = fresh()
        page.rows.channel?.isEphemeral = true
        await server.resume(with: [page])
        var former: Chat? = try await offline(server)
        if let former { try await leaveSent(MessageKey(channel: "general", clientId: "c1"), by: former) }
        // An unanswered message is sent again after a while, which doesn't pass on this clock.
        let clock = ManualClock()
        let idle = chat(server, clock: clock)
        _ = try await idle.driver.files()
        former = nil
        try await until { try await !idle.driver.files().isShared }
        let second = chat(server, clock: clock)
        try await second.connect()
        try await until { await server.operations().contains("message.send") }
        // It is the second one's now.
        try await idle.connect()
        await letOthersRun()
        #expect(await server.operations().count { $0 == "message.send" } == 1)
        await idle.disconnect()
        await second.disconnect()
    }

    /// A chat that was online before.
    private func offline(_ server: any Transport) async throws -> Chat {
        let chat = chat(server)
        try await chat.connect()
        await chat.disconnect()
        return chat
    }

    private func kept(by chat: Chat) async throws -> [OutboxOperation] {
        try await chat.driver.files().outbox.items().map(\.operation)
    }

    @Test("R08 I4 a message in flight that another chat has sent meanwhile is changed at its place", arguments: [true, false])
    func sentMeanwhile(isDeleted: Bool) async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let server = TinyServer()
        let second = try await offline(server)
        let channel = second.channel("general")
        let list = channel.messages()
        try await channel.send("old")
        try await until { list.items.last?.state == .pending }
        let row = try #require(list.items.last)
        let first = chat(server)
        try await first.connect()
        try await until { try await first.driver.files().outbox.count() == 0 }

        let stored = MessageID(rawValue: 3)
        if isDeleted {
            try await channel.delete(row)
            #expect(try await kept(by: second) == [.delete(DeleteMessage(channel: "general", message: stored))])
        } else {
            try await channel.edit(row, text: "new")
            #expect(try await kept(by: second) == [.edit(EditMessage(channel: "general", message: stored, text: "new"))])
        }
        await first.disconnect()
    }

    @Test(
        "R08 I4 a change that another chat is sending isn't replaced or taken back: the next one follows it",
        arguments: [true, false])
    func changedMeanwhile(isDeleted: Bool) async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        // It doesn't answer changes.
        let server = TinyServer()
        let second = try await offline(server)
        let channel = second.channel("general")
        let message = MessageID(rawValue: 1)
        let deletion = OutboxOperation.delete(DeleteMessage(channel: "general", message: message))
        let undeletion = OutboxOperation.undelete(UndeleteMessage(channel: "general", message: message))
        let edits = ["a", "b"].map { OutboxOperation.edit(EditMessage(channel: "general", message: message, text: $0)) }
        if isDeleted { try await channel.delete(message) } else { try await channel.edit(message, text: "a") }
        let first = chat(server)
        try await first.connect()
        try await until { try await first.driver.files().outbox.items().first?.firstSentAt != nil }
        if isDeleted { try await channel.undelete(message) } else { try await channel.edit(message, text: "b") }
        #expect(try await kept(by: second) == (isDeleted ? [deletion, undeletion] : edits))
        await first.disconnect()
    }

    @Test("SB-59 R08 I4 a message that one chat deletes permanently offline, and another one restores, isn't deleted")
    func restoredByOther() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let server = TinyServer()
        let (first, second) = (try await offline(server), try await offline(server))
        let message = MessageID(rawValue: 1)
        try await first.channel("general").purge(message)
        #expect(try await kept(by: second) == [.purge(PurgeMessage(channel: "general", message: message))])
        try await second.channel("general").undelete(message)
        #expect(try await kept(by: second) == [])
        // If it were gone before, the other one would have its operations.
        await first.disconnect()
    }

    @Test("R08 I3 operations of one chat come after earlier ones of another, however many these are")
    func order() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let server = TinyServer()
        let (first, second) = (try await offline(server), try await offline(server))
        for text in ["1", "2", "3"] { try await first.channel("general").send(text) }
        let message = MessageID(rawValue: 1)
        let edits = ["a", "b"].map { EditMessage(channel: "general", message: message, text: $0) }
        try await first.channel("general").edit(message, text: "a")
        try await second.channel("general").edit(message, text: "b")
        #expect(try await Array(kept(by: first).suffix(2)) == edits.map { .edit($0) })
        try await second.channel("general").send("4")
        #expect(try await kept(by: first).last?.sent?.text == "4")
    }

    @Test("AM-45 R08 an operation repeated after another chat has had it done is kept, and isn't taken for the done one")
    func onceMore() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let server = ScriptedServer { call in
            let marked = UnreadCount(channelId: "general", unreadCount: 0, readSeq: 3)
            return call.operation == "reading.mark" ? .result(marked) : .nothing
        }
        await server.resume(with: [fresh()])
        let first = try await offline(server)
        let channel = first.channel("general")
        try await channel.markRead()
        #expect(try await kept(by: first) == [.read(MarkRead(channel: "general", seq: 3))])
        let second = chat(server)
        try await second.connect()
        try await until { try await kept(by: second) == [] }
        await second.disconnect()
        // Another device may have marked it as unread since.
        try await channel.markRead()
        #expect(try await kept(by: first) == [.read(MarkRead(channel: "general", seq: 3))])
        try await first.connect()
        try await until { try await kept(by: first) == [] }
        #expect(await server.operations().count { $0 == "reading.mark" } == 2)
        await first.disconnect()
    }

    @Test("SB-60 R08 an operation of one chat is shown together with another chat's in the same channel")
    func shownTogether() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let server = TinyServer()
        let (first, second) = (try await offline(server), try await offline(server))
        let store = try await second.driver.files().store
        try await first.channel("general").resetHistory()
        try await second.channel("general").muteNotifications()
        let both = try #require(try await store.read { try $0.overlay(of: "general") })
        #expect(both.concealedSeq == 2 && both.isMuted == true)
        // An operation that one of them gives up is no longer shown, and the other's is.
        for row in try await second.driver.files().outbox.items() {
            guard case .mute = row.operation else { continue }
            await second.driver.request(.discard(.operation(row.id, of: "general")))
        }
        // Another task may be handling it.
        await second.driver.rest()
        let left = try #require(try await store.read { try $0.overlay(of: "general") })
        #expect(left.concealedSeq == 2 && left.isMuted == nil)
        // The first one's own is still to be sent.
        #expect(try await kept(by: first) == [.reset(ResetHistory(channel: "general", upTo: 2))])
    }

    @Test("SB-60 R08 a chat that starts to read doesn't show again what another one has had done")
    func readAfterDone() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let server = ScriptedServer { _ in .result(Done()) }
        await server.resume(with: [fresh()])
        let second = try await offline(server)
        try await second.channel("general").muteNotifications()
        let first = chat(server)
        try await first.connect()
        try await until { try await kept(by: first) == [] }
        await first.disconnect()
        try await second.driver.startReading("general")
        let store = try await second.driver.files().store
        let shown = try #require(try await store.read { try $0.overlay(of: "general") })
        #expect(shown.readSeq == 3 && shown.isMuted == nil)
    }

    @Test("I4 operations that a chat already knows aren't sent twice when another one is gone")
    func known() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let server = ScriptedServer { _ in .nothing }
        // An unanswered message is sent again after a while, which doesn't pass on this clock.
        let first = chat(server, clock: ManualClock())
        try await first.connect()
        try await first.channel("general").send(MessageDraft(text: "own", clientId: "c1"))
        try await until { await server.operations().contains("message.send") }
        try await leave("other")
        try await until { await first.driver.machine?.queues["general"]?.items.count == 2 }
        await letOthersRun()
        #expect(await server.operations().count { $0 == "message.send" } == 1)
        await first.disconnect()
    }
}
