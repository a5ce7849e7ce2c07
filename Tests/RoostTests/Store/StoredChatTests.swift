import Foundation
import GRDB
import Logging
import RoostAPI
import Testing

@testable import Roost

@MainActor @Suite("Store: reading it beside the app", .timeLimit(.minutes(5)))
struct StoredChatTests {
    private let directory = URL.temporaryDirectory.appending(component: "roost-\(UUID().uuidString)")
    private let url = URL(filePath: "/")

    private var folder: URL { directory.appending(component: SyncFiles.folderName(of: "ann", at: url)) }
    private var cache: URL { folder.appending(component: "cache.sqlite") }

    private func chat() -> Chat {
        var configuration = Chat.Configuration(
            storage: .directory(directory), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = TinyServer()
        return Chat(url: url, user: "ann", configuration: configuration) { "token" }
    }

    /// All rows of all tables.
    private func dump() throws -> [String] {
        let queue = try DatabaseQueue(path: cache.path)
        return try queue.read { database in
            try String.fetchAll(database, sql: "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").flatMap {
                table in
                try Row.fetchAll(database, sql: "SELECT * FROM \(table)").map { "\(table) \($0)" }
            }
        }
    }

    @Test("channels, messages and unread counts are read while the app has the files open, and nothing is written")
    func reading() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat()
        try await chat.connect()
        try await chat.channel("general").sendConfirmed("hi")
        let stored = try StoredChat(user: "ann", at: url, in: .directory(directory))
        let before = try dump()
        #expect(try await stored.channels().map(\.id) == ["general"])
        #expect(try await stored.channels(limit: 0).map(\.id) == ["general"])
        #expect(try await stored.channel("general")?.lastMessage?.text == "hi")
        #expect(try await stored.channel("elsewhere") == nil)
        #expect(try await stored.messages(in: "general").map(\.text) == ["welcome", "hi"])
        #expect(try await stored.messages(in: "general", limit: 1).map(\.text) == ["hi"])
        #expect(try await stored.unread() == TotalUnread(unreadCount: 1, unreadChannelCount: 1))
        #expect(try dump() == before)
        // Later messages are in the next answer.
        try await chat.channel("general").sendConfirmed("again")
        #expect(try await stored.messages(in: "general").map(\.text) == ["welcome", "hi", "again"])
        await chat.disconnect()
    }

    @Test(
        "a message is found by its id as in lists: with its sender's name, empty if the user has deleted it for themselves, and not before a reset"
    )
    func messageByID() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat()
        try await chat.connect()
        let store = try await chat.driver.files().store
        try await store.write([.users([UserSummary(userId: "bob", displayName: "Bob")])])
        let stored = try StoredChat(user: "ann", at: url, in: .directory(directory))
        let id = MessageID(rawValue: 1)
        let found = try #require(try await stored.message(id, in: "general"))
        #expect(found.text == "welcome" && found.sender.displayName == "Bob")
        #expect(try await stored.messages(in: "general") == [found])
        #expect(try await stored.message(id, in: "elsewhere") == nil)
        #expect(try await stored.message(MessageID(rawValue: 9), in: "general") == nil)

        var rows = Rows()
        rows.ownDeletions = [OwnDeletion(channelId: "general", seq: 2, deletedAt: Timestamp(milliseconds: 9), userSeq: 2)]
        try await store.write([.rows(rows, of: .user("ann"))])
        let deleted = try #require(try await stored.message(id, in: "general"))
        #expect(deleted.text == "" && deleted.isDeletedForMe)
        #expect(try await stored.messages(in: "general") == [deleted])

        // The server doesn't know of it yet.
        try await chat.channel("general").resetHistory()
        #expect(try await stored.messages(in: "general").isEmpty)
        #expect(try await stored.message(id, in: "general") == nil)
        await chat.disconnect()
    }

    @Test("without the app running it reads the app's last state; queries that it can't answer are refused")
    func alone() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        do {
            let chat = chat()
            try await chat.connect()
            for await update in chat.channels().updates where !update.items.isEmpty { break }
            await chat.disconnect()
        }
        let stored = try StoredChat(user: "ann", at: url, in: .directory(directory))
        #expect(try await stored.messages(in: "general").map(\.text) == ["welcome"])
        // A list has no pages, so these fields don't matter.
        #expect(try await stored.channels(matching: ChannelQuery(limit: 200, cursor: "")).map(\.id) == ["general"])
        let elsewhere = await #expect(throws: RoostError.self) {
            try await stored.channels(matching: ChannelQuery(membership: .all))
        }
        #expect(elsewhere?.code == .invalidArgument && elsewhere?.field == "query")
        let tooMany = await #expect(throws: RoostError.self) { try await stored.channels(matching: ChannelQuery(ids: [])) }
        #expect(tooMany?.field == "ids")
    }

    @Test("deleted or replaced files are no longer read: after logging out, signing in again, and damage")
    func deleted() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let first = chat()
        try await first.connect()
        let stored = try StoredChat(user: "ann", at: url, in: .directory(directory))
        #expect(try await stored.messages(in: "general").map(\.text) == ["welcome"])
        try await first.logOut()
        let gone = await #expect(throws: RoostError.self) { try await stored.messages(in: "general") }
        #expect(gone?.code == .storageGone && gone?.message.contains("was deleted or replaced") == true)

        let second = chat()
        try await second.connect()
        let still = await #expect(throws: RoostError.self) { try await stored.unread() }
        #expect(still == gone)
        let next = try StoredChat(user: "ann", at: url, in: .directory(directory))
        #expect(try await next.messages(in: "general").map(\.text) == ["welcome"])
        // It is set aside.
        #expect(try await second.driver.files().store.recover(from: DatabaseError(resultCode: .SQLITE_CORRUPT)))
        let replaced = await #expect(throws: RoostError.self) { try await next.channels() }
        #expect(replaced == gone)
        await second.disconnect()
    }

    @Test("nothing stored, nothing on disk, a damaged cache, another version's: each is reported, and nothing is changed")
    func unusable() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        func refusal(_ storage: Chat.Storage) -> RoostError? {
            #expect(throws: RoostError.self) { try StoredChat(user: "ann", at: url, in: storage) }
        }
        #expect(refusal(.directory(directory))?.message == "No data of ann is stored on this device.")
        #expect(refusal(.inMemory)?.code == .storageGone)
        #expect(!FileManager.default.fileExists(atPath: directory.path))
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Data(repeating: 7, count: 10_000).write(to: cache)
        #expect(refusal(.directory(directory))?.code == .storageFailed)
        try FileManager.default.removeItem(at: directory)
        do {
            let chat = chat()
            try await chat.connect()
            await chat.disconnect()
        }
        do {
            // The previous chat may still be closing it.
            var configuration = Configuration()
            configuration.busyMode = .timeout(20)
            let queue = try DatabaseQueue(path: cache.path, configuration: configuration)
            try await queue.write { try $0.execute(sql: "UPDATE cache_schema SET sql = 'another'") }
        }
        let another = refusal(.directory(directory))
        #expect(another?.code == .storageGone && another?.message == "The data on this device was stored by another version.")
        #expect(try dump().contains { $0.hasPrefix("channels ") })
    }
}
