import Foundation
import RoostAPI
import Testing

@testable import Roost

/// The state from which the machine continues when the outbox couldn't be written.
@Suite("Outbox: writes that fail")
struct OutboxFailureTests {
    private static let channel = Harness.channel

    private struct SentCall: Decodable {
        var operation: String
    }

    /// Feeds an input, and all that it kept. Returns the operations that are sent.
    private func feed(_ input: Sync.Input, to sync: inout Sync) -> [String] {
        var sent: [String] = []
        var inputs = [input]
        while !inputs.isEmpty {
            for output in sync.handle(inputs.removeFirst()) {
                switch output {
                case .send(let bytes):
                    if let call = try? JSONDecoder().decode(SentCall.self, from: Data(bytes)) { sent.append(call.operation) }
                case .awaitKept(let token, let id, let channel): inputs.append(.kept(token, id, of: channel))
                case .awaitNoted(let id, let channel): inputs.append(.noted(id, of: channel, as: sync.queues[channel]?.items[id]))
                default: break
                }
            }
        }
        return sent
    }

    @Test("a message is sent even if a change of it couldn't be written, and the previous one was answered meanwhile")
    func heldUp() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.send("a", clientId: "c1")
        try await client.send("m", clientId: "c2")
        var saved = try await client.outbox.saved()
        saved.items.removeAll { $0.message?.clientId == "c1" }
        let number = try #require(client.calls.first { $0.value == "message.send" }?.key)
        var sync = client.sync
        let edit = EditMessage(channel: Self.channel, message: MessageID(rawValue: 0), text: "changed")
        _ = sync.handle(.enqueue(.max, .edit(edit, of: "c2"), id: .max, at: Timestamp(milliseconds: 0)))
        let answer = String(decoding: try JSONWriter.bytes(of: message(4, "a", by: "ann", clientId: "c1")), as: UTF8.self)
        let reply = Array(#"{"reply":\#(number),"result":\#(answer)}"#.utf8)
        #expect(feed(.transport(sync.connection, .message(reply)), to: &sync) == [])
        #expect(feed(.outboxFailed(saved, "It is full."), to: &sync) == ["message.send"])
    }

    @Test("an answered message that the stream hasn't delivered yet isn't sent again after a failed write")
    func acknowledged() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.send("a", clientId: "c1")
        try await client.answer("message.send", with: message(4, "a", by: "ann", clientId: "c1"))
        let saved = try await client.outbox.saved()
        #expect(saved.items.map(\.message?.clientId) == ["c1"])
        var sync = client.sync
        let next = SendMessage(channel: Self.channel, clientId: "c2", text: "b")
        _ = sync.handle(.enqueue(.max, .send(next), id: .max, at: Timestamp(milliseconds: 0)))
        #expect(feed(.outboxFailed(saved, "It is full."), to: &sync) == [])
        #expect(sync.acknowledged.count == 1 && sync.queues.isEmpty)
    }

    @Test("operations for another server wait for the app, even if the file couldn't record this one")
    func otherServer() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.feed(.stop)
        client.forgetCalls()
        try await client.enqueue(.hide(HideChannel(channel: Self.channel)))
        let saved = try await client.outbox.saved()
        try await client.connect(server: "other")
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [], hasMore: false))
        var sync = client.sync
        let message = SendMessage(channel: Self.channel, clientId: "c1", text: "a")
        _ = sync.handle(.enqueue(.max, .send(message), id: .max, at: Timestamp(milliseconds: 0)))
        #expect(feed(.outboxFailed(saved, "It is full."), to: &sync) == [])
        #expect(sync.server == "other")
    }

    @Test(
        "AM-45 a channel being read is shown as read after a failed write, and in the server's state when reading ends",
        arguments: ["general", "other"] as [ChannelID])
    func reading(failing: ChannelID) async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.feed(.startReading(7, Self.channel))
        try await client.answer("reading.start", with: UnreadCount(channelId: Self.channel, unreadCount: 0, readSeq: 3))
        #expect(try await client.unread() == 0)
        let saved = try await client.outbox.saved()
        let mute = OutboxOperation.mute(MuteNotifications(channel: failing))
        _ = client.sync.handle(.enqueue(.max, mute, id: .max, at: Timestamp(milliseconds: 0)))
        try await client.feed(.outboxFailed(saved, "It is full."))
        #expect(try await client.unread() == 0)
        try await client.receive(ReadingEndedFrame(readingEnded: .init(channel: Self.channel)))
        #expect(try await client.unread() == 2)
    }

    @Test("R08 operations that couldn't be written, to a file of unknown content, don't hold up later ones")
    func unreadable() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        var sync = client.sync
        func send(_ clientId: ClientID, _ token: CallToken) -> Sync.Input {
            let message = SendMessage(channel: Self.channel, clientId: clientId, text: "a")
            return .enqueue(token, .send(message), id: token, at: Timestamp(milliseconds: 0))
        }
        _ = sync.handle(send("c1", 1_000_001))
        let edit = EditMessage(channel: Self.channel, message: MessageID(rawValue: 0), text: "changed")
        _ = sync.handle(.enqueue(1_000_002, .edit(edit, of: "c1"), id: 1_000_002, at: Timestamp(milliseconds: 0)))
        let outputs = sync.handle(.outboxFailed(nil, "It is gone."))
        let refused = outputs.compactMap { if case .reply(let token, .failure) = $0 { token } else { nil } }
        #expect(refused == [1_000_001, 1_000_002] && sync.queues.isEmpty)
        #expect(feed(send("c2", 1_000_003), to: &sync) == ["message.send"])
    }

    @Test("R08 an operation in the file whose change couldn't be written is still sent if the file can't be read")
    func unreadableChange() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.send("a", clientId: "c1")
        try await client.send("m", clientId: "c2")
        let number = try #require(client.calls.first { $0.value == "message.send" }?.key)
        var sync = client.sync
        let edit = EditMessage(channel: Self.channel, message: MessageID(rawValue: 0), text: "changed")
        _ = sync.handle(.enqueue(.max, .edit(edit, of: "c2"), id: .max, at: Timestamp(milliseconds: 0)))
        _ = sync.handle(.outboxFailed(nil, "It is gone."))
        let answer = String(decoding: try JSONWriter.bytes(of: message(4, "a", by: "ann", clientId: "c1")), as: UTF8.self)
        let reply = Array(#"{"reply":\#(number),"result":\#(answer)}"#.utf8)
        #expect(feed(.transport(sync.connection, .message(reply)), to: &sync) == ["message.send"])
    }
}
