import Dispatch
import Foundation
import GRDB
import Logging
import RoostAPI
import Testing

@testable import Roost

/// What may happen to an app's files while it isn't running, and while it is.
@MainActor @Suite("Store: bad files", .timeLimit(.minutes(5)))
struct BadFileTests {
    private let directory = URL.temporaryDirectory.appending(component: "roost-\(UUID().uuidString)")
    private let url = URL(filePath: "/")
    private let problems = AsyncStream.makeStream(of: StorageProblem.self)

    private var folder: URL { directory.appending(component: SyncFiles.folderName(of: "ann", at: url)) }
    private var outbox: URL { folder.appending(component: "outbox.sqlite") }

    private func chat() -> Chat {
        let continuation = problems.continuation
        let configuration = Chat.Configuration(
            storage: .directory(directory), onStorageProblem: { continuation.yield($0) },
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, transport: TinyServer())
        return Chat(url: url, user: "ann", configuration: configuration) { "token" }
    }

    /// A device that has been used, and has many unsent messages.
    private func fill() async throws {
        let chat = chat()
        try await chat.connect()
        await chat.disconnect()
        for number in 1...200 { try await chat.channel("general").send("\(number)") }
    }

    /// Changes the file of a database that contains everything written to it, with no other files beside it.
    private func change(_ name: String, _ change: (inout Data) -> Void) throws {
        let file = folder.appending(component: name)
        // The previous chat may still be closing it.
        var configuration = Configuration()
        configuration.busyMode = .timeout(20)
        let queue = try DatabaseQueue(path: file.path, configuration: configuration)
        try queue.writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
        try queue.close()
        for suffix in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: file.path + suffix) }
        var bytes = try Data(contentsOf: file)
        change(&bytes)
        try bytes.write(to: file)
    }

    @Test(
        "a truncated or overwritten cache and outbox are set aside, the app is notified, and the chat works",
        arguments: [(1, 3), (1, 2), (9, 10)])
    func damaged(part: Int, of whole: Int) async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        for isCut in [true, false] {
            try await fill()
            for name in ["outbox.sqlite", "cache.sqlite"] {
                try change(name) { bytes in
                    let count = bytes.count * part / whole
                    if isCut { bytes.removeLast(bytes.count - count) } else { bytes.resetBytes(in: 4096..<max(4097, count)) }
                }
            }
            let chat = chat()
            try await chat.connect()
            try await chat.channel("general").sendConfirmed("hi")
            let list = chat.channel("general").messages()
            for await update in list.updates where update.items.last?.text == "hi" { break }
            var kinds: Set<StorageProblem.Kind> = []
            for await problem in problems.stream {
                kinds.insert(problem.kind)
                if kinds.isSuperset(of: [.outboxSetAside, .cacheSetAside]) { break }
            }
            try await chat.logOut(discardingUnsent: true)
        }
    }

    @Test(
        "damage that only a list meets has the cache replaced, once, and the list's contents return",
        arguments: [true, false])
    func damagedForReaders(isPage: Bool) async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        do {
            let chat = chat()
            try await chat.connect()
            await chat.disconnect()
            let store = try await chat.driver.files().store
            // Messages of another channel follow in the file.
            for (channel, text) in [("general", "needle"), ("later", "hay")] as [(ChannelID, String)] {
                let messages = (3...400 as ClosedRange<Seq>).map { seq in
                    Message(
                        messageId: MessageID(rawValue: seq), channelId: channel, seq: seq, changeSeq: seq, sender: "bob",
                        clientId: ClientID("\(seq)"), text: "\(text) \(seq) " + String(repeating: "x", count: 650),
                        createdAt: Timestamp(milliseconds: seq))
                }
                try await store.write([
                    .messages(messages, of: channel),
                    .position(channel, Position(cursor: 400, windowStart: 0, messageCount: 399)),
                ])
            }
            guard isPage else {
                try await store.change { try $0.execute(sql: "UPDATE messages SET text = 7 WHERE seq = 400") }
                return try await restarted()
            }
        }
        try change("cache.sqlite") { bytes in
            let needle = Data("needle 400 ".utf8)
            while let place = bytes.range(of: needle) {
                let page = place.lowerBound / 4096
                #expect(page > 1 && page < bytes.count / 4096 - 1)
                bytes.resetBytes(in: (page * 4096)..<((page + 1) * 4096))
            }
        }
        try await restarted()
    }

    /// Another start of an app whose list meets damage before the server has answered.
    private func restarted() async throws {
        let chat = chat()
        let list = chat.channel("general").messages()
        for await problem in problems.stream {
            #expect(problem.kind == .cacheSetAside)
            break
        }
        try await chat.connect()
        for await update in list.updates where update.items.map(\.text) == ["welcome"] { break }
        try await until { list.phase == .loaded }

        let store = try await chat.driver.files().store
        try await store.change { try $0.execute(sql: "UPDATE messages SET text = 7") }
        let error = await #expect(throws: RoostError.self) { try await chat.channel("general").messages().loaded() }
        #expect(error?.code == .storageFailed)
        await letOthersRun()
        problems.continuation.finish()
        for await problem in problems.stream { Issue.record("\(problem)") }
        await chat.disconnect()
    }

    @Test(
        "on a full, read-only or broken disk a message is refused with that reason; earlier ones stay, and later ones are kept",
        arguments: DiskFault.allCases)
    func notWritten(fault: DiskFault) async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        try DiskFault.prepare()
        let chat = chat()
        let (general, list) = (chat.channel("general"), chat.channel("general").messages())
        try await general.send("before")
        let failing = try fault.begin(outbox)
        defer { failing.end() }
        for call in [{ _ = try await general.send("no") }, { try await general.hide() }, { try await general.markRead(upTo: 1) }]
            as [@MainActor () async throws -> Void]
        {
            let error = await #expect(throws: RoostError.self) { try await call() }
            #expect(error?.code == .storageFailed && error?.message.contains(fault.words) == true)
        }
        for await problem in problems.stream {
            #expect(problem.kind == .outboxNotWritten && problem.message.contains(fault.words))
            break
        }
        #expect(failing.end() > 0)
        try await general.send("after")
        try await chat.connect()
        for await update in list.updates where update.items.filter({ $0.state == .sent }).count == 3 { break }
        #expect(list.items.map(\.text) == ["welcome", "before", "after"])
        await chat.disconnect()
    }

    @Test(
        "if files are deleted while open, kept messages are sent, new ones aren't kept, and the next start begins with new files",
        arguments: [true, false])
    func deleted(isReplaced: Bool) async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        do {
            let chat = chat()
            try await chat.connect()
            let (general, list) = (chat.channel("general"), chat.channel("general").messages())
            await chat.disconnect()
            try await general.send("kept")
            try FileManager.default.removeItem(at: directory)
            if isReplaced {
                try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
                try Data().write(to: outbox)
            }
            for call in [{ _ = try await general.send("lost") }, { try await general.hide() }]
                as [@MainActor () async throws -> Void]
            {
                let error = await #expect(throws: RoostError.self) { try await call() }
                #expect(error?.code == .storageGone && error?.message.contains("deleted while it was open") == true)
            }
            for await problem in problems.stream {
                #expect(problem.kind == .outboxNotWritten && problem.file == outbox)
                break
            }
            try await chat.connect()
            for await update in list.updates where update.items.last?.state == .sent && update.items.count == 2 { break }
            #expect(list.items.map(\.text) == ["welcome", "kept"])
            await #expect(throws: RoostError.self) { try await general.sendConfirmed("lost") }
            #expect(chat.connection.isOnline)
            await chat.disconnect()
        }
        let chat = chat()
        let list = chat.channel("general").messages()
        try await chat.connect()
        for await update in list.updates where !update.items.isEmpty { break }
        try await chat.channel("general").sendConfirmed("again")
        #expect(FileManager.default.fileExists(atPath: outbox.path))
        await chat.disconnect()
    }

    @Test("two can read at once from a file that was deleted: the connections that read were open before")
    func twoReaders() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let store = try Store(
            url: directory.appending(component: "cache.sqlite"), user: "ann",
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        try FileManager.default.removeItem(at: directory)
        let (hasBegun, hasRead) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        async let first = store.read { database in
            hasBegun.signal()
            // With a limit: the second one may be refused.
            _ = hasRead.wait(timeout: .now() + 10)
            return try database.savedState()
        }
        async let second = store.read { database in
            defer { hasRead.signal() }
            _ = hasBegun.wait(timeout: .now() + 10)
            return try database.savedState()
        }
        #expect(try await [first, second].allSatisfy { $0 == SavedState() })
    }
}
