import Foundation
import Roost
import RoostAPI
import RoostServer
import RoostTestSupport
import Testing

/// Mentions with the SDK against the real server.
@MainActor @Suite struct MentionedTests {
    @Test(
        "MN-10 MN-12 MN-16 R35 a mention shows live, offline and after an absence, and ends by reading, by an edit and by a deletion"
    )
    func mentions() async throws {
        let server = try await TestServer()
        let folder = TemporaryDirectory.make()
        let ann = chat("ann", at: server)
        var bob = chat("bob", at: server, in: folder)
        try await ann.connect()
        try await bob.connect()
        let general = try await ann.createChannel("general")
        var mine = bob.channel("general")
        try await mine.join()
        let events = bob.events
        try await mine.loaded()

        var composer = MentionComposer(text: "hey @b")
        _ = composer.choose(UserSummary(userId: "bob", displayName: "Bob"), at: 6)
        let first = try await general.sendConfirmed(composer.draft)
        #expect(first.text == "hey @Bob " && first.mentionees == [.users(["bob"])])
        try await wait("a mention by name") { mine.hasMention && mine.membership?.mentionMessage == first.messageId }
        for await event in events {
            guard case .happened(let news) = event, news.kind == .mentionReceived else { continue }
            #expect(news.channel == "general" && news.actor == "ann" && !news.isOwn)
            break
        }
        try await mine.markRead()
        try await wait("its end by reading") { !mine.hasMention }

        // An edit of a read message mentions everyone while bob is away.
        await bob.disconnect()
        try await general.edit(first.messageId, mentionees: [.channel])
        try await wait("the edit") { general.lastMessage?.mentionees == [.channel] && general.lastMessage?.editedAt != nil }
        bob = chat("bob", at: server, in: folder)
        try await bob.connect()
        mine = bob.channel("general")
        let channels = bob.channels()
        try await wait("a mention of the channel") { mine.hasMention && channels.items.first?.hasMention == true }
        #expect(mine.unreadCount == 0 && general.hasMention == false)
        await bob.disconnect()

        // Without a connection the device knows of the mention too, and reading ends it there.
        bob = chat("bob", at: server, in: folder)
        mine = bob.channel("general")
        try await mine.loaded()
        #expect(mine.hasMention)
        try await bob.connect()
        try await general.delete(first.messageId)
        try await wait("its end by a deletion") { !mine.hasMention && mine.lastMessage?.deletedAt != nil }

        // An edit of the mentions in the outbox is shown immediately, and reading offline counts for them.
        await ann.disconnect()
        try await general.send(MessageDraft(text: "@all", mentionees: [.channel]))
        let rows = general.messages()
        try await rows.loaded()
        let waiting = try #require(rows.items.last)
        try await general.edit(waiting, mentionees: [.users(["bob"])])
        try await wait("the edit of what waits") { rows.items.last?.content.mentionees == [.users(["bob"])] }
        try await ann.connect()
        try await wait("the message") { mine.hasMention && mine.lastMessage?.mentionees == [.users(["bob"])] }
        await bob.disconnect()
        try await mine.markRead()
        try await wait("its end offline") { !mine.hasMention }
        await ann.disconnect()
        try await server.stop()
    }

