import RoostAPI
import Testing

@testable import Roost

/// Operations that were requested before this device had met any server.
@Suite("Outbox: before the first server")
struct FirstServerTests {
    private static let channel = Harness.channel

    private func resumed(_ client: inout Harness, server: String, epoch: String) async throws {
        client.forgetCalls()
        try await client.connect(epoch: epoch, server: server)
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [], hasMore: false))
    }

    @Test("R08 operations requested before the first connection are for the first server that is met, even after a restart")
    func stamped() async throws {
        var client = try await Harness()
        try await client.send("a", clientId: "c1")
        try await client.send("b", clientId: "c2")
        try await client.enqueue(.hide(HideChannel(channel: Self.channel)))
        #expect(try await client.outbox.items().map(\.server) == [nil, nil, nil])
        try await resumed(&client, server: "first", epoch: "first")
        #expect(client.inFlight == "c1")
        #expect(try await client.outbox.items().map(\.server) == ["first", "first", "first"])

        client = try await client.restarted()
        try await resumed(&client, server: "second", epoch: "second")
        #expect(client.inFlight == nil && client.calls.isEmpty)
        #expect(try await client.outbox.items().map(\.server) == ["first", "first", "first"])
        try await client.feed(.resolveOthers(discard: false))
        #expect(client.inFlight == "c1")
    }
}
