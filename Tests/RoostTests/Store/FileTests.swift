import Foundation
import GRDB
import Logging
import RoostAPI
import Testing

@testable import Roost

@Suite("Store: files", .timeLimit(.minutes(5)))
struct FileTests {
    private let folder = URL.temporaryDirectory.appending(component: "roost-\(UUID().uuidString)")
    private let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    @Test("a damaged cache and a damaged outbox are set aside and replaced")
    func damaged() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let cache = folder.appending(component: "cache.sqlite")
        let outbox = folder.appending(component: "outbox.sqlite")
        for file in [cache, outbox] { try Data(repeating: 7, count: 10_000).write(to: file) }
        let state = try await Store(url: cache, user: "ann", logger: logger).savedState()
        let items = try await Outbox(url: outbox, logger: logger).items()
        #expect(state == SavedState())
        #expect(items == [])
        #expect(FileManager.default.fileExists(atPath: cache.path + ".damaged-1"))
        #expect(FileManager.default.fileExists(atPath: outbox.path + ".damaged-1"))
    }

    @Test("of damaged caches the last one is kept, of damaged outboxes all")
    func damagedAgain() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let cache = folder.appending(component: "cache.sqlite")
        let outbox = folder.appending(component: "outbox.sqlite")
        for number in 1...3 as ClosedRange<UInt8> {
            for file in [cache, outbox] { try Data(repeating: number, count: 10_000).write(to: file) }
            for file in [cache, outbox] { try Data().write(to: URL(filePath: file.path + "-wal")) }
            let (store, operations) = try (Store(url: cache, user: "ann", logger: logger), Outbox(url: outbox, logger: logger))
            _ = try await (store.savedState(), operations.items())
            // A connection that is merely released may be closed only after the next bytes were written, and overwrite them.
            try await store.detachFile()
            try await operations.detachFile()
        }
        let damaged = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.contains(".damaged-") }
        func first(_ name: String) throws -> [UInt8?] {
            try damaged.filter { $0.hasPrefix(name) && !$0.hasSuffix("-wal") && !$0.hasSuffix("-shm") }.sorted().map {
                try Data(contentsOf: folder.appending(component: $0)).first
            }
        }
        #expect(try first("cache") == [3] && first("outbox") == [1, 2, 3])
        #expect(damaged.filter { $0.hasPrefix("cache") && $0.hasSuffix("-wal") }.count <= 1)
    }

    @Test(
        "chats that open the outbox at the same moment share it, whether there was none or a damaged one, which is set aside once",
        arguments: [false, true])
    func openedAtOnce(isDamaged: Bool) async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let operation = OutboxOperation.send(SendMessage(channel: "general", clientId: "c1", text: "one"))
        let item = OutboxItem(id: 1, number: 1, operation: operation, createdAt: Timestamp(milliseconds: 5))
        for round in 1...20 {
            let place = folder.appending(component: "\(round)", directoryHint: .isDirectory)
            try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
            let file = place.appending(component: "outbox.sqlite")
            if isDamaged { try Data(repeating: 7, count: 10_000).write(to: file) }
            let outboxes = try await openAtOnce(file)
            try await outboxes.first?.apply([.put(item)])
            for outbox in outboxes {
                let items = try await outbox.items()
                #expect(items == [item])
            }
            for outbox in outboxes { try await outbox.detachFile() }
            let damaged = try FileManager.default.contentsOfDirectory(atPath: place.path)
                .filter { $0.contains(".damaged-") && !$0.hasSuffix("-wal") && !$0.hasSuffix("-shm") }
            #expect(damaged == (isDamaged ? ["outbox.sqlite.damaged-1"] : []))
        }
    }

    /// Opens an outbox four times, each on its own thread.
    private func openAtOnce(_ file: URL) async throws -> [Outbox] {
        let logger = logger
        return try await withThrowingTaskGroup(of: Outbox.self) { group in
            for _ in 0..<4 {
                group.addTask { try await Blocking.perform { try Outbox(url: file, logger: logger) } }
            }
            var outboxes: [Outbox] = []
            for try await outbox in group { outboxes.append(outbox) }
            return outboxes
        }
    }

    @Test("the outbox of the previous version keeps its messages, in order, with their refusals; they may have been sent")
    func formerOutbox() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let file = folder.appending(component: "outbox.sqlite")
        let operations = ["a", "b"].map { SendMessage(channel: "general", clientId: ClientID($0), text: "text \($0)") }
        let refusal = RoostError(.notPermitted, "No.")
        do {
            let queue = try DatabaseQueue(path: file.path)
            var former = DatabaseMigrator()
            former.registerMigration("1") { database in
                try database.execute(
                    sql: """
                        CREATE TABLE outbox (
                            number INTEGER PRIMARY KEY AUTOINCREMENT, channel_id TEXT NOT NULL, client_id TEXT NOT NULL,
                            created_at INTEGER NOT NULL, operation BLOB NOT NULL, failure BLOB, UNIQUE (channel_id, client_id)
                        );
                        """)
            }
            try former.migrate(queue)
            try await queue.write { database in
                for (number, operation) in operations.enumerated() {
                    try database.execute(
                        sql: "INSERT INTO outbox (channel_id, client_id, created_at, operation, failure) VALUES (?, ?, ?, ?, ?)",
                        arguments: [
                            "general", operation.clientId.rawValue, 5 + number, try StoredJSON.encode(operation),
                            number == 0 ? try StoredJSON.encode(refusal) : nil,
                        ])
                }
            }
            try queue.close()
        }
        let items = try await Outbox(url: file, logger: logger).items()
        #expect(items.map(\.operation) == operations.map { .send($0) })
        #expect(items.map(\.failure) == [refusal, nil])
        #expect(items.map(\.createdAt.milliseconds) == [5, 6] && items.allSatisfy { $0.firstSentAt == $0.createdAt })
    }

    @Test("R08 in a file that was deleted while open, an operation is taken back whatever its row says of its being sent")
    func takenBackAfterDeletion() async throws {
        let outbox = try Outbox(url: folder.appending(component: "outbox.sqlite"), logger: logger)
        let operation = OutboxOperation.send(SendMessage(channel: "general", clientId: "c1", text: "one"))
        let time = Timestamp(milliseconds: 5)
        let sent = OutboxItem(id: 1, number: 1, operation: operation, createdAt: time, firstSentAt: time)
        try await outbox.apply([.put(sent)])
        // Another chat may have sent it.
        #expect(try await outbox.apply([.change(1, of: "general", to: nil)]).gone == [1])
        #expect(try await outbox.items().map(\.id) == [1])
        try FileManager.default.removeItem(at: folder)
        #expect(try await outbox.apply([.change(1, of: "general", to: nil)]).gone == [])
        #expect(try await outbox.items().isEmpty)
        await #expect(throws: Outbox.Deleted.self) { try await outbox.apply([.put(sent)]) }
    }

    @Test("a cache of a newer version is set aside")
    func newer() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let cache = folder.appending(component: "cache.sqlite")
        do {
            let store = try Store(url: cache, user: "ann", logger: logger)
            try await store.write([.erase(epoch: "first"), .userPosition(5)])
            try await store.detachFile()
            let queue = try DatabaseQueue(path: cache.path)
            try await queue.write { try $0.execute(sql: "INSERT INTO grdb_migrations (identifier) VALUES ('99')") }
            try queue.close()
        }
        #expect(try await Store(url: cache, user: "ann", logger: logger).savedState() == SavedState())
    }

    @Test("a cache of an older schema is dropped, and the client starts over")
    func older() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let cache = folder.appending(component: "cache.sqlite")
        do {
            let queue = try DatabaseQueue(path: cache.path)
            try await queue.write { database in
                try database.execute(
                    sql: """
                        CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY);
                        INSERT INTO grdb_migrations (identifier) VALUES ('1');
                        CREATE TABLE state (id INTEGER PRIMARY KEY, epoch TEXT, user_cursor INTEGER NOT NULL);
                        INSERT INTO state (id, epoch, user_cursor) VALUES (1, 'first', 7);
                        CREATE TABLE channels (channel_id TEXT PRIMARY KEY NOT NULL, json BLOB NOT NULL);
                        INSERT INTO channels (channel_id, json) VALUES ('general', '{}');
                        """)
            }
        }
        let store = try Store(url: cache, user: "ann", logger: logger)
        #expect(try await store.savedState() == SavedState())
        try await store.write(RandomChannels.member(of: "general", at: 1))
        #expect(try await store.read { try ChannelQuery().places(in: $0).map(\.id) } == ["general"])
    }

    @Test(
        "a cache of a version with other permissions, keys of names, fields of models kept as JSON, or values is dropped, and the client starts over",
        arguments: [
            ("reading.mark", "read.mark"), ("\n-- Keys of names: \(NameKey.version)", ""), ("sharesDelivery", ""),
            ("announcesJoins", ""), ("membersOnly", ""), ("withdrawn", ""), ("hiddenPreventAutoUnhide", ""),
        ])
    func otherSchema(text: String, former: String) async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let cache = folder.appending(component: "cache.sqlite")
        do {
            let store = try Store(url: cache, user: "ann", logger: logger)
            try await store.write([.erase(epoch: "first"), .userPosition(5)])
        }
        #expect(try await Store(url: cache, user: "ann", logger: logger).savedState().userCursor == 5)
        do {
            let queue = try DatabaseQueue(path: cache.path)
            try await queue.write {
                try $0.execute(sql: "UPDATE cache_schema SET sql = replace(sql, ?, ?)", arguments: [text, former])
            }
        }
        #expect(try await Store(url: cache, user: "ann", logger: logger).savedState() == SavedState())
    }

    @Test("the outbox reaches the disk before it answers; every user and server has a folder of their own")
    func durability() async throws {
        let names = [
            ("ann", "https://a.example"), ("Ann", "https://a.example"), ("ann", "https://b.example"),
            ("ann", "https://a.example:8443"),
        ]
        .compactMap { user, url in URL(string: url).map { SyncFiles.folderName(of: UserID(user), at: $0).lowercased() } }
        #expect(Set(names).count == 4)
        // Several servers of one host have their own paths. Without a path, or with the usual one, a folder has its usual name.
        let paths = ["", "/", "/v1/socket", "/a/v1/socket", "/b/v1/socket"].compactMap { path in
            URL(string: "https://a.example\(path)").map { SyncFiles.folderName(of: "ann", at: $0) }
        }
        #expect(Set(paths).count == 3 && Set(paths.prefix(3)) == ["ann-8fed2f5e76728575"])
        // A server that gets a certificate keeps its folder, with the outbox.
        let schemes = ["http", "https", "ws", "wss"].compactMap { scheme in
            URL(string: "\(scheme)://a.example:8080").map { SyncFiles.folderName(of: "ann", at: $0) }
        }
        #expect(schemes.count == 4 && Set(schemes).count == 1)
        #expect(try await Outbox(url: nil, logger: logger).synchronous() == 2)
    }
}

extension Outbox {
    /// How SQLite commits, in its own terms: 2 is FULL.
    fileprivate func synchronous() async throws -> Int? {
        try await read { try Int.fetchOne($0, sql: "PRAGMA synchronous") }
    }
}
