import Foundation
import Roost
import RoostAPI
import RoostTestSupport
import Testing

/// The SDK's outbox against the real server: changes made offline.
@MainActor @Suite struct OfflineChangeTests {
    @Test("SB-58 SB-59 SB-26 AM-45 offline changes are shown immediately, and reach another device later")
    func offline() async throws {
        let server = try await TestServer()
        let (ann, phone, laptop) = (chat("ann", at: server), chat("bob", at: server), chat("bob", at: server))
        for client in [ann, phone, laptop] { try await client.connect() }
        let general = try await ann.createChannel("general")
        try await phone.channel("general").join()
        try await general.sendConfirmed("hi")
        let own = try await phone.channel("general").sendConfirmed("helo")
        let gone = try await phone.channel("general").sendConfirmed("gone")
        let (channel, list) = (phone.channel("general"), phone.channel("general").messages())
        try await wait("three messages") { list.items.count == 3 && channel.unreadCount == 1 }
        await phone.disconnect()

        try await channel.markRead()
        try await channel.edit(own.messageId, text: "hello")
        try await channel.delete(gone.messageId)
        try await channel.send("not yet")
        try await phone.setAutoAcceptInvitations(false)
        try await wait("a pending message") { list.items.last?.state == .pending }
        try await channel.edit(try #require(list.items.last), text: "now")
        try await wait("everything at once") {
            list.items.map(\.text) == ["hi", "hello", "", "now"] && channel.unreadCount == 0 && list.items[2].isDeleted
        }
        #expect(list.items.map(\.change) == [nil, .pending, .pending, nil])
        try await phone.outbox.loaded()
        #expect(Set(phone.outbox.entries.map(\.state)) == [.pending] && phone.outbox.count == 5)
        await #expect(throws: UnsentOperations.self) { try await phone.logOut() }

        try await phone.connect()
        let elsewhere = laptop.channel("general").messages()
        try await wait("the same on both") {
            elsewhere.items.map(\.text) == ["hi", "hello", "", "now"]
                && list.items.map(\.change) == [nil, nil, nil, nil] && phone.outbox.count == 0
        }
        #expect(elsewhere.items.last?.message?.editedAt == nil)
        #expect(try await laptop.call(GetUnread(channel: "general")).unreadCount == 0)
        #expect(try await laptop.call(GetPreferences()) == Preferences(autoAcceptInvitations: false))
        for client in [ann, phone, laptop] { await client.disconnect() }
        try await server.stop()
    }

    @Test("AM-18 SB-20 refused changes are rolled back, and listed with their errors until given up")
    func refused() async throws {
        let server = try await TestServer()
        let (ann, bob) = (chat("ann", at: server), chat("bob", at: server))
        for client in [ann, bob] { try await client.connect() }
        let talk = try await ann.createChannel(type: .conversation, users: ["bob"])
        let (list, outbox) = (bob.channels(), bob.outbox)
        try await wait("the conversation") { list.items.count == 1 }
        try await bob.channel(talk.id).leave()
        try await wait("the refusal") {
            list.items.count == 1
                && outbox.entries.contains { if case .failed(let error) = $0.state { error.code == .kindForbids } else { false } }
        }
        await outbox.discard(try #require(outbox.entries.first))
        try await wait("nothing left") { outbox.count == 0 }
        for client in [ann, bob] { await client.disconnect() }
        try await server.stop()
    }

    @Test("R08 I4 if two chats share a directory, the one that connects later sends nothing that the other has given up")
    func givenUpByAnother() async throws {
        let server = try await TestServer()
        let folder = TemporaryDirectory.make()
        let (first, second) = (chat("bob", at: server, in: folder), chat("bob", at: server, in: folder))
        try await first.connect()
        let mine = try await first.createChannel("general")
        await first.disconnect()
        let list = mine.messages()
        try await list.loaded()
        try await mine.send("given up")
        try await wait("the row") { list.items.last?.text == "given up" }
        // The other one has read the outbox, and isn't connected either.
        let theirs = second.channel("general")
        await theirs.messages().retry("nothing")
        await list.discard(try #require(list.items.last))
        try await wait("its end") { list.items.isEmpty }
        try await second.connect()
        try await theirs.sendConfirmed("later")
        #expect(try await second.call(ListMessages(channel: "general")).messages.map(\.text) == ["later"])
        await second.disconnect()
        try await server.stop()
    }
}
