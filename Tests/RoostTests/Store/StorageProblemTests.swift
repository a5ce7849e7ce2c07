import Foundation
import GRDB
import Logging
import RoostAPI
import Testing

@testable import Roost

@Suite("Store: the problems reported to an app", .timeLimit(.minutes(5)))
struct StorageProblemTests {
    private let directory = URL.temporaryDirectory.appending(component: "roost-\(UUID().uuidString)")
    private let url = URL(filePath: "/")
    private let problems = AsyncStream.makeStream(of: StorageProblem.self)

    private var folder: URL { directory.appending(component: SyncFiles.folderName(of: "ann", at: url)) }

    private func chat() -> Chat {
        var configuration = Chat.Configuration(
            storage: .directory(directory), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = TinyServer()
        let continuation = problems.continuation
        configuration.onStorageProblem = { continuation.yield($0) }
        return Chat(url: url, user: "ann", configuration: configuration) { "token" }
    }

    /// The given number of problems reported to the app.
    private func reported(_ count: Int) async -> [StorageProblem] {
        var all: [StorageProblem] = []
        for await problem in problems.stream {
            all.append(problem)
            if all.count == count { break }
        }
        return all
    }

    @Test("a damaged outbox and a damaged cache are reported, by their new names")
    func setAside() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        for name in ["outbox.sqlite", "cache.sqlite"] {
            try Data(repeating: 7, count: 10_000).write(to: folder.appending(component: name))
        }
        let chat = chat()
        try await chat.connect()
        // The two are opened at the same time.
        let reported = await reported(2).sorted { $0.kind == .outboxSetAside && $1.kind != .outboxSetAside }
        #expect(reported.map(\.kind) == [.outboxSetAside, .cacheSetAside])
        #expect(reported.map(\.file?.lastPathComponent) == ["outbox.sqlite.damaged-1", "cache.sqlite.damaged-1"])
        #expect(reported.allSatisfy { $0.message.contains("not a database") })
        for problem in reported { #expect(try Data(contentsOf: #require(problem.file)).count == 10_000) }
        await chat.disconnect()
    }

    @Test("an outbox of a newer version is reported, and nothing in it is lost")
    func newer() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        do {
            let chat = chat()
            try await chat.channel("general").send("unsent")
            let queue = try DatabaseQueue(path: folder.appending(component: "outbox.sqlite").path)
            try await queue.write { try $0.execute(sql: "INSERT INTO grdb_migrations (identifier) VALUES ('99')") }
        }
        let chat = chat()
        try await chat.connect()
        let reported = await reported(1)
        #expect(reported.map(\.kind) == [.outboxSetAside] && reported[0].message == "It was written by a newer version.")
        let kept = try DatabaseQueue(path: #require(reported[0].file).path)
        #expect(try await kept.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM operations") } == 1)
        await chat.disconnect()
    }

    @Test("a cache that can't be opened is reported, and the client continues without it")
    func notKept() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let file = folder.appending(component: "cache.sqlite")
        try FileManager.default.createDirectory(at: file, withIntermediateDirectories: true)
        let chat = chat()
        try await chat.connect()
        try await chat.channel("general").sendConfirmed("hi")
        let reported = await reported(1)
        #expect(reported.map(\.kind) == [.cacheNotKept] && reported[0].file?.path == file.path)
        await chat.disconnect()
    }

    @Test("a message whose outcome can't be written is reported, and stays in the outbox")
    func notWritten() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat()
        try await chat.connect()
        let file = folder.appending(component: "outbox.sqlite")
        let queue = try DatabaseQueue(path: file.path)
        try await queue.write { database in
            try database.execute(
                sql: "CREATE TRIGGER full BEFORE DELETE ON operations BEGIN SELECT RAISE(ABORT, 'the disk is full'); END")
        }
        try await chat.channel("general").sendConfirmed("hi")
        let reported = await reported(1)
        #expect(reported.map(\.kind) == [.outboxNotWritten] && reported[0].file?.path == file.path)
        #expect(reported[0].message.contains("the disk is full"))
        #expect(try await queue.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM operations") } == 1)
        await chat.disconnect()
    }

    @Test("operations that this version can't read are reported once, hold up nothing, and stay for a version that can")
    @MainActor func unreadable() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let file = folder.appending(component: "outbox.sqlite")
        do {
            let chat = chat()
            try await chat.channel("general").send("unsent")
            let queue = try DatabaseQueue(path: file.path)
            // One of an unknown kind, and one without its required fields.
            try await queue.write { database in
                try database.execute(
                    sql: """
                        INSERT INTO operations (id, number, channel_id, name, created_at, server, operation, is_waiting)
                        VALUES (7, 70, 'general', 'message.sing', 0, 'another', X'7B7D', 0),
                               (8, 71, 'general', 'message.edit', 0, NULL, X'7B7D', 0)
                        """)
            }
        }
        let chat = chat()
        let list = chat.channel("general").messages()
        try await chat.connect()
        try await chat.channel("general").sendConfirmed("hi")
        for await update in list.updates where update.items.filter({ $0.state == .sent }).count == 3 { break }
        #expect(list.items.map(\.text) == ["welcome", "unsent", "hi"])
        for await entries in chat.outbox.updates where entries.isEmpty { break }
        #expect(chat.outbox.count == 0 && !chat.outbox.hasMore && !chat.outbox.isForAnotherServer)
        await chat.disconnect()

        let unsent = await #expect(throws: UnsentOperations.self) { try await chat.logOut() }
        #expect(unsent?.count == 2)
        // Later messages are sent after them.
        try await chat.channel("general").send("later")
        let kept = try await chat.driver.files().outbox.read { database in
            try Row.fetchAll(database, sql: "SELECT name FROM operations ORDER BY number").map { $0[0] as String }
        }
        #expect(kept == ["message.sing", "message.edit", "message.send"])

        problems.continuation.finish()
        var reported: [StorageProblem] = []
        for await problem in problems.stream { reported.append(problem) }
        #expect(reported.map(\.kind) == [.operationsNotRead] && reported.first?.file?.path == file.path)
        #expect(reported.first?.message.contains("message.sing") == true)
    }
}
