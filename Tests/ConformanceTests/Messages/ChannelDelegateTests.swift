import Roost
import RoostAPI
import RoostTestSupport
import Testing

@MainActor @Suite struct ChannelDelegateTests {
    private final class Recorder: ChannelDelegate {
        var heard: [String] = []
        func channel(_ channel: ChannelID, received message: Message) {
            heard.append("new \(message.kind.rawValue) \(message.text)")
        }
        func channel(_ channel: ChannelID, updated message: Message) { heard.append("edited \(message.text)") }
        func channel(_ channel: ChannelID, deleted message: Message) { heard.append("deleted \(message.seq)") }
        func channel(_ channel: ChannelID, purged message: PurgedMessage) { heard.append("purged \(message.seq)") }
        func channel(_ channel: ChannelID?, changed event: ChatEvent.Happening) { heard.append(event.kind?.rawValue ?? "") }
        func missedEvents(in channels: [ChannelID: Seq]) { heard.append("missed \(channels.count)") }
    }

    @Test(
        "SB-46 SB-47 EM-33 several delegates receive messages, admins' too, until they are removed by identifier or deallocated"
    )
    func delegates() async throws {
        let server = try await TestServer()
        let (ann, bob) = (chat("ann", at: server), chat("bob", at: server))
        for client in [ann, bob] { try await client.connect() }
        let general = try await ann.createChannel("general", users: ["bob"])
        let mine = bob.channel("general")
        try await wait("the channel") { mine.currentUserMembership == .member }
        let (first, second) = (Recorder(), Recorder())
        var third: Recorder? = Recorder()
        bob.add(first, identifier: "first")
        bob.add(second, identifier: "second")
        if let third { bob.add(third, identifier: "third") }
        weak let gone = third
        third = nil
        let message = try await general.sendConfirmed("hi")
        try await general.edit(message.messageId, text: "hello")
        try await wait("the edit") { first.heard.count == 2 }
        try await general.delete(message.messageId)
        try await wait("the deletion") { first.heard.count == 3 }
        let root = try await server.socket("root", role: .admin)
        try await root.call(SendAdminMessage(channels: ["general"], clientId: "a", text: "news"))
        try await general.update(displayName: "General")
        try await general.purge(message.messageId)
        let heard = [
            "new text hi", "edited hello", "deleted \(message.seq)", "new admin news", "channel.updated", "purged \(message.seq)",
        ]
        try await wait("all of it") { first.heard == heard && second.heard == heard }
        #expect(gone == nil)
        // Another under the same identifier replaces it.
        let next = Recorder()
        bob.add(next, identifier: "first")
        bob.removeDelegate(identifier: "second")
        bob.removeDelegate(identifier: "unknown")
        await bob.disconnect()
        let last = try await general.sendConfirmed("while away")
        try await bob.connect()
        try await wait("what was missed") { mine.lastMessage == last && next.heard == ["missed 1"] }
        bob.removeAllDelegates()
        try await general.sendConfirmed("later")
        try await wait("the last message") { mine.lastMessage?.text == "later" }
        #expect(first.heard == heard && second.heard == heard && next.heard == ["missed 1"])
        try await server.stop()
    }
}
