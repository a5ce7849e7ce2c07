import Foundation
import GRDB
import Logging
import RoostAPI
import Testing

@testable import Roost

/// An app that goes back to a former version, and to the newer one again: operations for which `send` returned are sent.
@Suite("Store: outboxes of a newer version", .timeLimit(.minutes(5)))
struct NewerOutboxTests {
    private static let url = URL(filePath: "/")
    private let folder = URL.temporaryDirectory.appending(
        components: "roost-\(UUID().uuidString)", SyncFiles.folderName(of: "ann", at: url))
    private let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    private var file: URL { folder.appending(component: "outbox.sqlite") }

    /// Opens the outbox, and closes it after use. If merely released it may be closed only after another file has its name, and take that
    /// file's log along.
    @discardableResult
    private func opened<Value>(_ use: (Outbox) async throws -> Value) async throws -> Value {
        let outbox = try Outbox(url: file, logger: logger)
        let value = try await use(outbox)
        try await outbox.detachFile()
        return value
    }

    private func item(_ id: Int64, _ number: Int64, _ operation: OutboxOperation, sentAt: Int64? = nil) -> OutboxItem {
        OutboxItem(
            id: id, number: number, operation: operation, createdAt: Timestamp(milliseconds: number),
            firstSentAt: sentAt.map(Timestamp.init(milliseconds:)), server: "server")
    }

    private func message(_ text: String) -> OutboxOperation {
        .send(SendMessage(channel: "general", clientId: ClientID(text), text: text))
    }

    /// Puts operations into the outbox, and makes it one of a version with an additional step.
    private func leave(_ items: [OutboxItem], step: String) async throws {
        try await opened { try await $0.apply(items.map { .put($0) } + [.server("server")]) }
        try await steps { try $0.execute(sql: "INSERT INTO grdb_migrations (identifier) VALUES (?)", arguments: [step]) }
    }

    private func steps(in file: URL? = nil, _ change: @escaping @Sendable (Database) throws -> Void) async throws {
        let queue = try DatabaseQueue(path: (file ?? self.file).path)
        try await queue.write(change)
        try queue.close()
    }

    /// Logs a user out whose outbox this is. Any rest of it is free for the next chat afterwards.
    private func logOut(discardingUnsent: Bool = false) async throws {
        let outcome: Result<Void, any Error>
        do {
            let configuration = Chat.Configuration(
                storage: .directory(folder.deletingLastPathComponent()), logger: logger, transport: TinyServer())
            let chat = Chat(url: Self.url, user: "ann", configuration: configuration) { "token" }
            try await chat.logOut(discardingUnsent: discardingUnsent)
            outcome = .success(())
        } catch {
            outcome = .failure(error)
        }
        // The last references go with tasks that are ending.
        try await until {
            guard FileManager.default.fileExists(atPath: folder.path) else { return true }
            guard let lock = try takeLock(of: folder) else { return false }
            close(lock)
            return true
        }
        try outcome.get()
    }

