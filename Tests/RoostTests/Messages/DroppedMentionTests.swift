import Foundation
import Logging
import RoostAPI
import Testing

@testable import Roost

/// Users whom a message or an edit names but doesn't mention: the app sees them, however it was sent.
@MainActor @Suite("Mentions: dropped ones", .timeLimit(.minutes(5)))
struct DroppedMentionTests {
    private let channelId = Harness.channel

    private nonisolated static func stored(
        _ seq: Seq, _ clientId: ClientID, by sender: UserID = "ann", changedAt: Seq? = nil, mentioning users: [UserID],
        dropping dropped: [UserID]? = nil
    ) -> Message {
        var stored = message(seq, "hi", by: sender, clientId: clientId, changedAt: changedAt)
        stored.content.mentionees = [.users(users)]
        stored.droppedMentions = dropped
        return stored
    }

    /// A chat in a channel with two messages of bob's.
    private func connected(_ server: ScriptedServer) async throws -> (Chat, MessageList) {
        let chat = try await server.connected()
        let store = try await chat.driver.files().store
        try await server.send(
            Event(
                kind: .memberJoined, stream: .user("ann"), seq: 1, actor: "ann",
                rows: Rows(channel: channel(counters(3, messages: 2)), [membership(readSeq: 3, readCount: 2, userSeq: 1)])))
        try await until { try await store.savedState().channels[Harness.channel] != nil }
        let list = chat.channel(channelId).messages()
        try await list.loaded()
        return (chat, list)
    }

    @Test(
        "MN-17 a row names those whom a sent message doesn't mention, whether the answer or the event arrives first",
        arguments: [true, false])
    func sent(answerIsFirst: Bool) async throws {
        let (gate, open) = AsyncStream.makeStream(of: Void.self)
        let answer = ScriptedServer.Answer.result(Self.stored(4, "c1", mentioning: ["bob"], dropping: ["eve", "dan"]))
        let server = ScriptedServer { call in
            guard call.operation == "message.send" else { return .error(.notFound("operation")) }
            return answerIsFirst ? answer : .held(until: gate, answer)
        }
        let (chat, list) = try await connected(server)
        try await chat.channel(channelId).send(
            MessageDraft(text: "hi", mentionees: [.users(["bob", "eve", "dan"])], clientId: "c1"))
        if answerIsFirst { try await until { chat.driver.droppedMentions.all.count == 1 } }
        try await server.send(alone(Self.stored(4, "c1", mentioning: ["bob"])))
        try await until { list.items.last?.state == .sent && list.items.last?.droppedMentions == ["eve", "dan"] }
        #expect(list.items.last?.mentionees == [.users(["bob"])])
        open.finish()
        await chat.disconnect()
    }

    @Test(
        "MN-17 MN-11 a row names those whom an edit doesn't mention, of another user's message too, until another edit changes them"
    )
    func ofEdit() async throws {
        let turn = Turn()
        let server = ScriptedServer { call in
            guard call.operation == "message.edit" else { return .error(.notFound("operation")) }
            let number = turn.next()
            return .result(
                Self.stored(
                    4, "b1", by: "bob", changedAt: 5 + Seq(number), mentioning: ["cid"], dropping: number == 0 ? ["eve"] : nil))
        }
        let (chat, list) = try await connected(server)
        try await server.send(alone(message(4, "hi", by: "bob", clientId: "b1")))
        try await until { list.items.last?.message?.seq == 4 }
        let general = chat.channel(channelId)
        try await general.edit(MessageID(rawValue: 4), mentionees: [.users(["cid", "eve"])])
        try await until { list.items.last?.droppedMentions == ["eve"] }
        try await server.send(edited(Self.stored(4, "b1", by: "bob", changedAt: 5, mentioning: ["cid"]), messages: 3))
        try await until { list.items.last?.mentionees == [.users(["cid"])] }
        #expect(list.items.last?.droppedMentions == ["eve"] && list.items.last?.change == nil)
        try await general.edit(MessageID(rawValue: 4), mentionees: [.users(["cid"])])
        try await until { list.items.last?.droppedMentions == [] }
        await chat.disconnect()
    }

