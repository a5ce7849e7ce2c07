import Foundation
import Roost
import RoostAPI
import RoostTestSupport
import Testing

/// Delivery receipts, as the SDK sends and shows them.
@Suite struct DeliveryReceiptTests {
    @Test(
        "X-33 a delivered and unread message has a second tick, without any action of the app, and after an absence of its sender"
    )
    @MainActor func secondTick() async throws {
        let server = try await TestServer()
        let (ann, bob) = (chat("ann", at: server), chat("bob", at: server))
        for client in [ann, bob] { try await client.connect() }
        let general = try await ann.createChannel("general", users: ["bob"])
        try await general.update(policy: PolicyChanges(deliveryEvents: true))
        let quiet = try await ann.createChannel("quiet", users: ["bob"])
        let receipts = general.receipts()
        try await receipts.loaded()
        let message = try await general.sendConfirmed(MessageDraft(text: "hi"))
        try await quiet.sendConfirmed(MessageDraft(text: "unheard"))
        try await wait("the second tick") { receipts.recipients(of: message) == ["bob"] }
        #expect(receipts.readers(of: message).isEmpty)
        // Bob disconnects, and gets the next message when he is back; meanwhile ann disconnects.
        await bob.disconnect()
        let next = try await general.sendConfirmed(MessageDraft(text: "there?"))
        await ann.disconnect()
        try await bob.connect()
        let root = try await server.socket("root", role: .admin)
        var reported: Seq?
        let deadline = ContinuousClock.now + .seconds(20)
        while reported != next.seq, ContinuousClock.now < deadline {
            try await Task.sleep(for: .milliseconds(50))
            reported = try await root.call(ListReaders(channel: "general")).items.first { $0.userId == "bob" }?.deliveredSeq
        }
        #expect(reported == next.seq)
        try await ann.connect()
        try await wait("what was told meanwhile") { receipts.recipients(of: next) == ["bob"] }
        // Reading replaces it.
        try await bob.channel("general").markRead()
        try await wait("the reading") { receipts.readers(of: next) == ["bob"] }
        #expect(receipts.positions["bob"]?.deliveredSeq == nil)
        // Users who don't share it send no receipts.
        try await bob.setSharing(delivery: false)
        try await wait("the setting") { bob.preferences.sharesDelivery == false }
        try await bob.outbox.loaded()
        try await wait("the server to know") { bob.outbox.count == 0 }
        let mine = bob.channel("general")
        let last = try await general.sendConfirmed(MessageDraft(text: "and now?"))
        try await wait("bob to have it") { mine.lastMessage?.text == "and now?" }
        try await Task.sleep(for: .seconds(4))
        #expect(receipts.recipients(of: last).isEmpty)
        // What was stored meanwhile is shown once they share it again.
        func position(in channel: ChannelID) async throws -> ReadPosition? {
            try await root.call(ListReaders(channel: channel)).items.first { $0.userId == "bob" }
        }
        try await bob.setSharing(delivery: true)
        try await eventually("what arrived meanwhile") { try await position(in: "general")?.deliveredSeq == last.seq }
        // Where it was off, nothing was stored and no error was reported: turned on, it shows nothing.
        try await quiet.update(policy: PolicyChanges(deliveryEvents: true))
        let unheard = try await position(in: "quiet")
        #expect(unheard != nil && unheard?.deliveredSeq == nil)
        for client in [ann, bob] { await client.disconnect() }
        try await server.stop()
    }

    @Test("X-33 X-37 a user who stops sharing isn't shown with earlier receipts once the server is asked again")
    @MainActor func withdrawn() async throws {
        let server = try await TestServer()
        let ann = chat("ann", at: server)
        try await ann.connect()
        let bob = try await server.socket("bob")
        let general = try await ann.createChannel("general", users: ["bob"])
        try await general.update(policy: PolicyChanges(deliveryEvents: true))
        let receipts = general.receipts()
        try await receipts.loaded()
        let message = try await general.sendConfirmed(MessageDraft(text: "hi"))
        try await bob.call(MarkDelivered(channel: "general", seq: message.seq))
        try await wait("the second tick") { receipts.recipients(of: message) == ["bob"] }
        try await bob.call(UpdatePreferences(sharesDelivery: false))
        await ann.disconnect()
        try await ann.connect()
        try await wait("the answer") { receipts.recipients(of: message).isEmpty }
        await ann.disconnect()
        try await server.stop()
    }
}
