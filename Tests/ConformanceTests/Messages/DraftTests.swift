import Foundation
import Roost
import RoostAPI
import RoostTestSupport
import Testing

/// Drafts with the SDK against the real server.
@MainActor @Suite struct DraftTests {
    @Test("EM-35 a draft is on all of the user's devices, live, offline and after an absence; sending its text removes it")
    func devices() async throws {
        let server = try await TestServer()
        let folder = TemporaryDirectory.make()
        let (ann, phone) = (chat("ann", at: server), chat("bob", at: server))
        var laptop = chat("bob", at: server, in: folder)
        for client in [ann, phone, laptop] { try await client.connect() }
        let general = try await ann.createChannel("general", users: ["bob"])
        let (mine, other) = (phone.channel("general"), laptop.channel("general"))
        try await wait("the channel") { mine.currentUserMembership == .member && other.currentUserMembership == .member }
        try await phone.outbox.loaded()
        let (onPhone, onLaptop, atAnn) = (mine.draft(), other.draft(), general.draft())
        for draft in [onPhone, onLaptop, atAnn] {
            try await draft.loaded()
            #expect(draft.draft == nil && draft.text.isEmpty)
        }
        var heard: [String?] = []
        let token = onLaptop.observe { heard.append($0?.text) }

        // While typing: shown on this device immediately, and on the other a little later.
        for text in ["s", "se", "see"] { try await mine.setDraft(text, metadata: ["to": "ann"]) }
        try await wait("the text here") { onPhone.text == "see" }
        try await wait("the text there") { onLaptop.text == "see" && onLaptop.draft?.metadata == ["to": "ann"] }
        try await wait("it to be sent") { phone.outbox.count == 0 }
        try await wait("what the server has on both") { onPhone.draft == onLaptop.draft }
        // How many intermediate texts arrive depends on the machine's speed.
        let texts = heard.compactMap { $0 }
        #expect(atAnn.draft == nil && texts.last == "see")
        #expect(heard.prefix(1) == [nil] && heard.count == texts.count + 1)
        #expect(texts.allSatisfy { "see".hasPrefix($0) } && texts.map(\.count) == texts.map(\.count).sorted())

        // Text typed without a connection is stored, and sent on reconnecting: only the newest.
        await laptop.disconnect()
        for text in ["see y", "see yo", "see you"] { try await other.setDraft(text) }
        try await wait("the text without a connection") { onLaptop.text == "see you" && onLaptop.draft?.metadata == nil }
        token.invalidate()
        laptop = chat("bob", at: server, in: folder)
        let reopened = laptop.channel("general").draft()
        try await reopened.loaded()
        #expect(reopened.text == "see you")
        try await laptop.outbox.loaded()
        #expect(laptop.outbox.entries.map(\.operation) == ["draft.set"] && onPhone.text == "see")
        try await laptop.connect()
        try await wait("it on the other device") { onPhone.text == "see you" }

        // Another message leaves it; one with its text removes it, on all devices.
        try await mine.sendConfirmed("wait")
        #expect(onPhone.text == "see you")
        try await mine.sendConfirmed("see you")
        try await wait("the end of it") { onPhone.draft == nil && reopened.draft == nil }
        #expect(try await phone.call(GetDraft(channel: "general")).isRemoved)

        // A device that was away learns of the removal too.
        try await mine.setDraft("so")
        try await wait("another") { reopened.text == "so" }
        await laptop.disconnect()
        try await mine.setDraft("")
        try await wait("nothing here") { onPhone.draft == nil && phone.outbox.count == 0 }
        try await laptop.connect()
        try await wait("nothing there") { reopened.draft == nil }
        for client in [ann, phone, laptop] { await client.disconnect() }
        try await server.stop()
    }

    @Test("EM-35 sending offline removes the draft immediately, later text stays, and a former member's draft is given up")
    func sending() async throws {
        let server = try await TestServer()
        let (ann, bob) = (chat("ann", at: server), chat("bob", at: server))
        for client in [ann, bob] { try await client.connect() }
        let general = try await ann.createChannel("general", users: ["bob"])
        let mine = bob.channel("general")
        try await wait("the channel") { mine.currentUserMembership == .member }
        let draft = mine.draft()
        try await draft.loaded()
        try await bob.outbox.loaded()
        await bob.disconnect()
        try await mine.setDraft("hi")
        try await wait("the draft") { draft.text == "hi" }
        async let sent = mine.send("hi")
        _ = try await sent
        try await wait("its end") { draft.draft == nil }
        try await mine.setDraft("and")
        try await wait("the next one") { draft.text == "and" }
        try await bob.connect()
        try await wait("both to be there") { general.lastMessage?.text == "hi" && bob.outbox.count == 0 }
        #expect(try await ann.call(ListMessages(channel: "general")).messages.map(\.text) == ["hi"])
        #expect(try await bob.call(ListDrafts()).items.map(\.text) == ["and"])

        // A user who is removed meanwhile has none.
        await bob.disconnect()
        try await mine.setDraft("and then")
        _ = try await ann.call(RemoveMembers(channel: "general", users: ["bob"]))
        try await bob.connect()
        try await wait("nothing, which nobody has to decide about") { draft.draft == nil && bob.outbox.count == 0 }
        await #expect(throws: RoostError.self) { try await mine.setDraft(String(repeating: "x", count: 20_001)) }
        for client in [ann, bob] { await client.disconnect() }
        try await server.stop()
    }

    @Test("EM-35 all of a user's drafts are one list, newest first, on each device, offline too, and after a restart")
    func list() async throws {
        let server = try await TestServer()
        let folder = TemporaryDirectory.make()
        let phone = chat("bob", at: server)
        var laptop = chat("bob", at: server, in: folder)
        for client in [phone, laptop] { try await client.connect() }
        for name in ["a", "b", "c"] as [ChannelID] { _ = try await phone.createChannel(name) }
        var there = laptop.drafts()
        let here = phone.drafts()
        for list in [here, there] {
            try await list.loaded()
            #expect(list.items == [])
        }
        var changes: [Int] = []
        let token = there.observe { changes.append($0.items.count) }
        for name in ["a", "b", "c"] as [ChannelID] {
            try await phone.channel(name).setDraft("to \(name)")
            // The order is that of their times.
            try await Task.sleep(for: .milliseconds(5))
        }
        try await wait("them here, at once") { here.items.map(\.text) == ["to c", "to b", "to a"] }
        try await wait("them there") { Set(there.items.map(\.text)) == ["to a", "to b", "to c"] }
        token.invalidate()
        #expect(changes.first == 0 && changes.last == 3)
        await laptop.disconnect()
        try await laptop.channel("a").setDraft("to a, again")
        try await laptop.channel("b").setDraft("")
        try await wait("what is kept offline") { there.items.map(\.text) == ["to a, again", "to c"] }
        laptop = chat("bob", at: server, in: folder)
        there = laptop.drafts()
        try await there.loaded()
        #expect(there.items.map(\.text) == ["to a, again", "to c"])
        try await laptop.connect()
        try await wait("the same on the other device") { here.items.map(\.text) == ["to a, again", "to c"] }
        try await phone.channel("c").delete()
        try await wait("the draft of a channel that is gone to be gone") {
            there.items.map(\.id) == ["a"] && here.items.map(\.id) == ["a"]
        }
        for client in [phone, laptop] { await client.disconnect() }
        try await server.stop()
    }
}
