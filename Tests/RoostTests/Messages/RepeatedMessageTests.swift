import RoostAPI
import Testing

@testable import Roost

@MainActor @Suite("Messages: repeated ones", .timeLimit(.minutes(5)))
struct RepeatedMessageTests {
    /// Has messages arrive in a channel, and waits until a list has the last of them. Returns the seqs of the list's rows.
    private func seqs(of messages: [Message], isEphemeral: Bool) async throws -> [Seq?] {
        let server = ScriptedServer { _ in .nothing }
        let chat = try await server.connected()
        var joined = channel(counters(3, messages: 0))
        joined.isEphemeral = isEphemeral
        try await server.send(
            Event(
                kind: .memberJoined, stream: .user("ann"), seq: 1, actor: "ann",
                rows: Rows(channel: joined, [membership(readSeq: 3, readCount: 0, channelSeq: 3, userSeq: 1)])))
        let list = chat.channel(Harness.channel).messages()
        try await list.loaded()
        for message in messages { try await server.send(alone(message)) }
        try await until { list.items.last?.message?.seq == messages.last?.seq }
        let ids = list.items.map(\.id)
        #expect(Set(ids).count == ids.count)
        await chat.disconnect()
        return list.items.map { $0.message?.seq }
    }

    @Test("SB-04 a message of an ephemeral channel that was sent twice has one row in a list")
    func ephemeral() async throws {
        let arriving = [
            message(4, "hi", clientId: "c1"), message(5, "hi", clientId: "c1"), message(6, "hi", by: "cat", clientId: "c1"),
            message(7, "more"),
        ]
        // Others may give their messages the same id.
        #expect(try await seqs(of: arriving, isEphemeral: true) == [4, 6, 7])
    }

    @Test("messages of other channels have a row each")
    func stored() async throws {
        let arriving = [message(4, "one"), message(5, "two"), message(6, "three", by: "cat")]
        #expect(try await seqs(of: arriving, isEphemeral: false) == [4, 5, 6])
    }
}
