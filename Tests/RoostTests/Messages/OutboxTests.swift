import Foundation
import Logging
import RoostAPI
import Testing

@testable import Roost

@Suite("Messages: outbox")
struct OutboxTests {
    private func settled(_ outputs: [Sync.Output]) -> [ClientID: RoostError.Code?] {
        var settled: [ClientID: RoostError.Code?] = [:]
        for case .settled(let key, let result) in outputs {
            switch result {
            case .success: settled[key.clientId] = .some(nil)
            case .failure(let error): settled[key.clientId] = error.code
            }
        }
        return settled
    }

    @Test("a message is pending at once, sent once, and leaves the outbox when it is stored")
    func send() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.send("hi", clientId: "c1")
        #expect(try await client.texts() == ["one", "two", "hi…"])
        let stored = message(4, "hi", by: "ann", clientId: "c1")
        try await client.receive(sent(stored, messages: 3))
        #expect(try await client.texts() == ["one", "two", "hi"])
        try await client.answer("message.send", with: stored)
        #expect(settled(client.take()) == ["c1": nil])
        #expect(try await client.outbox.items() == [])
        #expect(try await client.unread() == 2)
    }

    @Test("one message at a time in each channel, in the order of sending (I3)")
    func order() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.send("a", clientId: "c1")
        try await client.send("b", clientId: "c2")
        #expect(client.calls.values.filter { $0 == "message.send" }.count == 1)
        try await client.receive(sent(message(4, "a", by: "ann", clientId: "c1"), messages: 3))
        try await client.answer("message.send", with: message(4, "a", by: "ann", clientId: "c1"))
        #expect(client.inFlight == "c2")
    }

    @Test(
        "a message that was acknowledged in another history of the server is sent again",
        arguments: ["server", "other"])
    func acknowledgedBefore(server: String) async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.send("hi", clientId: "c1")
        try await client.answer("message.send", with: message(9, "hi", by: "ann", clientId: "c1"))
        #expect(try await client.texts() == ["one", "two", "hi…"])
        try await client.feed(.transport(client.sync.connection, .closed(code: 1006, reason: "")))
        client.forgetCalls()
        try await client.connect(epoch: "second", server: server)
        try await client.answer(
            "stream.resume", with: Resumption(user: changes(user: 1), channels: [fresh()], hasMore: false))
        guard server == "server" else {
            // The former server has it.
            #expect(client.inFlight == nil)
            #expect(try await client.outbox.items() == [])
            return
        }
        #expect(client.inFlight == "c1")
        let again = message(4, "hi", by: "ann", clientId: "c1")
        try await client.receive(sent(again, messages: 3))
        try await client.answer("message.send", with: again)
        #expect(try await client.texts() == ["one", "two", "hi"])
        #expect(try await client.outbox.items() == [])
    }

    private func edit(_ text: String, of message: Int64 = 0) -> EditMessage {
        EditMessage(channel: Harness.channel, message: MessageID(rawValue: message), text: text)
    }

    /// A client without a connection, whose message "hi" was acknowledged with the id 9 and edited since; its event hasn't arrived.
    private func edited() async throws -> Harness {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.send("hi", clientId: "c1")
        try await client.answer("message.send", with: message(9, "hi", by: "ann", clientId: "c1"))
        try await client.feed(.transport(client.sync.connection, .closed(code: 1006, reason: "")))
        client.forgetCalls()
        try await client.enqueue(.edit(edit("ho"), of: "c1"))
        return client
    }

    /// Connects to another history of the server, in which "hi" is sent again, and has the id 4.
    private func sendAgain(_ client: inout Harness) async throws {
        try await client.connect(epoch: "second")
        try await client.answer(
            "stream.resume", with: Resumption(user: changes(user: 1), channels: [fresh()], hasMore: false))
        #expect(client.inFlight == "c1")
        let again = message(4, "hi", by: "ann", clientId: "c1")
        try await client.receive(sent(again, messages: 3))
        try await client.answer("message.send", with: again)
    }

    @Test("SB-58 I20 a change of a message that is sent again in another history follows it, by its id there")
    func changedBefore() async throws {
        var client = try await edited()
        try await sendAgain(&client)
        #expect(client.calls.values.contains("message.edit"))
        #expect(try await client.outbox.items().map(\.operation) == [.edit(edit("ho", of: 4))])
    }

    @Test(
        "SB-58 I20 a change still follows a message that is sent again in another history if the files were reread before",
        arguments: ["reopened", "reopened twice", "storeFailed"])
    func changedBeforeReading(occasion: String) async throws {
        var client = try await edited()
        if occasion == "storeFailed" {
            try await client.feed(.storeFailed(client.sync.saved, try await client.outbox.saved(), "disk full"))
        } else {
            try await client.feed(.stop)
            for _ in 0..<(occasion == "reopened" ? 1 : 2) {
                let (saved, outbox) = (try await client.store.savedState(), try await client.outbox.saved())
                try await client.feed(.reopened(saved, outbox))
            }
        }
        try await sendAgain(&client)
        #expect(client.calls.values.contains("message.edit"))
        #expect(try await client.outbox.items().map(\.operation) == [.edit(edit("ho", of: 4))])
    }

    @Test("SB-58 I20 a refused change of a message that is sent again in another history is retried by its id there")
    func refusedBefore() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.send("hi", clientId: "c1")
        try await client.answer("message.send", with: message(9, "hi", by: "ann", clientId: "c1"))
        try await client.enqueue(.edit(edit("ho"), of: "c1"))
        try await client.refuse("message.edit", with: RoostError(.mentionLimit, "Too many."))
        try await client.feed(.transport(client.sync.connection, .closed(code: 1006, reason: "")))
        client.forgetCalls()
        try await sendAgain(&client)
        // It wasn't requested since.
        #expect(client.calls.isEmpty)
        let refused = try #require(try await client.outbox.items().first)
        #expect(refused.operation == .edit(edit("ho", of: 4)))
        #expect(refused.failure?.code == .mentionLimit)
        try await client.feed(.retry(.operation(refused.id, of: Harness.channel)))
        #expect(client.calls.values.contains("message.edit"))
    }

    @Test("SB-58 I20 a change of a message that the restored server doesn't have is refused with the reason, and holds up nothing")
    func changeOfGoneMessage() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.feed(.transport(client.sync.connection, .closed(code: 1006, reason: "")))
        let edit = EditMessage(channel: Harness.channel, message: MessageID(rawValue: 3), text: "zwei")
        try await client.enqueue(.edit(edit))
        try await client.send("next", clientId: "c1")
        try await client.connect(epoch: "second")
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [], hasMore: false))
        try await client.refuse("message.edit", with: RoostError(.notFound, "There is no such message.", field: "message"))
        #expect(client.inFlight == "c1")
        #expect(try await client.outbox.items().map(\.failure?.code) == [.notFound, nil])
        #expect(try await client.store.read { try $0.overlays() } == [:])
    }

    @Test("I20 a place of a former history isn't sent even if the cache has the new one already, or another chat has left it")
    func placesOfFormerHistory() async throws {
        var before = try await Harness()
        try await before.connectWithChannel()
        try await before.feed(.stop)
        try await before.enqueue(.read(MarkRead(channel: Harness.channel)))
        try await before.enqueue(.reset(ResetHistory(channel: Harness.channel)))
        #expect(try await before.outbox.count() == 2)
        // Another chat of the same files has met it, or the process ended between the two files.
        try await before.store.write([.erase(epoch: "second")])
        var client = try await before.restarted()
        #expect(client.sync.saved.epoch == "second")
        try await client.connect(epoch: "second")
        try await client.answer(
            "stream.resume", with: Resumption(user: changes(user: 1), channels: [fresh()], hasMore: false))
        #expect(client.calls.isEmpty)
        #expect(try await client.outbox.items() == [])

        // A chat that hasn't learnt of it.
        let left = OutboxItem(
            id: -1, number: 1000, operation: .reset(ResetHistory(channel: Harness.channel, upTo: 3)),
            createdAt: Timestamp(milliseconds: 0), server: "server", epoch: "first")
        try await client.outbox.apply([.put(left)])
        try await client.feed(.left(try await client.outbox.saved()))
        #expect(client.calls.isEmpty)
        #expect(try await client.outbox.items() == [])
        #expect(try await client.texts() == ["one", "two"])
    }

    @Test("a lost connection sends the message again with the same client id; the list shows it once (I4)")
    func retryAfterLoss() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.send("hi", clientId: "c1")
        try await client.feed(.transport(client.sync.connection, .closed(code: 1006, reason: "")))
        #expect(try await client.texts() == ["one", "two", "hi…"])
        try await client.connect()
        // The server had stored it: the resume returns it before it is sent again.
        let missed = Rows(
            counters: counters(4, messages: 3), [message(4, "hi", by: "ann", clientId: "c1")],
            [membership(readSeq: 1, readCount: 1, channelSeq: 4)])
        try await client.answer(
            "stream.resume", with: Resumption(user: changes(user: 1), channels: [changes(channel: 4, missed)], hasMore: false))
        #expect(try await client.texts() == ["one", "two", "hi"])
        #expect(try await client.unread() == 2)
        #expect(try await client.outbox.items() == [])
    }

    @Test("a final refusal marks the message and lets the next one go; it can be retried or given up")
    func refusal() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.send("bad", clientId: "c1")
        try await client.send("good", clientId: "c2")
        try await client.refuse("message.send", with: RoostError(.notPermitted, "No."))
        #expect(settled(client.take()) == ["c1": .notPermitted])
        #expect(client.inFlight == "c2")
        #expect(try await client.outbox.items().map(\.failure?.code) == [.notPermitted, nil])

        let stored = message(4, "good", by: "ann", clientId: "c2")
        try await client.receive(sent(stored, messages: 3))
        try await client.answer("message.send", with: stored)
        let key = MessageKey(channel: Harness.channel, clientId: "c1")
        try await client.feed(.retry(.message(key)))
        #expect(client.inFlight == "c1")
        try await client.feed(.discard(.message(key)))
        #expect(try await client.outbox.items() == [])
    }

    @Test("SB-35 a message that was refused is sent with its new content, if it is sent again under its client id")
    func corrected() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.send("bad", clientId: "c1")
        try await client.refuse("message.send", with: RoostError(.mentionLimit, "Too many."))
        try await client.send("good", clientId: "c1")
        #expect(client.inFlight == "c1")
        #expect(try await client.outbox.items().map(\.operation.sent?.content.text) == ["good"])
        #expect(try await client.outbox.items().map(\.failure?.code) == [nil])
        // One in flight, which the server may have, stays as it is.
        try await client.send("better", clientId: "c1")
        #expect(try await client.outbox.items().map(\.operation.sent?.content.text) == ["good"])
    }

    @Test("after a temporary refusal the client waits as long as the server says")
    func overload() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.send("hi", clientId: "c1")
        _ = client.take()
        try await client.refuse("message.send", with: RoostError(.overloaded, "Busy.", retryAfterMilliseconds: 1500))
        #expect(client.take().contains(.startTimer(.outbox(Harness.channel), .milliseconds(1500))))
        try await client.feed(.timer(.outbox(Harness.channel)))
        #expect(client.calls.values.contains("message.send"))
    }

    @Test("after an unreadable answer the message is sent again, and after eight of them it is refused")
    func unreadableAnswer() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.send("hi", clientId: "c1")
        for attempt in 1...8 {
            #expect(try await client.outbox.items().map(\.failure?.code) == [nil])
            try await client.answer("message.send", with: 7)
            if attempt < 8 { try await client.feed(.timer(.outbox(Harness.channel))) }
        }
        #expect(try await client.outbox.items().map(\.failure?.code) == [.internalError])
        #expect(settled(client.take()) == ["c1": .internalError])
        #expect(client.sync.phase == .online)
    }

    @Test("messages written before the process died are sent after the restart, in order (I1)")
    func restart() async throws {
        var before = try await Harness()
        try await before.connectWithChannel()
        try await before.feed(.stop)
        try await before.send("a", clientId: "c1")
        try await before.send("b", clientId: "c2")
        var client = try await before.restarted()
        #expect(try await client.texts() == ["one", "two", "a…", "b…"])
        try await client.connect()
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [], hasMore: false))
        #expect(client.inFlight == "c1")
    }

    @Test("a crash between the store and the outbox neither loses nor doubles the message")
    func crashBetweenFiles() async throws {
        var before = try await Harness()
        try await before.connectWithChannel()
        try await before.feed(.stop)
        try await before.send("hi", clientId: "c1")
        let stored = message(4, "hi", by: "ann", clientId: "c1")
        try await before.store.write([
            .messages([stored], of: stored.channelId), .count(stored.channelId, Rows([stored])),
            .position(Harness.channel, Position(cursor: 4, windowStart: 0, messageCount: 3)),
        ])

        var client = try await before.restarted()
        #expect(try await client.texts() == ["one", "two", "hi"])
        try await client.connect()
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [], hasMore: false))
        try await client.answer("message.send", with: stored)
        #expect(try await client.texts() == ["one", "two", "hi"])
        #expect(try await client.outbox.items() == [])
    }

    @Test("an answer that overtakes its event leaves the message pending until the stream delivers it (I6)")
    func replyBeforeEvent() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.send("hi", clientId: "c1")
        let stored = message(5, "hi", by: "ann", clientId: "c1")
        try await client.answer("message.send", with: stored)
        #expect(try await client.texts() == ["one", "two", "hi…"])
        try await client.receive(sent(message(4, "three"), messages: 3))
        try await client.receive(sent(stored, messages: 4))
        #expect(try await client.texts() == ["one", "two", "three", "hi"])
        #expect(try await client.outbox.items() == [])
        #expect(try await client.unread() == 3)
    }

    @MainActor
    @Test("an id that no channel can have is refused at once, with its field")
    func impossibleChannel() async throws {
        let configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, transport: TinyServer())
        let chat = Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
        let (channel, message) = (chat.channel(""), MessageID(rawValue: 1))
        let calls: [() async throws -> Void] = [
            { try await channel.hide() },
            { try await channel.unhide() },
            { try await channel.muteNotifications() },
            { try await channel.unmuteNotifications() },
            { try await channel.leave() },
            { try await channel.delete(message) },
            { try await channel.delete([message]) },
            { try await channel.purge(message) },
            { try await channel.undelete(message) },
            { try await channel.resetHistory() },
        ]
        for call in calls {
            let error = await #expect(throws: RoostError.self) { try await call() }
            #expect(error?.code == .invalidArgument && error?.field == "channel")
        }
        let outbox = chat.outbox
        try await outbox.loaded()
        #expect(outbox.count == 0)
        try await chat.logOut()
    }
}