    @Test(
        "SB-48 SB-50 SB-53 SB-60 R22 a history goes to the first message, refuses two loads at once, and is empty once reset"
    )
    func history() async throws {
        let server = try await TestServer()
        let ann = chat("ann", at: server)
        try await ann.connect()
        let general = try await ann.createChannel("general")
        for number in 1...7 {
            let kind: MessageKind = number == 4 ? .custom : .text
            try await general.sendConfirmed(MessageDraft(text: "\(number)", kind: kind, customType: "t"))
        }
        let history = general.history(limit: 3)
        // Two tasks of the main actor begin in their order, which the child of an `async let` doesn't.
        let first = Task { try await history.loadOlder() }
        await Task.yield()
        let refused: RoostError.Code? =
            await {
                do {
                    _ = try await history.loadOlder()
                    return nil
                } catch {
                    return (error as? RoostError)?.code
                }
            }()
        #expect(try await first.value.map(\.text) == ["7", "6", "5"])
        #expect(refused == .queryInProgress)
        var rest: [String] = []
        while history.hasOlder { rest += try await history.loadOlder().map(\.text) }
        #expect(rest == ["4", "3", "2", "1"])
        #expect(try await history.loadOlder().isEmpty)
        #expect(try await general.history(newestFirst: false, kinds: [.custom]).loadOlder().map(\.text) == ["4"])
        let seven = try await ann.call(ListMessages(channel: "general", limit: 2)).messages.map(\.messageId)
        try await general.delete(seven)
        try await general.purge(seven[0])
        let list = general.messages()
        try await list.loaded()
        try await wait("one to be gone for good") { list.items.map(\.text) == ["1", "2", "3", "4", "5", ""] }
        #expect(try await general.history().loadOlder().map(\.text) == ["", "5", "4", "3", "2", "1"])
        let custom = try await general.history(kinds: [.custom]).loadOlder()[0].messageId
        try await general.updateMetaArrays(of: custom, create: ["a"], add: ["a": ["b"]])
        try await wait("the lists") { list.items[3].message?.metaArrays == ["a": ["b"]] }
        try await general.resetHistory()
        try await wait("nothing to be left") { list.items.isEmpty && general.lastMessage == nil && general.unreadCount == 0 }
        try await ann.outbox.loaded()
        try await wait("the server's answer") { ann.outbox.count == 0 }
        #expect(try await general.history().loadOlder().isEmpty)
        await ann.disconnect()
        try await server.stop()
    }

    @Test(
        "SB-50 SB-51 SB-54 SB-55 SB-56 R22 a history begins at a time or a message and goes both ways, to the first message and the newest"
    )
    func historyFrom() async throws {
        let server = try await TestServer()
        let ann = chat("ann", at: server)
        try await ann.connect()
        let general = try await ann.createChannel("general")
        var sent: [Message] = []
        for number in 1...9 {
            sent.append(try await general.sendConfirmed(MessageDraft(text: "\(number)")))
            // Each in its own millisecond.
            while Int64(Date().timeIntervalSince1970 * 1000) <= sent[number - 1].createdAt.milliseconds { await Task.yield() }
        }
        func texts(_ history: MessageHistory) async throws -> [String] {
            var all: [String] = []
            while history.hasNewer { all += try await history.loadNewer().map(\.text) }
            while history.hasOlder { all = try await history.loadOlder().map(\.text) + all }
            #expect(try await history.loadOlder().isEmpty)
            #expect(try await history.loadNewer().isEmpty)
            return all
        }
        let everything = (1...9).map(String.init)
        let (time, id) = (sent[4].createdAt, sent[4].messageId)
        for place in [
            .newest, .before(time), .after(time), .around(time), .beforeMessage(id), .afterMessage(id), .aroundMessage(id),
        ]
            as [MessageHistory.Place]
        {
            for limit in [2, 100] {
                let history = general.history(from: place, limit: limit, newestFirst: false)
                #expect(try await texts(history) == everything, "\(place), \(limit)")
                let filtered = general.history(from: place, limit: limit, newestFirst: false, kinds: [.text], senders: ["ann"])
                #expect(try await texts(filtered) == everything, "\(place), \(limit)")
            }
        }
        // Places with nothing on one side.
        for place in [
            .before(sent[0].createdAt), .beforeMessage(sent[0].messageId), .after(sent[8].createdAt),
            .afterMessage(sent[8].messageId),
        ]
            as [MessageHistory.Place]
        {
            let history = general.history(from: place, limit: 4, newestFirst: false)
            #expect(try await history.loadOlder().isEmpty)
            #expect(try await texts(history) == everything, "\(place)")
        }
        let first = general.history(from: .beforeMessage(id), limit: 2, newestFirst: false)
        #expect(try await first.loadOlder().map(\.text) == ["3", "4"])
        #expect(try await first.loadNewer().map(\.text) == ["5", "6"])
        #expect(try await first.loadOlder().map(\.text) == ["1", "2"])
        let unknown = general.history(from: .afterMessage(MessageID(rawValue: 7)))
        await #expect(throws: RoostError.self) { try await unknown.loadOlder() }
        await ann.disconnect()
        try await server.stop()
    }

