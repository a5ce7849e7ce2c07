import Foundation
import GRDB
import Logging
import RoostAPI
import Testing

@testable import Roost

@MainActor @Suite("Store: the size of the cache", .timeLimit(.minutes(5)))
struct TrimmingTests {
    private let folder = URL.temporaryDirectory.appending(component: "roost-\(UUID().uuidString)")
    private let channels: [ChannelID] = ["a", "b", "c"]

    private func chat(sizeBytesMax: Int) -> Chat {
        var configuration = Chat.Configuration(
            storage: .directory(folder), cacheSizeBytesMax: sizeBytesMax,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = TinyServer()
        return Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
    }

    /// 400 messages of two thirds of a kilobyte in each channel, all of them cached.
    private func fill(_ store: Store) async throws {
        for channel in channels {
            let messages = (1...400 as ClosedRange<Seq>).map { seq in
                Message(
                    messageId: MessageID(rawValue: seq), channelId: channel, seq: seq, changeSeq: seq, sender: "bob",
                    clientId: ClientID("\(seq)"), text: String(repeating: "x", count: 650), createdAt: Timestamp(milliseconds: seq))
            }
            try await store.write([
                .forget(channel), .messages(messages, of: channel),
                .position(channel, Position(cursor: 400, windowStart: 0, messageCount: 400)),
            ])
        }
    }

    private func counts(in store: Store) async throws -> [Int] {
        try await store.read { database in
            try Int.fetchAll(database, sql: "SELECT COUNT(*) FROM messages GROUP BY channel_id ORDER BY channel_id")
        }
    }

    private func trim(_ store: Store, to sizeBytesMax: Int) async throws {
        try await store.change { try $0.trim(to: sizeBytesMax, .standard) }
    }

    @Test("A cache that another client has open isn't trimmed: it knows what is cached")
    func shared() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let first = try await chat(sizeBytesMax: 256 << 20).driver.prepare().store
        try await fill(first)
        let second = try await chat(sizeBytesMax: 1).driver.prepare().store
        #expect(try await counts(in: second) == [400, 400, 400])
        withExtendedLifetime(first) {}
    }

    @Test("The oldest messages go until the cache is small enough: those of channels first that were never shown, or longest ago")
    func order() async throws {
        let store = try Store(url: nil, user: "ann", logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        try await fill(store)
        try await store.noteOpening(of: "a")
        try await store.noteOpening(of: "c")
        try await store.noteOpening(of: "a")
        try await trim(store, to: 100 << 20)
        #expect(try await counts(in: store) == [400, 400, 400])
        // Some 300 KB each, of which a quarter stays.
        try await trim(store, to: 920 << 10)
        #expect(try await counts(in: store) == [400, 100, 400])
        try await trim(store, to: 700 << 10)
        #expect(try await counts(in: store) == [400, 100, 100])
        try await trim(store, to: 1)
        #expect(try await counts(in: store) == [100, 100, 100])
        #expect(try await store.savedState().channels["b"] == Position(cursor: 400, windowStart: 301, messageCount: 400))
    }

    @Test("A trimmed cache begins without a hole: what was deleted is the server's to give")
    func reopened() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let name = SyncFiles.folderName(of: "ann", at: URL(filePath: "/"))
        do {
            let cache = folder.appending(component: name).appending(component: "cache.sqlite")
            try await fill(try Store(url: cache, user: "ann", logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }))
        }
        let chat = chat(sizeBytesMax: 1)
        let list = chat.channel("b").messages(pageSize: 90)
        try await list.loaded()
        #expect(list.items.first?.message?.seq == 311 && list.hasOlder)
        try await list.loadOlder()
        #expect(list.items.first?.message?.seq == 301 && list.hasOlder)
        await #expect(throws: RoostError(.notConnected, "There is no connection to the server.")) { try await list.loadOlder() }
    }
}