    private func newer() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.contains(".newer-") }
            .filter { !$0.hasSuffix("-wal") && !$0.hasSuffix("-shm") }.sorted()
    }

    /// The version that knows the step: the file that it set aside contains nothing unknown now.
    private func learn(_ step: String, in name: String) async throws {
        try await steps(in: folder.appending(component: name)) {
            try $0.execute(sql: "DELETE FROM grdb_migrations WHERE identifier = ?", arguments: [step])
        }
    }

    @Test(
        "R08 I4 a newer version's operations are taken over by a version that knows it, before later ones, in order and with their keys"
    )
    func takenOver() async throws {
        defer { try? FileManager.default.removeItem(at: folder.deletingLastPathComponent()) }
        let hide = item(7, 20, .hide(HideChannel(channel: "general")), sentAt: 1000)
        var refused = item(8, 21, message("refused"))
        refused.failure = RoostError(.notPermitted, "No.")
        try await leave([hide, refused, item(-9, 22, message("newer"))], step: "98")
        try await opened { try await $0.apply([.put(item(1, 1, message("between"))), .put(item(2, 2, message("after")))]) }
        #expect(try newer() == ["outbox.sqlite.newer-1"])
        // Still unknown, it stays.
        #expect(try await opened { try await $0.items() }.map(\.id) == [1, 2])
        #expect(try newer() == ["outbox.sqlite.newer-1"])

        try await learn("98", in: "outbox.sqlite.newer-1")
        let saved = try await opened { try await $0.saved() }
        #expect(saved.items.map(\.id) == [7, 8, -9, 1, 2] && saved.server == "server")
        #expect(Array(saved.items.prefix(3)) == [hide, refused, item(-9, 22, message("newer"))])
        #expect(saved.items.map(\.operation).suffix(2) == [message("between"), message("after")])
        #expect(saved.items.map(\.number) == saved.items.map(\.number).sorted() && saved.lastNumber == saved.items.last?.number)
        #expect(saved.items[0].key == hide.key && hide.key != nil)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).allSatisfy { !$0.contains(".newer-") })
        // Only once.
        try await opened { try await $0.apply(saved.items.map { .done($0.id, of: $0.channel) }) }
        #expect(try await opened { try await $0.items() } == [])
    }

    @Test("R08 of several files set aside each is taken over, in the order in which they were set aside; a damaged one stays")
    func several() async throws {
        defer { try? FileManager.default.removeItem(at: folder.deletingLastPathComponent()) }
        for number in 1...3 as ClosedRange<Int64> {
            try await leave([item(number, 5, message("\(number)"))], step: "98")
            try await opened { _ in }
        }
        try await opened { try await $0.apply([.put(item(4, 1, message("4")))]) }
        let names = try newer()
        #expect(names == (1...3).map { "outbox.sqlite.newer-\($0)" })
        for name in names { try await learn("98", in: name) }
        let damaged = folder.appending(component: names[1])
        for part in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: damaged.path + part) }
        try Data(repeating: 7, count: 10_000).write(to: damaged)
        #expect(try await opened { try await $0.items() }.map(\.id) == [1, 3, 4])
        #expect(try newer() == [names[1]])
    }

    @Test("R08 a log-out doesn't silently drop what a newer version kept; damaged files are never sent, and don't count")
    func loggedOut() async throws {
        defer { try? FileManager.default.removeItem(at: folder.deletingLastPathComponent()) }
        let isThere = { FileManager.default.fileExists(atPath: folder.path) }
        try await leave([item(1, 1, message("a")), item(2, 2, message("b"))], step: "98")
        try await opened { try await $0.apply([.put(item(3, 3, message("c")))]) }
        await #expect(throws: UnsentOperations(count: 3)) { try await logOut() }
        // A file whose contents this version can't determine.
        try await steps(in: folder.appending(component: try newer()[0])) {
            try $0.execute(sql: "ALTER TABLE operations RENAME TO requests")
        }
        await #expect(throws: UnsentOperations(count: 2)) { try await logOut() }
        try await opened { try await $0.apply([.remove(3, of: "general")]) }
        await #expect(throws: UnsentOperations(count: 1)) { try await logOut() }
        #expect(isThere())
        let damaged = folder.appending(component: try newer()[0])
        for part in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: damaged.path + part) }
        try Data(repeating: 7, count: 10_000).write(to: damaged)
        try await logOut()
        #expect(!isThere())

        try await leave([item(1, 1, message("a"))], step: "98")
        try await logOut(discardingUnsent: true)
        #expect(!isThere())
    }

    @Test("R08 rows that were already taken over before the process ended exist once")
    func endedBetween() async throws {
        defer { try? FileManager.default.removeItem(at: folder.deletingLastPathComponent()) }
        let items = [item(7, 1, message("a")), item(8, 2, message("b"))]
        try await leave(items, step: "98")
        try await opened { try await $0.apply([.put(items[0])]) }
        try await learn("98", in: "outbox.sqlite.newer-1")
        #expect(try await opened { try await $0.items() }.map(\.id).sorted() == [7, 8])
        #expect(try newer() == [])
    }

    @Test(
        "R08 I4 an operation with a field that only a newer version knows isn't sent without it, and stays for a version that knows it"
    )
    func unknownFields() async throws {
        defer { try? FileManager.default.removeItem(at: folder.deletingLastPathComponent()) }
        let full = SendMessage(
            channel: "general", clientId: "full", text: "hi", customType: "note", data: "{}", metadata: ["floor": ["number": 3]],
            tags: ["a"], parentId: MessageID(rawValue: 7), mentionees: [.users(["ben"]), .channel], metaArrays: ["votes": ["yes"]],
            pushOption: .suppress, targetLanguages: ["de"], isSilent: true)
        let mention = SendMessage(channel: "general", clientId: "mention", text: "hi", mentionees: [.channel])
        let preferences = UpdatePreferences(sharesTyping: false)
        let operations: [OutboxOperation] = [
            message("poll"), .send(mention), .hide(HideChannel(channel: "general")), .preferences(preferences), .send(full),
        ]
        let items = operations.enumerated().map { item(Int64($0.offset + 1), Int64($0.offset + 1), $0.element) }
        try await opened { try await $0.apply(items.map { .put($0) }) }
        #expect(try await opened { try await $0.items() } == items)
        let members = [(1, "$.poll"), (2, "$.mentionees[0].team"), (3, "$.until"), (4, "$.sharesMood")]
        try await steps { database in
            for (id, member) in members {
                try database.execute(
                    sql: "UPDATE operations SET operation = CAST(json_set(CAST(operation AS TEXT), ?, 1) AS BLOB) WHERE id = ?",
                    arguments: [member, id])
            }
        }
        try await opened { outbox in
            let (read, count) = (try await outbox.items(), try await outbox.count())
            #expect(read == [items[4]])
            #expect(count == 5)
        }
    }
}
