import Foundation
import GRDB
import Logging
import RoostAPI
import Testing

@testable import Roost

/// Objects that show the outbox read it again with every change. Each operation is decoded once.
@MainActor @Suite("Store: decoded operations", .timeLimit(.minutes(5)))
struct DecodedOperationTests {
    private typealias Content = DecodedOperations.Content

    /// A chat that is never connected: messages that it is asked to send stay in its outbox.
    private func chat() -> Chat {
        var configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = TinyServer()
        return Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
    }

    private func sending(_ text: String, _ clientId: ClientID = "c1") -> OutboxOperation {
        .send(SendMessage(channel: "general", clientId: clientId, text: text))
    }

    /// The columns from which an operation's row is decoded.
    private func columns(of id: Int64, in outbox: Outbox) async throws -> DecodedOperations.Columns {
        let columns = try await outbox.read { database in
            try Row.fetchOne(
                database, sql: "SELECT name, client_id, operation, failure FROM operations WHERE id = ?", arguments: [id]
            ).map { row in DecodedOperations.Columns(name: row[0], client: row[1], fields: row[2], failure: row[3]) }
        }
        return try #require(columns)
    }

    @Test("a list of messages and the outbox decode an operation once, and again if it has changed since")
    func once() async throws {
        let chat = chat()
        let general = chat.channel("general")
        let list = general.messages()
        let outbox = try await chat.driver.files().outbox
        try await general.send("first")
        try await until { list.items.map(\.text) == ["first"] }
        let item = try #require(try await outbox.items().first)
        let clientId = try #require(item.operation.sent?.clientId)
        let columns = try await columns(of: item.id, in: outbox)
        // Decoding the row again would give other content.
        outbox.decoded.keep(.success(Content(operation: sending("kept", clientId))), of: item.id, columns)
        try await general.send("second")
        try await until { list.items.map(\.text) == ["kept", "second"] }
        #expect(try await outbox.oldest(limit: 300).items.map { $0.operation.sent?.text } == ["kept", "second"])
        #expect(try await outbox.items(of: "general").map { $0.operation.sent?.text } == ["kept", "second"])

        var changed = item
        changed.operation = sending("changed", clientId)
        try await outbox.apply([.put(changed)])
        try await general.send("third")
        try await until { list.items.map(\.text) == ["changed", "second", "third"] }
    }

    @Test("operations are counted if there may be more than were read; otherwise the read ones are all")
    func count() async throws {
        let outbox = try Outbox(url: nil, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        for number in Int64(1)...3 {
            let operation = sending("\(number)", ClientID("c\(number)"))
            let item = OutboxItem(id: number, number: number, operation: operation, createdAt: Timestamp(milliseconds: 0))
            try await outbox.apply([.put(item)])
        }
        for limit in 1...5 {
            let (items, count) = try await outbox.oldest(limit: limit)
            #expect(items.map(\.id) == Array([1, 2, 3].prefix(limit)) && count == 3)
        }
    }

    @Test("decoded operations are dropped with their rows, for another file, and beyond the limit")
    func forgotten() throws {
        let decoded = DecodedOperations()
        let first = SendMessage(channel: "general", clientId: "c1", text: "first")
        let columns = DecodedOperations.Columns(name: SendMessage.name, client: "c1", fields: try StoredJSON.encode(first))
        let kept = Content(operation: sending("kept"))
        func isKept() throws -> Bool { try decoded.content(of: 1, columns) == kept }
        decoded.keep(.success(kept), of: 1, columns)
        decoded.keep(.success(kept), of: 2, columns)
        #expect(try isKept())
        decoded.forget([2])
        #expect(try isKept())
        decoded.forget([1])
        #expect(try !isKept())
        decoded.keep(.success(kept), of: 1, columns)
        decoded.forgetAll()
        #expect(try !isKept())

        var large = columns
        large.fields = Data(count: DecodedOperations.sizeBytesMax)
        decoded.keep(.success(kept), of: 1, columns)
        decoded.keep(.success(kept), of: 2, large)
        #expect(try isKept())
        large.fields = Data(count: DecodedOperations.sizeBytesMax - 1000)
        decoded.keep(.success(kept), of: 2, large)
        #expect(try !isKept())
    }
}
