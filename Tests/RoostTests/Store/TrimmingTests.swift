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

    /// 400 messages of two thirds of a kilobyte in each channel, all of them cached, a few of each channel at a time.
    private func fill(_ store: Store) async throws {
        try await store.write(channels.map { .forget($0) })
        for start in stride(from: 1, through: 400, by: 5) as StrideThrough<Seq> {
            for channel in channels {
                let messages = (start..<start + 5).map { seq in
                    Message(
                        messageId: MessageID(rawValue: seq), channelId: channel, seq: seq, changeSeq: seq, sender: "bob",
                        clientId: ClientID("\(seq)"), text: String(repeating: "x", count: 650),
                        createdAt: Timestamp(milliseconds: seq))
                }
                try await store.write([
                    .messages(messages, of: channel),
                    .position(channel, Position(cursor: start + 4, windowStart: 0, messageCount: Int(start) + 4)),
                ])
            }
        }
    }

    private func store(_ url: URL, sizeBytesMax: Int = .max) throws -> Store {
        try Store(
            url: url, user: "ann", sizeBytesMax: sizeBytesMax, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    private func counts(in store: Store) async throws -> [Int] {
        try await store.read { database in
            try Int.fetchAll(database, sql: "SELECT COUNT(*) FROM messages GROUP BY channel_id ORDER BY channel_id")
        }
    }

    @Test("a cache that another client has open isn't trimmed: that client knows what is cached")
    func shared() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let first = try await chat(sizeBytesMax: 256 << 20).driver.prepare().store
        try await fill(first)
        let second = try await chat(sizeBytesMax: 1).driver.prepare().store
        #expect(try await counts(in: second) == [400, 400, 400])
        withExtendedLifetime(first) {}
    }

    @Test(
        "the oldest messages are removed until the cache is small enough, first of channels that were never shown, or longest ago")
    func order() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let url = folder.appending(component: "cache.sqlite")
        do {
            let store = try store(url)
            try await fill(store)
            try await store.noteOpening(of: "a")
            try await store.noteOpening(of: "c")
            try await store.noteOpening(of: "a")
        }
        // Some 340 KB each, of which a quarter stays. The packed file isn't too large again.
        for (sizeBytesMax, kept) in [
            (100 << 20, [400, 400, 400]), (1060 << 10, [400, 100, 400]), (1060 << 10, [400, 100, 400]),
            (800 << 10, [400, 100, 100]),
            (800 << 10, [400, 100, 100]), (1, [100, 100, 100]),
        ] {
            let store = try store(url, sizeBytesMax: sizeBytesMax)
            let counts = try await counts(in: store)
            #expect(counts == kept, "\(sizeBytesMax)")
            let usedBytes = try await store.read { try $0.usedBytes() }
            let fileBytes = try ["", "-wal"].map { ending in
                try URL(filePath: url.path + ending).resourceValues(forKeys: [.fileSizeKey]).fileSize ?? 0
            }
            #expect(sizeBytesMax == 1 || usedBytes <= sizeBytesMax && fileBytes.reduce(0, +) <= sizeBytesMax)
        }
        #expect(try await store(url).savedState().channels["b"] == Position(cursor: 400, windowStart: 301, messageCount: 400))
    }

    @Test("a trimmed cache begins without a hole: removed messages come from the server")
    func reopened() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let name = SyncFiles.folderName(of: "ann", at: URL(filePath: "/"))
        do {
            let cache = folder.appending(component: name).appending(component: "cache.sqlite")
            try await fill(try store(cache))
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
