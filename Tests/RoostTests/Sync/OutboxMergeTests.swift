import RoostAPI
import Testing

@testable import Roost

/// Changes of a message that were made while the server might have it, although it turns out not to.
@Suite("Outbox: changes after a refused message")
struct OutboxMergeTests {
    private static let channel = Harness.channel
    private let silenced = RoostError(.channelMuted, "Silenced.", until: Timestamp(milliseconds: 7_200_000))
    private let key = MessageKey(channel: channel, clientId: "c1")

    private func edit(_ text: String) -> OutboxOperation {
        .edit(EditMessage(channel: Self.channel, message: MessageID(rawValue: 0), text: text), of: "c1")
    }

    private let deletion = OutboxOperation.delete(DeleteMessage(channel: channel, message: MessageID(rawValue: 0)), of: "c1")

    /// A client whose message is in flight.
    private func client() async throws -> Harness {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.send("A", clientId: "c1")
        #expect(client.inFlight == "c1")
        _ = client.take()
        return client
    }

    private func kept(by client: Harness) async throws -> [String?] {
        try await client.outbox.items().map { $0.operation.sent?.text }
    }

    private let discarded = RoostError(.notFound, "The message was discarded.")

    @Test("R08 a message that was deleted in flight isn't published when the silence that refused it ends")
    func deleted() async throws {
        var client = try await client()
        try await client.enqueue(edit("B"))
        try await client.enqueue(deletion)
        try await client.send("next", clientId: "c2")
        try await client.refuse("message.send", with: silenced)
        #expect(try await kept(by: client) == ["next"])
        #expect(client.take().contains(.settled(key, .failure(discarded))))
        // Nothing waits for an end: the next message is tried itself.
        #expect(client.inFlight == "c2" && client.calls.values.sorted() == ["message.send"])
        try await client.refuse("message.send", with: silenced)
        try await client.feed(.timer(.outbox(Self.channel)))
        #expect(client.inFlight == "c2")
    }

    @Test("R08 of the edits of a message in flight that is refused for a while, the last one is sent in the end")
    func edited() async throws {
        var client = try await client()
        try await client.enqueue(edit("B"))
        #expect(try await kept(by: client) == ["A", nil])
        try await client.refuse("message.send", with: silenced)
        #expect(try await kept(by: client) == ["B"])
        try await client.enqueue(edit("C"))
        #expect(try await kept(by: client) == ["C"])
        #expect(try await client.texts() == ["one", "two", "C…"])
        try await client.feed(.timer(.outbox(Self.channel)))
        #expect(client.inFlight == "c1")
        let sent = message(4, "C", by: "ann", clientId: "c1")
        try await client.answer("message.send", with: sent)
        try await client.receive(alone(sent))
        #expect(client.calls.isEmpty)
        #expect(try await kept(by: client) == [])
    }

    /// The client on another server, which doesn't have the message that the former one may have.
    private func moved(_ client: inout Harness) async throws {
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        client.forgetCalls()
        try await connectElsewhere(&client)
    }