    @Test("MN-17 MN-11 the dropped mentions of an edit disappear from a row with the next edit, of whatever device")
    func editedElsewhere() async throws {
        let server = ScriptedServer { call in
            guard call.operation == "message.edit" else { return .error(.notFound("operation")) }
            var edited = Self.stored(4, "b1", by: "bob", changedAt: 5, mentioning: ["cid"], dropping: ["eve"])
            edited.editedAt = Timestamp(milliseconds: 50)
            return .result(edited)
        }
        let (chat, list) = try await connected(server)
        try await server.send(alone(message(4, "hi", by: "bob", clientId: "b1")))
        try await until { list.items.last?.message?.seq == 4 }
        try await chat.channel(channelId).edit(MessageID(rawValue: 4), mentionees: [.users(["cid", "eve"])])
        try await until { chat.driver.droppedMentions.all.count == 1 }
        var own = Self.stored(4, "b1", by: "bob", changedAt: 5, mentioning: ["cid"])
        own.editedAt = Timestamp(milliseconds: 50)
        try await server.send(edited(own, messages: 3))
        try await until { list.items.last?.droppedMentions == ["eve"] }
        // Eve has joined meanwhile, and an operator's edit mentions her.
        var other = Self.stored(4, "b1", by: "bob", changedAt: 6, mentioning: ["cid", "eve"])
        other.editedAt = Timestamp(milliseconds: 60)
        try await server.send(edited(other, messages: 3))
        // The user's own edit, which names both, may still be shown.
        try await until { list.items.last?.message?.editedAt == other.editedAt }
        #expect(list.items.last?.mentionees == [.users(["cid", "eve"])] && list.items.last?.droppedMentions == [])
        await chat.disconnect()
    }

    @Test("MN-17 a row names those whom an edit with a lost answer, or a restored message, doesn't mention")
    func lostAnswer() async throws {
        let server = ScriptedServer { call in
            switch call.operation {
            case "message.edit": .result(Done())
            case "message.undelete": .result(Self.stored(6, "b2", by: "bob", changedAt: 8, mentioning: ["cid"], dropping: ["dan"]))
            default: .error(.notFound("operation"))
            }
        }
        let (chat, list) = try await connected(server)
        try await server.send(alone(message(4, "hi", by: "bob", clientId: "b1")))
        try await server.send(edited(Self.stored(4, "b1", by: "bob", changedAt: 5, mentioning: ["cid"]), messages: 3))
        try await until { list.items.last?.mentionees == [.users(["cid"])] }
        try await chat.channel(channelId).edit(MessageID(rawValue: 4), mentionees: [.users(["cid", "eve"])])
        try await until { list.items.last?.droppedMentions == ["eve"] }
        var deleted = message(6, "", by: "bob", clientId: "b2", changedAt: 7)
        deleted.deletedAt = Timestamp(milliseconds: 70)
        try await server.send(alone(message(6, "@cid @dan", by: "bob", clientId: "b2")))
        try await server.send(edited(deleted, messages: 4))
        try await until { list.items.last?.isDeleted == true }
        try await chat.channel(channelId).undelete(MessageID(rawValue: 6))
        try await until { chat.driver.droppedMentions.all.count == 2 }
        try await server.send(edited(Self.stored(6, "b2", by: "bob", changedAt: 8, mentioning: ["cid"]), messages: 4))
        try await until { list.items.last?.droppedMentions == ["dan"] }
        await chat.disconnect()
    }

    @Test("R08 the answer to an edit of another user's message confirms no message of the user's with the same client id")
    func sameClientId() async throws {
        let server = ScriptedServer { call in
            guard call.operation == "message.edit" else { return .nothing }
            return .result(Self.stored(4, "same", by: "bob", changedAt: 5, mentioning: ["cid"]))
        }
        let (chat, _) = try await connected(server)
        let general = chat.channel(channelId)
        let outbox = try await chat.driver.files().outbox
        let edit = EditMessage(channel: channelId, message: MessageID(rawValue: 4), mentionees: [.users(["cid"])])
        try await chat.driver.enqueue(.edit(edit))
        let sending = Task { try await general.sendConfirmed(MessageDraft(text: "mine", clientId: "same")) }
        try await until { try await outbox.items().map { $0.message?.clientId } == ["same"] }
        await letOthersRun()
        #expect(await chat.driver.confirmations.count == 1)
        sending.cancel()
        _ = await sending.result
        await chat.disconnect()
    }

    @Test("I18 the number of remembered dropped mentions is bounded, and the oldest go first")
    func bounded() {
        let dropped = DroppedMentions()
        for seq in 1...1100 as ClosedRange<Seq> { dropped.note(Self.stored(seq, "c", mentioning: [], dropping: ["eve"])) }
        #expect(dropped.all.count == 1000 && dropped.all[Self.stored(100, "c", mentioning: [])] == [])
        #expect(dropped.all[Self.stored(101, "c", mentioning: [])] == ["eve"])
        dropped.note(Self.stored(101, "c", mentioning: []))
        #expect(dropped.all.count == 999 && dropped.all[Self.stored(101, "c", mentioning: [])] == [])
    }
}
