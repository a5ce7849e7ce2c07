import RoostAPI
import Testing

@testable import Roost

@MainActor @Suite("Messages: stretches that lists show", .timeLimit(.minutes(5)))
struct ShownStretchTests {
    /// A server of a channel with a message at each seq up to 999. Its pages have the message at a place and the next one.
    private let server = ScriptedServer { call in
        guard call.operation == "message.list", let place = ShownStretchTests.place(of: call) else { return .nothing }
        let messages = [place, place + 1].map { message($0, "m\($0)") }
        return .result(MessagePage(messages: messages, hasOlder: true, hasNewer: true, seq: 999))
    }

    private nonisolated static func place(of call: ScriptedServer.Call) -> Seq? {
        if case .integer(let seq)? = call.with["around"] { return seq }
        if case .string(let id)? = call.with["aroundMessage"] { return Seq(id) }
        return nil
    }

    @Test("the messages that a list shows stay when pages at many other places arrive")
    func kept() async throws {
        let chat = try await server.connected()
        let own = membership(readSeq: 999, readCount: 998, channelSeq: 999, userSeq: 1)
        try await server.send(
            Event(
                kind: .memberJoined, stream: .user("ann"), seq: 1, actor: "ann",
                rows: Rows(channel: channel(counters(999, messages: 998)), [message(999, "m999")], [own])))
        let store = try await chat.driver.files().store
        try await until { try await store.savedState().channels[Harness.channel]?.cursor == 999 }
        let list = chat.channel(Harness.channel).messages(around: .message(MessageID(rawValue: 40)), pageSize: 2)
        try await list.loaded()
        #expect(list.items.map(\.text) == ["m40", "m41"])
        for place in 1...Seq(Position.stretchesMax) + 1 {
            try await chat.driver.load(.around(place * 100), in: Harness.channel, limit: 2)
        }
        await letOthersRun()
        #expect(list.items.map(\.text) == ["m40", "m41"])
        let askedCount = await server.operations().count { $0 == "message.list" }
        #expect(askedCount == Position.stretchesMax + 2)
        #expect(try await store.savedState().channels[Harness.channel]?.stretches.first == 40...41)
        await chat.disconnect()
    }
}
