import RoostAPI
import Testing

@testable import Roost

/// A server that doesn't return what a resume requests.
@Suite("Sync: resuming without an end")
struct EndlessResumeTests {
    @Test("a channel that should be sent again, and never is, ends the connection instead of being requested without a pause")
    func neverFresh() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        for seq: Seq in [4, 5] {
            try await client.receive(sent(message(seq, "secret"), messages: Int(seq) - 1).concealing(messagesUpTo: .max))
        }
        try await client.receive(sent(message(6, "m6"), messages: 5))
        _ = client.take()
        let stale = Resumption(
            user: changes(user: 1), channels: [changes(channel: 6, Rows(counters: counters(6, messages: 5), [message(6, "m6")]))],
            hasMore: false)
        var count = 0
        while client.calls.values.contains("stream.resume"), count < 20 {
            try await client.answer("stream.resume", with: stale)
            count += 1
        }
        #expect(count == 6)
        guard case .waiting(_, let reason) = client.sync.status else { throw Harness.Missing(operation: "a wait") }
        #expect(reason.cause == .server)
    }
}
