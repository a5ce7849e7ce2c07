import Foundation
import GRDB
import Logging
import RoostAPI
import Testing

@testable import Roost

/// Files that the system refuses to write: at opening, while sending, at an answer, and while missed events are fetched.
@MainActor @Suite("Store: a disk that is full, read-only or broken", .serialized, .timeLimit(.minutes(5)))
struct FullDiskTests {
    private let directory = URL.temporaryDirectory.appending(component: "roost-\(UUID().uuidString)")
    private let url = URL(filePath: "/")
    private let problems = AsyncStream.makeStream(of: StorageProblem.self)

    private var folder: URL { directory.appending(component: SyncFiles.folderName(of: "ann", at: url)) }
    private var outbox: URL { folder.appending(component: "outbox.sqlite") }
    private var cache: URL { folder.appending(component: "cache.sqlite") }

    init() throws { try DiskFault.prepare() }

    private func chat(_ transport: any Transport = TinyServer()) -> Chat {
        let continuation = problems.continuation
        let configuration = Chat.Configuration(
            storage: .directory(directory), onStorageProblem: { continuation.yield($0) },
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, transport: transport)
        return Chat(url: url, user: "ann", configuration: configuration) { "token" }
    }

    /// Waits for the next problem reported to the app.
    private func expectProblem(_ kind: StorageProblem.Kind, _ fault: DiskFault) async {
        for await problem in problems.stream {
            #expect(problem.kind == kind && problem.message.contains(fault.words))
            break
        }
    }

    /// Waits until the connection waits for the disk.
    private func waitForStorage(_ chat: Chat, _ fault: DiskFault) async throws {
        for await status in chat.connection.updates {
            if case .failed(let error) = status { throw error }
            guard case .waiting(_, let reason) = status else { continue }
            #expect(reason.cause == .storage && reason.message.contains(fault.words))
            break
        }
    }

    private func count(in chat: Chat) async throws -> Int { try await chat.driver.files().outbox.count() }

    /// Waits until a list shows these messages, all of them from the server.
    private func wait(for texts: [String], in list: MessageList) async {
        for await update in list.updates where update.items.map(\.text) == texts && update.items.allSatisfy({ $0.state == .sent }) {
            break
        }
    }

    // MARK: Opening

