import GRDB
import Logging
import RoostAPI
import Synchronization
import Testing

@testable import Roost

/// The cost of a change of the outbox, whatever its size.
@Suite("Store: statements of the outbox", .timeLimit(.minutes(5)))
struct OutboxStatementTests {
    /// The executed statements about operations.
    private final class Carried: Sendable {
        private let statements = Mutex<[String]>([])
        func add(_ sql: String) { statements.withLock { if sql.contains("operations") { $0.append(sql) } } }
        func take() -> [String] {
            statements.withLock { statements in
                defer { statements = [] }
                return statements
            }
        }
    }

    private func filled(_ operations: [OutboxOperation]) async throws -> (Outbox, Carried) {
        let outbox = try Outbox(url: nil, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let items = operations.enumerated().map { index, operation in
            let number = Int64(index + 1)
            return OutboxItem(id: number, number: number, operation: operation, createdAt: Timestamp(milliseconds: 0))
        }
        try await outbox.apply(items.map { .put($0) })
        let carried = Carried()
        try await outbox.read { database in
            database.trace { event in if case .statement(let statement) = event { carried.add(statement.sql) } }
        }
        return (outbox, carried)
    }

    /// Each superseded by the next one.
    private let marks = (1...3 as ClosedRange<Seq>).map { OutboxOperation.read(MarkRead(channel: "general", seq: $0)) }

    @Test("a mark that another one replaces is removed by one statement, as obsolete operations are")
    func superseded() async throws {
        let (outbox, carried) = try await filled(marks)
        let written = try await outbox.apply([.change(1, of: "general", to: nil)])
        #expect(carried.take().count == 1 && written.gone.isEmpty)
        try await outbox.apply([.remove(2, of: "general")])
        #expect(carried.take().count == 1)
        #expect(try await outbox.items().map(\.id) == [3])
    }

    @Test(
        "I4 an operation is read once when it is about to be sent, in its state in the file; the first chat sets the time of sending"
    )
    func sending() async throws {
        let (outbox, carried) = try await filled(marks)
        for time in [5, 7] as [Int64] {
            let sending = OutboxWrite.sending(3, of: "general", at: Timestamp(milliseconds: time), to: "server")
            let written = try await outbox.apply([sending])
            #expect(carried.take().count == 2)
            #expect(written.rows[3]?.firstSentAt == Timestamp(milliseconds: 5))
            let stored = try #require(try await outbox.items().last)
            #expect(written.rows[3] == stored)
            _ = carried.take()
        }
        // An operation that one chat has begun to send isn't taken back by another.
        let written = try await outbox.apply([.change(3, of: "general", to: nil)])
        #expect(written.gone == [3] && written.inFlight[3]?.id == 3)
        #expect(try await outbox.count() == 3)
    }

    @Test(
        "SB-04 I4 of several chats, the one that has begun to send a message sends it, until that chat is gone, or the message is refused"
    )
    func begun() async throws {
        let message = OutboxOperation.send(SendMessage(channel: "general", clientId: "c1", text: "hi"))
        let (outbox, _) = try await filled([message])
        let sending = OutboxWrite.sending(1, of: "general", at: Timestamp(milliseconds: 5), to: "server")
        for (chat, isTaken) in [(1, false), (2, true), (1, false)] {
            #expect(try await outbox.apply([sending], by: chat).taken == (isTaken ? [1] : []))
            #expect(outbox.startedByOtherChats(than: chat) == (isTaken ? [1] : []))
        }
        outbox.begun.leave(1)
        #expect(try await outbox.apply([sending], by: 2).taken == [])
        var refused = try #require(try await outbox.items().first)
        refused.failure = RoostError(.notPermitted, "No.")
        try await outbox.apply([.update(refused, content: false)])
        #expect(try await outbox.apply([sending], by: 1).taken == [])
        #expect(outbox.startedByOtherChats(than: 2) == [1])
        try await outbox.apply([.remove(1, of: "general")])
        #expect(outbox.startedByOtherChats(than: 2) == [])
    }

    @Test("SB-58 the changes of a message are removed with it, and found by an index of only them")
    func changes() async throws {
        let message = SendMessage(channel: "general", clientId: "c1", text: "hi")
        let edit = EditMessage(channel: "general", message: MessageID(rawValue: 0), text: "changed")
        let other = SendMessage(channel: "general", clientId: "c2", text: "other")
        let messages: [OutboxOperation] = [.send(message), .edit(edit, of: "c1"), .send(other), .edit(edit, of: "c2")]
        for write in [OutboxWrite.remove(1, of: "general"), .change(1, of: "general", to: nil)] {
            let (outbox, carried) = try await filled(messages + marks)
            try await outbox.apply([write])
            #expect(try await outbox.items().map(\.id) == [3, 4, 5, 6, 7])
            let deletion = try #require(carried.take().first { $0.hasPrefix("DELETE") })
            let plan = try await outbox.read { database in
                try Row.fetchAll(database, sql: "EXPLAIN QUERY PLAN \(deletion)", arguments: [1]).map { $0["detail"] as String }
            }
            #expect(plan.contains { $0.contains("operations_by_changed") }, "\(plan)")
            #expect(plan.allSatisfy { !$0.contains("SCAN") || $0.contains("SCALAR") }, "\(plan)")
            // SQLite refuses an index that lacks rows of a query.
            await #expect(throws: DatabaseError.self) {
                try await outbox.read { database in
                    try Int.fetchOne(
                        database,
                        sql: "SELECT COUNT(*) FROM operations INDEXED BY operations_by_changed WHERE name <> 'message.send'")
                }
            }
        }
    }
}
