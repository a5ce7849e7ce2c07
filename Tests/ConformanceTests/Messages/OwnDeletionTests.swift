import Foundation
import Roost
import RoostAPI
import RoostServer
import RoostTestSupport
import Testing

/// Deletion for oneself with the SDK against the real server.
@MainActor @Suite struct OwnDeletionTests {
    @Test("SB-59 EM-35 a message deleted for oneself disappears from all of the user's devices, and stays so whatever is edited")
    func devices() async throws {
        let server = try await TestServer()
        let folder = TemporaryDirectory.make()
        let (ann, phone) = (chat("ann", at: server), chat("bob", at: server))
        var tablet = chat("bob", at: server, in: folder)
        try await ann.connect()
        try await phone.connect()
        try await tablet.connect()
        let general = try await ann.createChannel("general")
        let (atPhone, mine) = (phone.channel("general"), tablet.channel("general"))
        try await atPhone.join()
        try await wait("the channel") { mine.membership != nil }
        let sent = try await general.sendConfirmed("secret")
        let last = try await general.sendConfirmed(MessageDraft(text: "hey @all", mentionees: [.channel]))
        let (onPhone, onTablet) = (atPhone.messages(), mine.messages())
        try await wait("both") { onPhone.items.count == 2 && onTablet.items.count == 2 && mine.hasMention && atPhone.hasMention }

        // Without a connection it is shown immediately.
        await tablet.disconnect()
        try await mine.deleteForMe([sent.messageId, last.messageId])
        try await wait("both to be gone here") {
            onTablet.items.count == 2 && onTablet.items.allSatisfy { $0.isDeletedForMe && $0.isDeleted && $0.text.isEmpty }
        }
        try await wait("the last one") { mine.lastMessage?.isDeletedForMe == true && mine.lastMessage?.text == "" }
        #expect(onPhone.items.map(\.text) == ["secret", "hey @all"])
        try await tablet.connect()
        try await wait("both to be gone there") { onPhone.items.allSatisfy { $0.message?.isDeletedForMe == true } }
        try await wait("the mention to end") { !mine.hasMention && !atPhone.hasMention }
        #expect(try await phone.call(GetUnread(channel: "general")).unreadCount == 2)

        // The others see both, and an edit brings nothing back, not even on a new device.
        #expect(general.lastMessage?.text == "hey @all")
        try await general.edit(sent.messageId, text: "more secret", mentionees: [.users(["bob"])])
        try await general.edit(last.messageId, text: "still here")
        let marker = try await general.sendConfirmed("marker")
        let third = chat("bob", at: server)
        try await third.connect()
        let atThird = third.channel("general")
        try await atThird.loaded()
        let onThird = atThird.messages()
        for list in [onPhone, onTablet, onThird] {
            try await wait("the marker") { list.items.last?.message == marker }
            #expect(list.items.map(\.text) == ["", "", "marker"])
            #expect(list.items.map(\.isDeletedForMe) == [true, true, false])
        }
        #expect(!mine.hasMention && !atPhone.hasMention && !atThird.hasMention)

        // A device that reconnects, and one that fetches an older page, know it too.
        await tablet.disconnect()
        tablet = chat("bob", at: server, in: folder)
        let reopened = tablet.channel("general").messages()
        try await reopened.loaded()
        #expect(reopened.items.map(\.text) == ["", "", "marker"])
        #expect(try await third.channel("general").history().loadOlder().map(\.text) == ["marker", "", ""])
        for chat in [ann, phone, third] { await chat.disconnect() }
        try await server.stop()
    }

    @Test(
        "SB-59 SB-60 offline resets, deletions for good and of several, and lists of texts are queued, shown, and rolled back if refused"
    )
    func waiting() async throws {
        let server = try await TestServer { $0.options.undeletionSeconds = 600 }
        let (ann, bob) = (chat("ann", at: server), chat("bob", at: server))
        try await ann.connect()
        try await bob.connect()
        let general = try await ann.createChannel("general")
        let mine = bob.channel("general")
        try await bob.outbox.loaded()
        try await mine.join()
        var own: [Message] = []
        for text in ["1", "2", "3", "4"] { own.append(try await mine.sendConfirmed(MessageDraft(text: text))) }
        let theirs = try await general.sendConfirmed("5")
        let rows = mine.messages()
        try await wait("five") { rows.items.map(\.text) == ["1", "2", "3", "4", "5"] }

        await bob.disconnect()
        try await mine.updateMetaArrays(of: own[0].messageId, create: ["a"], add: ["a": ["b"]])
        try await mine.delete([own[1].messageId, own[2].messageId])
        try await mine.purge(own[3].messageId)
        // A message of someone else's: the server refuses both.
        try await mine.delete([own[0].messageId, theirs.messageId])
        try await wait("all of it to be shown") { rows.items.map(\.isDeleted) == [true, true, true, true, true] }
        #expect(bob.outbox.isForAnotherServer == false)
        try await bob.connect()
        try await wait("what the server has done") {
            rows.items.map(\.text) == ["1", "", "", "5"] && rows.items[0].message?.metaArrays == ["a": ["b"]]
        }
        guard case .failed(let error) = rows.items[3].change else { throw Missed("\(rows.items[3])") }
        #expect(error.code == .notMessageOwner && error.field == "messages[1]")
        await rows.discard(rows.items[3])
        try await wait("nothing to be left of it") { rows.items.allSatisfy { $0.change == nil } }

        // An unsent deletion is withdrawn, another one undone by the server; deleted again, it stays so.
        await bob.disconnect()
        try await mine.delete(own[0].messageId)
        try await wait("the deletion to be shown") { rows.items[0].isDeleted }
        try await mine.undelete(own[0].messageId)
        try await wait("nothing to be changed") {
            rows.items[0].text == "1" && rows.items[0].change == nil && bob.outbox.count == 0
        }
        try await mine.undelete(own[1].messageId)
        try await mine.undelete(own[2].messageId)
        try await mine.delete(own[2].messageId)
        try await bob.connect()
        try await wait("what was undone") { rows.items.map(\.text) == ["1", "2", "", "5"] && bob.outbox.count == 0 }

        await bob.disconnect()
        try await mine.resetHistory()
        try await wait("nothing to be shown") { rows.items.isEmpty && mine.lastMessage == nil && mine.unreadCount == 0 }
        // A message sent before the server knows of the reset stays, since bob hasn't seen it.
        _ = try await general.sendConfirmed("6")
        try await bob.connect()
        try await wait("what came since") { rows.items.map(\.text) == ["6"] && mine.unreadCount == 1 && bob.outbox.count == 0 }
        try await wait("the server to say the same") { mine.membership?.historyFloor == mine.membership?.readSeq }
        #expect(try await bob.call(GetUnread(channel: "general")).unreadCount == 1)
        for chat in [ann, bob] { await chat.disconnect() }
        try await server.stop()
    }
}