    @Test(
        "an outbox that can't be made is reported with its reason by every call and the status, and is made once it can be",
        arguments: DiskFault.allCases)
    func outboxNotMade(fault: DiskFault) async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let failing = try fault.begin(outbox)
        defer { failing.end() }
        let chat = chat()
        let (general, list) = (chat.channel("general"), chat.channel("general").messages())
        for call in [{ try await chat.connect() }, { _ = try await general.send("no") }, { try await list.loaded() }]
            as [@MainActor () async throws -> Void]
        {
            let error = await #expect(throws: RoostError.self) { try await call() }
            #expect(error?.code == .storageFailed && error?.message.contains(fault.words) == true)
        }
        #expect(list.phase.error?.message.contains(fault.words) == true)
        for await status in chat.connection.updates {
            guard case .failed(let error) = status else { continue }
            #expect(error.message.contains(fault.words))
            break
        }
        #expect(failing.end() > 0)
        try await chat.connect()
        try await general.sendConfirmed("yes")
        await wait(for: ["welcome", "yes"], in: list)
        await chat.disconnect()
    }

    @Test(
        "if the outbox can't be written at the start, kept operations are shown, aren't sent under a name missing from the file, and are sent once it can be",
        arguments: DiskFault.allCases)
    func outboxOpened(fault: DiskFault) async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        do {
            let chat = chat()
            try await chat.channel("general").send("kept")
        }
        let failing = try fault.begin(outbox)
        defer { failing.end() }
        let chat = chat()
        let list = chat.channel("general").messages()
        for await update in list.updates where update.items.map(\.text) == ["kept"] { break }
        try await chat.connect()
        await expectProblem(.outboxNotWritten, fault)
        for await update in list.updates where update.items.map(\.text) == ["welcome", "kept"] { break }
        #expect(list.items.last?.state == .pending)
        #expect(failing.end() > 0)
        await wait(for: ["welcome", "kept"], in: list)
        try await until { try await count(in: chat) == 0 }
        await chat.disconnect()
    }

    @Test(
        "a cache that can't be made is in memory, the app is notified, and the next start makes it",
        arguments: DiskFault.allCases)
    func cacheNotMade(fault: DiskFault) async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        do {
            let failing = try fault.begin(cache)
            defer { failing.end() }
            let chat = chat()
            try await chat.connect()
            try await chat.channel("general").sendConfirmed("hi")
            await expectProblem(.cacheNotKept, fault)
            await chat.disconnect()
            #expect(failing.end() > 0)
        }
        let chat = chat()
        try await chat.connect()
        let queue = try DatabaseQueue(path: cache.path)
        #expect(try await queue.read { try $0.savedState().epoch } == "first")
        await chat.disconnect()
    }

    // MARK: While it is open

    @Test(
        "an answer that the outbox can't record is reported; its operation isn't sent again, and is removed with the next write",
        arguments: DiskFault.allCases)
    func answered(fault: DiskFault) async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let (gate, open) = AsyncStream.makeStream(of: Void.self)
        let server = ScriptedServer { call in
            call.operation == "channel.hide" ? .held(until: gate, .result(Done())) : .result(Done())
        }
        let chat = chat(server)
        try await chat.connect()
        try await chat.channel("general").hide()
        try await until { await server.operations().contains("channel.hide") }
        let failing = try fault.begin(outbox)
        defer { failing.end() }
        open.finish()
        await expectProblem(.outboxNotWritten, fault)
        #expect(try await count(in: chat) == 1)
        #expect(try await chat.driver.savedOutbox().items.isEmpty)
        #expect(failing.end() > 0)
        try await chat.channel("other").hide()
        try await until { try await count(in: chat) == 0 }
        #expect(await server.operations().count { $0 == "channel.hide" } == 2)
        await chat.disconnect()
    }

    @Test(
        "while missed events can't be stored, the connection says why it waits; messages sent meanwhile are kept, and all of it arrives once there is room",
        arguments: DiskFault.allCases)
    func missed(fault: DiskFault) async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat()
        let (general, list) = (chat.channel("general"), chat.channel("general").messages())
        try await general.send("before")
        let failing = try fault.begin(cache)
        defer { failing.end() }
        let connecting = Task { try await chat.connect() }
        try await waitForStorage(chat, fault)
        try await general.send("meanwhile")
        #expect(
            try await chat.driver.files().outbox.items().compactMap { $0.operation.sent?.content.text } == ["before", "meanwhile"])
        #expect(failing.end() > 0)
        try await connecting.value
        await wait(for: ["welcome", "before", "meanwhile"], in: list)
        try await until { try await count(in: chat) == 0 }
        await chat.disconnect()
    }

    @Test(
        "a message that was sent and can't be stored stays in the outbox until it can, and is shown once",
        arguments: DiskFault.allCases)
    func arrived(fault: DiskFault) async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat()
        try await chat.connect()
        let (general, list) = (chat.channel("general"), chat.channel("general").messages())
        let failing = try fault.begin(cache)
        defer { failing.end() }
        try await general.send("hi")
        try await waitForStorage(chat, fault)
        #expect(try await count(in: chat) == 1)
        #expect(failing.end() > 0)
        await wait(for: ["welcome", "hi"], in: list)
        try await until { try await count(in: chat) == 0 }
        await chat.disconnect()
    }

    @Test(
        "if neither file can be written, a message is refused; once they can be, the chat continues",
        arguments: DiskFault.allCases)
    func neither(fault: DiskFault) async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat()
        try await chat.connect()
        let (general, list) = (chat.channel("general"), chat.channel("general").messages())
        try await general.sendConfirmed("before")
        let failing = [try fault.begin(outbox), try fault.begin(cache)]
        defer { for fault in failing { fault.end() } }
        let error = await #expect(throws: RoostError.self) { try await general.send("no") }
        #expect(error?.code == .storageFailed && error?.message.contains(fault.words) == true)
        await expectProblem(.outboxNotWritten, fault)
        #expect(failing.map { $0.end() }.reduce(0, +) > 0)
        try await general.sendConfirmed("after")
        await wait(for: ["welcome", "before", "after"], in: list)
        try await until { try await count(in: chat) == 0 }
        await chat.disconnect()
    }
}