    private func connectElsewhere(_ client: inout Harness) async throws {
        try await client.connect(server: "other")
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [], hasMore: false))
    }

    @Test("R08 a message that was deleted in flight to another server isn't published on this one")
    func deletedElsewhere() async throws {
        var client = try await client()
        try await client.enqueue(deletion)
        try await moved(&client)
        _ = client.take()
        try await client.feed(.resolveOthers(discard: false))
        #expect(client.calls.isEmpty)
        #expect(try await kept(by: client) == [])
        #expect(client.take().contains(.settled(key, .failure(discarded))))
    }

    @Test("R08 a change of a message for another server waits with it, and isn't sent to this server")
    func changedElsewhere() async throws {
        for (change, rest) in [(edit("B"), ["B"]), (deletion, [])] as [(OutboxOperation, [String?])] {
            var client = try await client()
            try await moved(&client)
            try await client.enqueue(change)
            #expect(client.calls.isEmpty)
            #expect(try await client.outbox.items().map(\.server) == ["server", "server"])
            try await client.feed(.resolveOthers(discard: false))
            #expect(try await kept(by: client) == rest)
        }
    }

    @Test("R08 changes of a stored message that are left for another server don't affect this server's message with its id")
    func storedElsewhere() async throws {
        let change = EditMessage(channel: Harness.channel, message: MessageID(rawValue: 2), text: "left")
        for left in [
            OutboxOperation.edit(change, of: nil),
            .delete(DeleteMessage(channel: Harness.channel, message: change.message), of: nil),
        ] {
            var client = try await client()
            try await client.feed(.stop)
            client.forgetCalls()
            try await client.enqueue(left)
            try await connectElsewhere(&client)
            #expect(client.calls.isEmpty)
            var again = left
            if case .edit(var edit, let client) = again {
                edit.text = "new"
                again = .edit(edit, of: client)
            }
            try await client.enqueue(again)
            #expect(client.calls.count == 1)
            // Besides the message that was in flight to the former one.
            #expect(try await client.outbox.items().map(\.operation).filter { $0.sent == nil } == [left, again])
        }
    }

    @Test("R08 a message that is sent again on another server has its new content, whatever changes were pending on the former one")
    func sentAgainElsewhere() async throws {
        var client = try await client()
        try await client.enqueue(edit("B"))
        try await client.enqueue(deletion)
        try await moved(&client)
        try await client.feed(.stop)
        client.forgetCalls()
        try await client.send("again", clientId: "c1")
        #expect(try await kept(by: client) == ["again"])
        try await connectElsewhere(&client)
        #expect(client.inFlight == "c1")
        _ = client.take()
        let sent = message(4, "again", by: "ann", clientId: "c1")
        try await client.answer("message.send", with: sent)
        let settled = client.take().compactMap { if case .settled(let key, .success) = $0 { key } else { nil } }
        #expect(settled == [key])
        try await client.receive(alone(sent))
        #expect(client.calls.isEmpty)
        #expect(try await kept(by: client) == [])
    }

    @Test("R08 a deletion that another chat has left for another server doesn't remove the message that this server refuses")
    func leftForAnotherServer() async throws {
        let before = try await client()
        let left = OutboxItem(
            id: -1, number: 1000, operation: deletion, createdAt: Timestamp(milliseconds: 0), server: "former")
        try await before.outbox.apply([.put(left)])
        var client = try await before.restarted()
        try await client.connect()
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [], hasMore: false))
        #expect(client.inFlight == "c1")
        try await client.enqueue(edit("B"))
        try await client.refuse("message.send", with: silenced)
        #expect(try await kept(by: client) == ["B", nil])
        try await client.feed(.timer(.outbox(Self.channel)))
        #expect(client.inFlight == "c1")
    }

    @Test("R08 a message that was deleted in flight and is refused takes the changes after its deletion with it")
    func changedBehindDeletion() async throws {
        var client = try await client()
        try await client.enqueue(edit("B"))
        try await client.enqueue(deletion)
        try await client.enqueue(edit("C"))
        try await client.refuse("message.send", with: RoostError(.notPermitted, "No."))
        #expect(client.calls.isEmpty)
        #expect(try await kept(by: client) == [])
    }

    /// A client whose change of an acknowledged message was refused, and whose message is refused for a while by the server in another history.
    private func refused(_ change: OutboxOperation) async throws -> Harness {
        var client = try await client()
        try await client.answer("message.send", with: message(9, "A", by: "ann", clientId: "c1"))
        try await client.enqueue(change)
        try await client.refuse(type(of: change.operation).name, with: RoostError(.notPermitted, "No."))
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        client.forgetCalls()
        try await client.connect(epoch: "second")
        try await client.answer(
            "stream.resume", with: Resumption(user: changes(user: 1), channels: [fresh()], hasMore: false))
        #expect(client.inFlight == "c1")
        try await client.refuse("message.send", with: silenced)
        return client
    }

    @Test("R08 a refused change isn't applied to a message that another history refuses, unless it is retried")
    func refusedChange() async throws {
        for (change, rest) in [(edit("B"), ["B"]), (deletion, [])] as [(OutboxOperation, [String?])] {
            var client = try await refused(change)
            #expect(try await kept(by: client) == ["A", nil])
            try await client.feed(.timer(.outbox(Self.channel)))
            #expect(client.inFlight == "c1")
            try await client.refuse("message.send", with: RoostError(.notPermitted, "No."))
            #expect(try await kept(by: client) == ["A", nil])
            let item = try #require(try await client.outbox.items().last)
            #expect(item.failure?.code == .notPermitted)
            try await client.feed(.retry(.operation(item.id, of: Self.channel)))
            #expect(client.calls.isEmpty)
            #expect(try await kept(by: client) == rest)
        }
    }

    @Test("R08 an edit of an unsent message doesn't revive a refused one")
    func editedAfterRefusal() async throws {
        var client = try await refused(edit("B"))
        let later = EditMessage(channel: Self.channel, message: MessageID(rawValue: 0), customType: "note")
        try await client.enqueue(.edit(later, of: "c1"))
        let items = try await client.outbox.items()
        #expect(items.map { $0.operation.sent?.content.text } == ["A", nil])
        #expect(items.map { $0.operation.sent?.content.customType } == ["note", nil])
    }

    @Test("R08 an edit of an unsent message is applied after the edits that wait behind it")
    func editedElsewhere() async throws {
        var client = try await client()
        try await client.enqueue(edit("B"))
        try await moved(&client)
        try await client.feed(.stop)
        client.forgetCalls()
        try await client.feed(.resolveOthers(discard: false))
        #expect(try await kept(by: client) == ["A", nil])
        try await client.enqueue(edit("C"))
        #expect(try await kept(by: client) == ["C"])
    }
}
