import RoostAPI
import Testing

@testable import Roost

extension VisitTests {
    // MARK: Beginning afresh

    /// The answer to a watch of a channel that keeps no messages.
    private static func ephemeral(_ seq: Seq) -> WatchedChannel {
        var state = Self.state(seq, [], count: 0)
        state.channel.isEphemeral = true
        return state
    }

    @Test(
        "ST-01 R39 I3 a watched channel of others that keeps no messages stays as it is shown, after a reconnect and where events are missing"
    )
    func ephemeral() async throws {
        var client = try await Harness()
        try await client.connect()
        try await client.answer("stream.resume", with: Self.nothing)
        try await client.feed(.call(1, WatchChannel(channel: Self.general)))
        try await client.answer("channel.watch", with: Self.ephemeral(3))
        try await client.receive(alone(message(4, "new")))
        #expect(try await client.texts() == ["new"])

        try await reconnect(&client)
        try await client.answer("stream.resume", with: Self.nothing)
        _ = client.take()
        try await client.answer("channel.watch", with: Self.ephemeral(7))
        #expect(told(by: &client) == [.missed(after: [Self.general: 4])])
        #expect(try await client.texts() == ["new"])
        try await client.receive(alone(message(8, "later")))

        try await client.receive(alone(message(10, "lost")))
        _ = client.take()
        try await client.answer("channel.watch", with: Self.ephemeral(10))
        #expect(told(by: &client) == [.missed(after: [Self.general: 8])])
        try await client.receive(alone(message(11, "last")))
        #expect(try await client.texts() == ["new", "later", "last"])
    }
}