    @Test("MN-03 a row has its message's mentioned users as users, in lists and while being sent, and follows their names")
    func mentionedUsers() async throws {
        let server = try await TestServer()
        let (ann, bob) = (chat("ann", at: server), chat("bob", at: server))
        for client in [ann, bob] { try await client.connect() }
        try await bob.updateMe(displayName: "Bob")
        let general = try await ann.createChannel("general", users: ["bob"])
        let list = general.messages()
        try await list.loaded()
        try await general.send(MessageDraft(text: "@bob", mentionees: [.users(["bob"]), .channel]))
        try await wait("the row") { list.items.last?.state == .sent && list.items.last?.mentionedUsers.map(\.name) == ["Bob"] }
        try await bob.updateMe(displayName: "Robert")
        try await wait("the new name") { list.items.last?.mentionedUsers.map(\.name) == ["Robert"] }
        let message = try #require(list.items.last?.message)
        try await general.edit(message.messageId, text: "nobody", mentionees: [])
        try await wait("the edit") { list.items.last?.text == "nobody" }
        #expect(list.items.last?.mentionedUsers == [])
        for client in [ann, bob] { await client.disconnect() }
        try await server.stop()
    }

    @Test("AM-41 MN-12 a channel joined while connected shows its newest message, and its messages marked as unread")
    func joined() async throws {
        let server = try await TestServer()
        let (ann, bob, cid) = (chat("ann", at: server), chat("bob", at: server), chat("cid", at: server))
        for client in [ann, bob, cid] { try await client.connect() }
        try await ann.updateMe(displayName: "Ann")
        let general = try await ann.createChannel("general")
        let mention = try await general.sendConfirmed(MessageDraft(text: "all of you", mentionees: [.channel]))
        let newest = try await general.sendConfirmed("newest")
        let (atBob, listed) = (try await bob.joinChannel("general"), cid.channels())
        // The name arrives with the joined channel, without a request.
        #expect(atBob.lastMessage == newest && atBob.lastSender?.name == "Ann")
        try await general.addMembers(["cid"])
        try await wait("the list") { listed.items.first?.lastMessage == newest }
        #expect(listed.items.first?.unreadCount == 0)
        for (client, channel) in [(bob, atBob), (cid, cid.channel("general"))] {
            try await wait("the message") { channel.lastMessage == newest }
            #expect(!channel.hasMention && channel.unreadCount == 0)
            try await channel.markUnread(from: mention.seq)
            try await wait("it to be unread") { channel.hasMention && channel.unreadCount == 2 }
            #expect(try await client.call(GetUnread(channel: "general")).hasMention)
        }
        try await server.stop()
    }

    @Test(
        "MN-16 R23 a mention isn't shown to users who may not read it, on the server, on connected and on absent devices"
    )
    func unreadable() async throws {
        let server = try await TestServer()
        let (ann, bob, root) = (chat("ann", at: server), chat("bob", at: server), try await server.socket("root", role: .admin))
        for client in [ann, bob] { try await client.connect() }
        let general = try await ann.createChannel("general", users: ["bob"])
        let mine = bob.channel("general")
        func read(_ audience: ChannelPolicy.Audience) async throws {
            try await root.call(UpdateChannel(channel: "general", policy: PolicyChanges(read: audience)))
        }
        /// Waits for the device, and compares it with the server and with a new device.
        func expect(_ isMentioned: Bool, _ what: String) async throws {
            try await wait("\(what)") { mine.hasMention == isMentioned }
            #expect(try await bob.call(GetUnread(channel: "general")).hasMention == isMentioned, "\(what)")
            let fresh = chat("bob", at: server)
            try await fresh.connect()
            let channel = fresh.channel("general")
            try await channel.loaded()
            #expect(channel.hasMention == isMentioned, "\(what), on a fresh device")
            await fresh.disconnect()
        }
        let old = try await general.sendConfirmed(MessageDraft(text: "old"))
        let sent = try await general.sendConfirmed(MessageDraft(text: "all of you", mentionees: [.channel]))
        try await expect(true, "a mention")
        try await read(.operators)
        try await expect(false, "the end of the right")
        try await general.edit(sent.messageId, mentionees: [])
        try await expect(false, "the end of what can't be read")
        try await general.edit(old.messageId, mentionees: [.channel])
        try await expect(false, "another that can't be read")
        try await read(.members)
        try await expect(true, "the right again")
        try await read(.operators)
        try await general.edit(old.messageId, mentionees: [])
        try await general.sendConfirmed(MessageDraft(text: "nobody"))
        try await read(.members)
        try await expect(false, "the right without a mention")
        for client in [ann, bob] { await client.disconnect() }
        try await server.stop()
    }
}
