import RoostAPI
import Testing

@testable import Roost

/// Drafts in the outbox.
@Suite("Outbox: drafts")
struct HeldDraftTests {
    private static let channel = Harness.channel

    private func draft(_ text: String) -> OutboxOperation { .draft(SetDraft(channel: Self.channel, text: text)) }

    private func stored(_ text: String, _ userSeq: Seq) -> ChannelDraft {
        ChannelDraft(channelId: Self.channel, text: text, updatedAt: Timestamp(milliseconds: 0), userSeq: userSeq)
    }

    private func shown(_ client: Harness) async throws -> String? {
        try await client.store.read { try $0.draft(of: Self.channel)?.text }
    }

    @Test("EM-35 typed text is on disk and shown at once, and sent after a pause: only the newest, and messages go before it")
    func typing() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        _ = client.take()
        for text in ["h", "he", "hey"] { try await client.enqueue(draft(text)) }
        #expect(try await shown(client) == "hey")
        #expect(try await client.outbox.items().map(\.operation) == [draft("hey")])
        #expect(client.calls.values.filter { $0 == "draft.set" }.isEmpty)
        let timers = client.take().filter { if case .startTimer(.draft, _) = $0 { true } else { false } }
        #expect(timers == [.startTimer(.draft(Self.channel), .seconds(1))])
        // A message doesn't wait for it.
        try await client.send("first", clientId: "c1")
        #expect(client.inFlight == "c1")
        try await client.receive(sent(message(4, "first", by: "ann", clientId: "c1"), messages: 3))
        try await client.feed(.timer(.draft(Self.channel)))
        #expect(client.calls.values.filter { $0 == "draft.set" }.count == 1)
        // Text typed meanwhile follows, and its deletion at once.
        try await client.enqueue(draft("hey you"))
        try await client.answer("draft.set", with: stored("hey", 2))
        #expect(client.calls.values.filter { $0 == "draft.set" }.isEmpty)
        try await client.enqueue(draft(""))
        #expect(try await shown(client) == nil)
        #expect(client.calls.values.filter { $0 == "draft.set" }.count == 1)
        try await client.answer("draft.set", with: stored("", 3))
        try await client.feed(.timer(.draft(Self.channel)))
        #expect(try await client.outbox.items() == [] && client.calls.values.filter { $0 == "draft.set" }.isEmpty)
    }

    @Test("EM-35 a draft that was waiting when the app ended is sent with the next connection")
    func restart() async throws {
        var before = try await Harness()
        try await before.connectWithChannel()
        try await before.enqueue(draft("hey"))
        var client = try await before.restarted()
        #expect(try await shown(client) == "hey")
        try await client.connect()
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [], hasMore: false))
        #expect(client.calls.values.filter { $0 == "draft.set" }.count == 1)
        try await client.refuse("draft.set", with: RoostError(.notMember, "No."))
        #expect(try await shown(client) == nil)
        // A refused one is replaced by the next.
        try await client.enqueue(draft("again"))
        #expect(try await client.outbox.items().map(\.operation) == [draft("again")])
    }

    @Test("EM-35 the draft of a channel that the user leaves is gone at once, even without a connection")
    func leaving() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.store.write([.rows(Rows([stored("old", 2)]), of: .user(Harness.user))])
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        try await client.enqueue(draft("hey"))
        #expect(try await client.store.read { try $0.drafts().mapValues(\.text) } == [Self.channel: "hey"])
        try await client.enqueue(.leave(LeaveChannel(channel: Self.channel)))
        #expect(try await client.store.read { try $0.drafts() } == [:])
    }

    @Test("EM-35 the newest row stays, whatever arrives late, below pending changes")
    func rows() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        for (text, seq) in [("new", 9), ("old", 8)] as [(String, Seq)] {
            try await client.store.write([.rows(Rows([stored(text, seq)]), of: .user(Harness.user))])
        }
        #expect(try await shown(client) == "new")
        try await client.enqueue(draft("newer"))
        #expect(try await shown(client) == "newer")
        try await client.store.write([.rows(Rows([stored("", 10)]), of: .user(Harness.user))])
        #expect(try await shown(client) == "newer")
    }
}
