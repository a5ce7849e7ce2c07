import RoostAPI
import Testing

@testable import Roost

@Suite("Sync: history")
struct HistoryTests {
    /// A client with messages 8 and 9 of a channel that has four more before them.
    private func client() async throws -> Harness {
        var client = try await Harness()
        try await client.connect()
        let page = fresh(
            messages: [message(8, "five"), message(9, "six")], counters: counters(9, messages: 6),
            membership: membership(readSeq: 9, readCount: 6))
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [page], hasMore: false))
        return client
    }

    @Test("a page extends the window backwards, without a hole")
    func page() async throws {
        var client = try await client()
        try await client.feed(.loadMessages(1, Harness.channel, .older(than: .max), limit: 2))
        let older = MessagePage(messages: [message(4, "three"), message(6, "four")], hasOlder: true, hasNewer: true, seq: 9)
        try await client.answer("message.list", with: older)
        #expect(try await client.texts() == ["three", "four", "five", "six"])
        #expect(client.sync.saved.channels == [Harness.channel: Position(cursor: 9, windowStart: 4, messageCount: 6)])
        #expect(client.take().contains(.reply(1, .success([]))))

        try await client.feed(.loadMessages(2, Harness.channel, .older(than: .max), limit: 10))
        let oldest = MessagePage(messages: [message(2, "one"), message(3, "two")], hasOlder: false, hasNewer: true, seq: 9)
        try await client.answer("message.list", with: oldest)
        #expect(client.sync.saved.channels[Harness.channel]?.windowStart == 0)
        try await client.feed(.loadMessages(3, Harness.channel, .older(than: .max), limit: 10))
        #expect(client.calls.isEmpty)
    }

    @Test("the users in a page of messages are stored, and aren't taken for unreadable rows")
    func users() async throws {
        var client = try await client()
        try await client.feed(.loadMessages(1, Harness.channel, .older(than: .max), limit: 2))
        _ = client.take()
        let bob = UserSummary(userId: "bob", displayName: "Bob", version: 1)
        try await client.answer(
            "message.list",
            with: MessagePage(messages: [message(6, "four")], hasOlder: true, hasNewer: true, seq: 9, users: [bob]))
        #expect(client.take().filter(\.isLogged).isEmpty)
        #expect(try await client.texts() == ["four", "five", "six"])
        #expect(try await client.store.read { try $0.summary(of: "bob") } == bob)
    }

    @Test("an unreadable message of a page is left out, and logged")
    func unreadable() async throws {
        var client = try await client()
        try await client.feed(.loadMessages(1, Harness.channel, .older(than: .max), limit: 2))
        _ = client.take()
        let text = String(decoding: try JSONWriter.bytes(of: message(6, "four")), as: UTF8.self)
        let number = try #require(client.calls.first { $0.value == "message.list" }?.key)
        try await client.receive(
            text: #"{"reply":\#(number),"result":{"messages":[{"seq":"5"},\#(text)],"hasOlder":true,"hasNewer":true,"seq":9}}"#)
        #expect(client.take().filter(\.isLogged).count == 1)
        #expect(try await client.texts() == ["four", "five", "six"])
    }

    @Test("a page without a readable message is skipped: the next one before it, or after it, is requested")
    func nothingReadable() async throws {
        var client = try await client()
        func answer(_ seqs: [Seq]) async throws {
            let number = try #require(client.calls.first { $0.value == "message.list" }?.key)
            let messages = seqs.map { #"{"seq":\#($0),"sender":{"of":"a newer version"}}"# }.joined(separator: ",")
            try await client.receive(
                text: #"{"reply":\#(number),"result":{"messages":[\#(messages)],"hasOlder":true,"hasNewer":true,"seq":9}}"#)
            client.forgetCalls()
        }
        try await client.feed(.loadMessages(1, Harness.channel, .older(than: .max), limit: 2))
        try await answer([5, 6])
        #expect(client.sync.saved.channels[Harness.channel]?.windowStart == 5)
        try await client.feed(.loadMessages(2, Harness.channel, .around(1), limit: 2))
        try await answer([1, 2])
        #expect(client.sync.saved.channels[Harness.channel]?.stretches == [1...2])
        try await client.feed(.loadMessages(3, Harness.channel, .newer(than: 2), limit: 1))
        try await answer([3])
        #expect(client.sync.saved.channels[Harness.channel]?.stretches == [1...3])
    }

    @Test("an edit that overtakes the page that holds its message isn't lost")
    func editRacesPage() async throws {
        var client = try await client()
        try await client.feed(.loadMessages(1, Harness.channel, .older(than: .max), limit: 2))
        try await client.receive(edited(message(6, "four, edited", changedAt: 10), messages: 6))
        let older = MessagePage(messages: [message(4, "three"), message(6, "four")], hasOlder: true, hasNewer: true, seq: 9)
        try await client.answer("message.list", with: older)
        #expect(try await client.texts() == ["three", "four, edited", "five", "six"])
    }

    @Test("an edit of a message before the window isn't stored: it would be isolated there")
    func editBeforeWindow() async throws {
        var client = try await client()
        try await client.receive(edited(message(3, "two, edited", changedAt: 10), messages: 6))
        #expect(try await client.texts() == ["five", "six"])
    }

    @Test("a page without a connection fails, and so does one in flight when it is lost")
    func offline() async throws {
        var client = try await client()
        try await client.feed(.loadMessages(1, Harness.channel, .older(than: .max), limit: 2))
        _ = client.take()
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        try await client.feed(.loadMessages(2, Harness.channel, .older(than: .max), limit: 2))
        let failed = client.take().compactMap { output -> CallToken? in
            if case .reply(let token, .failure(let error)) = output, error.code == .notConnected { token } else { nil }
        }
        #expect(failed == [1, 2])
    }
}

extension Sync.Output {
    fileprivate var isLogged: Bool { if case .log = self { true } else { false } }
}
