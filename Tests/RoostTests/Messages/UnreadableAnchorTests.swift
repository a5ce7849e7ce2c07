import Foundation
import RoostAPI
import Testing

@testable import Roost

/// A list opened at messages of a newer server that this version can't read.
@MainActor @Suite("Messages: places that can't be read", .timeLimit(.minutes(5)))
struct UnreadableAnchorTests {
    /// A page around message 40, of which some can't be read.
    private struct Page: Encodable, Sendable {
        private enum CodingKeys: String, CodingKey { case messages, hasOlder, hasNewer, seq }

        /// The messages with these seqs.
        var unreadable: Set<Seq>

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(true, forKey: .hasOlder)
            try container.encode(true, forKey: .hasNewer)
            try container.encode(99, forKey: .seq)
            var messages = container.nestedUnkeyedContainer(forKey: .messages)
            for seq: Seq in 39...42 {
                if unreadable.contains(seq) {
                    try messages.encode(["seq": seq])
                } else {
                    try messages.encode(message(seq, "m\(seq)"))
                }
            }
        }
    }

    /// A chat in a channel with message 99, and pages around 40.
    private func chat(_ server: ScriptedServer) async throws -> Chat {
        let chat = try await server.connected()
        let own = membership(readSeq: 99, readCount: 98, channelSeq: 99, userSeq: 1)
        try await server.send(
            Event(
                kind: .memberJoined, stream: .user("ann"), seq: 1, actor: "ann",
                rows: Rows(channel: channel(counters(99, messages: 98)), [message(99, "m99")], [own])))
        let store = try await chat.driver.files().store
        try await until { try await store.savedState().channels[Harness.channel]?.cursor == 99 }
        return chat
    }

    private func server(unreadable: Set<Seq>) -> ScriptedServer {
        ScriptedServer { $0.operation == "message.list" ? .result(Page(unreadable: unreadable)) : .nothing }
    }

    private func askedCount(_ server: ScriptedServer) async -> Int { await server.operations().count { $0 == "message.list" } }

    @Test("SB-56 R08 a message that this version can't read is reported as not found, and the list continues from there")
    func unreadable() async throws {
        let server = server(unreadable: [40])
        let chat = try await chat(server)
        let list = chat.channel(Harness.channel).messages(around: .message(MessageID(rawValue: 40)), pageSize: 1)
        let error = await #expect(throws: RoostError.self) { try await list.loaded() }
        #expect(error?.code == .notFound && list.phase.error == error)
        // One more than necessary, as the channel may have been fetched again meanwhile, and not one for each change.
        let count = await askedCount(server)
        #expect(count == 2)
        try await server.send(alone(message(100, "m100")))
        try await until { try await chat.driver.files().store.savedState().channels[Harness.channel]?.cursor == 100 }
        await letOthersRun()
        #expect(await askedCount(server) == count && list.phase.error == error)
        await list.showNewest()
        #expect(list.phase == .loaded && list.items.map(\.text) == ["m100"] && list.anchorItem == nil)
        await chat.disconnect()
    }

    @Test(
        "SB-55 R08 a list at a time skips messages that this version can't read",
        arguments: [([39], "m40"), ([39, 40, 41], "m42"), ([39, 40, 41, 42], "m99")] as [(Set<Seq>, String)])
    func time(unreadable: Set<Seq>, first: String) async throws {
        let server = server(unreadable: unreadable)
        let chat = try await chat(server)
        let list = chat.channel(Harness.channel).messages(around: .time(Timestamp(milliseconds: 40)), pageSize: 1)
        try await list.loaded()
        #expect(list.items.map(\.text) == [first] && list.anchorItem == list.items.first?.id)
        await chat.disconnect()
    }

    @Test("R08 a page that is ahead of the channel's events doesn't show its end: it is requested again")
    func ahead() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        let newer = MessagePage(
            messages: [message(3, "two"), message(4, "three")], hasOlder: true, hasNewer: false, seq: 4)
        let loads: [MessageLoad] = [.aroundMessage(MessageID(rawValue: 4)), .aroundTime(Timestamp(milliseconds: 4))]
        for load in loads {
            _ = client.take()
            try await client.feed(.loadMessages(1, Harness.channel, load, limit: 2))
            try await client.answer("message.list", with: newer)
            var codes: [RoostError.Code] = []
            for case .reply(1, .failure(let error)) in client.take() { codes.append(error.code) }
            #expect(codes == [.unavailable])
        }
        try await client.receive(alone(message(4, "three")))
        _ = client.take()
        try await client.feed(.loadMessages(1, Harness.channel, loads[0], limit: 2))
        try await client.answer("message.list", with: newer)
        #expect(client.take().contains(.reply(1, .success([]))))
    }
}
