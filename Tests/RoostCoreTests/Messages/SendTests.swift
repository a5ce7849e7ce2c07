import Foundation
import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@Suite("Sending, editing, deleting")
struct SendTests {
    @Test("AM-02 SB-34 a message takes the next place, and has everything that was sent")
    func sends() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        let parent = try world.send("first", to: "general", as: "ann").messageId
        world.advance(milliseconds: 5)
        let operation = SendMessage(
            channel: "general", clientId: "c", text: "hi \u{1} 👩‍👩‍👧‍👦", customType: "t", data: "{}", metadata: ["k": [1, 2.5]],
            tags: ["b", "a"],
            parentId: parent)
        let message = try world.perform(operation, as: "bob")
        let expected = Message(
            messageId: message.messageId, channelId: "general", seq: 3, changeSeq: 3, sender: "bob", clientId: "c",
            text: operation.text,
            customType: "t", data: "{}", metadata: ["k": [1, 2.5]], tags: ["b", "a"], parentId: parent, createdAt: world.now)
        #expect(message == expected)
        #expect(try world.perform(ListMessages(channel: "general"), as: "ann").messages.last == expected)
        let counters = ChannelCounters(seq: 3, memberCount: 2, messageCount: 2, lastActivity: world.now, lastMessageAt: world.now)
        #expect(world.events().last?.rows == Rows(counters: counters, [expected]))
    }

    @Test("AM-01 I18 a message changes as many rows in a channel of 60 members as in one of 3")
    func writesNothingPerMember() throws {
        func changedTables(members count: Int) throws -> [String] {
            let world = try CoreWorld()
            try world.channel("general", owner: "ann", members: (1..<count).map { UserID("u\($0)") })
            try world.send("first", to: "general", as: "ann")
            let before = Set(try world.dump())
            try world.send("second", to: "general", as: "ann")
            return try world.dump().filter { !before.contains($0) }.map { String($0.split(separator: ":")[0]) }
        }
        let few = try changedTables(members: 3)
        let many = try changedTables(members: 60)
        #expect(few == many && few.contains("messages"))
    }

    @Test("MN-10 a parent is a message of the same channel")
    func parents() throws {
        let world = try CoreWorld()
        for channel in ["a", "b"] as [ChannelID] { try world.channel(channel, owner: "ann") }
        let elsewhere = try world.send("x", to: "b", as: "ann").messageId
        let before = try world.dump()
        let refusals = try [elsewhere, MessageID(rawValue: 1)].map { parent in
            try world.refusal(SendMessage(channel: "a", clientId: "c", text: "x", parentId: parent), as: "ann")
        }
        #expect(refusals.map { $0?.field } == ["parentId", "parentId"])
        #expect(refusals.map { $0?.code } == [.notFound, .notFound])
        #expect(try world.dump() == before)
    }

    @Test(
        "I2 promise 7 a message sent again is answered by the channel it was sent to, not by another whose id its name contains"
    )
    func channelsWithColons() throws {
        let world = try CoreWorld()
        for channel in ["7", "order:7"] as [ChannelID] { try world.channel(channel, owner: "ann", members: ["bob"]) }
        let note = SendMessage(channel: "7", clientId: "1", text: "in 7")
        let stored = try world.perform(note, as: "bob")
        try world.perform(FreezeChannel(channel: "order:7"), as: "ann")
        let other = SendMessage(channel: "order:7", clientId: "1", text: "in order:7")
        #expect(try world.code(other, as: "bob") == .frozen)
        try world.perform(RemoveMembers(channel: "order:7", users: ["bob"]), as: "ann")
        #expect(try world.code(other, as: "bob") == .notMember)
        // Nor by a channel of another type. By its type it is the same channel, even for a former member.
        #expect(try world.code(SendMessage(channel: "group:7", clientId: "1", text: "in 7"), as: "bob") == .notFound)
        try world.perform(LeaveChannel(channel: "7"), as: "bob")
        for name in ["7", "community:7"] as [ChannelID] {
            #expect(try world.perform(SendMessage(channel: name, clientId: "1", text: "in 7"), as: "bob") == stored)
        }
        // Admin messages likewise.
        let admin = SendAdminMessage(channels: ["7"], clientId: "note", text: "closing")
        try world.perform(admin, as: "root", role: .admin)
        try world.perform(DeleteChannel(channel: "order:7"), as: "root", role: .admin)
        let refused = try world.refusal(
            SendAdminMessage(channels: ["order:7"], clientId: "note", text: "closing"), as: "root", role: .admin)
        #expect(refused?.field == "channels[0]")
    }

    @Test("a message without text is refused")
    func empty() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        let message = try world.send("x", to: "general", as: "ann").messageId
        let codes = try [
            world.code(SendMessage(channel: "general", clientId: "c", text: ""), as: "ann"),
            world.code(EditMessage(channel: "general", message: message, text: ""), as: "ann"),
            world.code(SendMessage(channel: "general", clientId: "", text: "x"), as: "ann"),
        ]
        #expect(codes == [.invalidArgument, .invalidArgument, .invalidArgument])
    }

    @Test("I4 a client id stays one message: after an edit, a deletion, other content, leaving and the channel's deletion")
    func sendsOnce() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        func again() throws -> Message {
            try world.perform(SendMessage(channel: "general", clientId: "once", text: "other content", parentId: nil), as: "bob")
        }
        let first = try world.perform(SendMessage(channel: "general", clientId: "once", text: "hi"), as: "bob")
        var answers = [try again() == first]
        let edited = try world.perform(EditMessage(channel: "general", message: first.messageId, text: "edited"), as: "bob")
        answers.append(try again() == edited)
        try world.perform(LeaveChannel(channel: "general"), as: "bob")
        // A sender who may no longer read doesn't learn of its later changes.
        var unread = first
        unread.text = "other content"
        answers.append(try again() == unread)
        let deleted = try world.perform(DeleteMessage(channel: "general", message: first.messageId), as: "ann")
        answers.append(try again() == unread)
        try world.perform(JoinChannel(channel: "general"), as: "bob")
        answers.append(try again() == deleted)
        try world.perform(DeleteChannel(channel: "general"), as: "ann")
        answers.append(try again() == deleted)
        #expect(answers == [true, true, true, true, true, true])
        #expect(try world.rows("SELECT COUNT(*) FROM messages") { $0.int() } == [1])
    }

    @Test("I4 a client id belongs to one sender in one channel")
    func clientIDsOfOthers() throws {
        let world = try CoreWorld()
        for channel in ["a", "b"] as [ChannelID] { try world.channel(channel, owner: "ann", members: ["bob"]) }
        let sent = try [("a", "ann"), ("a", "bob"), ("b", "ann")].map { channel, user in
            try world.perform(SendMessage(channel: ChannelID(channel), clientId: "once", text: "x"), as: UserID(user)).messageId
        }
        #expect(Set(sent).count == 3)
        try world.user("eve")
        #expect(try world.code(SendMessage(channel: "a", clientId: "once", text: "x"), as: "eve") == .notMember)
    }

    @Test("SB-58 an edit replaces the given fields and stamps the message")
    func edits() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        let operation = SendMessage(
            channel: "general", clientId: "c", text: "hi", customType: "t", data: "d", metadata: ["a": 1], tags: ["x"])
        let sent = try world.perform(operation, as: "bob")
        world.advance(milliseconds: 5)
        let edited = try world.perform(
            EditMessage(channel: "general", message: sent.messageId, text: "ho", metadata: ["b": 2], tags: []), as: "bob")
        var expected = sent
        expected.changeSeq = 3
        expected.text = "ho"
        expected.metadata = ["b": 2]
        expected.tags = []
        expected.editedAt = world.now
        #expect(edited == expected)
        #expect(try world.perform(ListMessages(channel: "general"), as: "ann").messages == [expected])
    }

    @Test("SB-58 an edit that only changes the bytes of a letter counts as an edit", arguments: ["e\u{301}", "\u{212b}"])
    func editsBytes(text: String) throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        let sent = try world.send(text.precomposedStringWithCanonicalMapping, to: "general", as: "ann")
        try world.perform(EditMessage(channel: "general", message: sent.messageId, text: text), as: "ann")
        let stored = try world.perform(ListMessages(channel: "general"), as: "ann").messages.map { Array($0.text.utf8) }
        #expect(stored == [Array(text.utf8)])
    }

    @Test("SB-59 a deletion leaves the place and removes the content")
    func deletes() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        let operation = SendMessage(
            channel: "general", clientId: "c", text: "hi", customType: "t", data: "d", metadata: ["a": 1], tags: ["x"])
        let sent = try world.perform(operation, as: "bob")
        world.advance(milliseconds: 5)
        let deleted = try world.perform(DeleteMessage(channel: "general", message: sent.messageId), as: "bob")
        let expected = Message(
            messageId: sent.messageId, channelId: "general", seq: 2, changeSeq: 3, sender: "bob", clientId: "c", text: "",
            createdAt: sent.createdAt, deletedAt: world.now)
        #expect(deleted == expected)
        #expect(try world.perform(ListMessages(channel: "general"), as: "ann").messages == [expected])
        #expect(try world.code(EditMessage(channel: "general", message: sent.messageId, text: "back"), as: "bob") == .notFound)
        #expect(try world.dump().contains { $0.contains("\"a\":1") || $0.contains("|hi|") } == false)
    }

    @Test("a message of another channel isn't found")
    func otherChannel() throws {
        let world = try CoreWorld()
        for channel in ["a", "b"] as [ChannelID] { try world.channel(channel, owner: "ann") }
        let message = try world.send("x", to: "a", as: "ann").messageId
        let codes = try [
            world.code(EditMessage(channel: "b", message: message, text: "y"), as: "ann"),
            world.code(DeleteMessage(channel: "b", message: message), as: "ann"),
        ]
        #expect(codes == [.notFound, .notFound])
    }

    @Test("AM-10 the time of the last activity never goes back, even if the clock does")
    func lastActivity() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        let before = world.now
        world.advance(milliseconds: -10_000)
        try world.send("x", to: "general", as: "ann")
        #expect(try world.perform(GetChannel(channel: "general"), as: "ann").channel.counters.lastActivity == before)
    }

    @Test(
        "MN-09 SB-58 R24 no message is edited or deleted, also for oneself, before it was sent or edited, even if the clock goes back"
    )
    func changesInTime() throws {
        let world = try CoreWorld()
        world.options.versionSeconds = 3600
        world.options.undeletionSeconds = 3600
        try world.channel("general", owner: "ann")
        let sent = try world.send("x", to: "general", as: "ann")
        world.advance(milliseconds: -10_000)
        let edited = try world.perform(EditMessage(channel: "general", message: sent.messageId, text: "y"), as: "ann")
        #expect(edited.editedAt == sent.createdAt)
        world.advance(milliseconds: 15_000)
        let again = try world.perform(EditMessage(channel: "general", message: sent.messageId, text: "z"), as: "ann")
        #expect(try #require(again.editedAt) > sent.createdAt)
        world.advance(milliseconds: -1000)
        let deleted = try world.perform(DeleteMessage(channel: "general", message: sent.messageId), as: "ann")
        #expect(deleted.deletedAt == again.editedAt)
        let versions = ListMessageVersions(channel: "general", message: sent.messageId)
        let replacedAt = try world.perform(versions, as: "ann").versions.map { Optional($0.replacedAt) }
        #expect(replacedAt == [deleted.deletedAt, again.editedAt, edited.editedAt])

        let second = try world.send("second", to: "general", as: "ann")
        world.advance(milliseconds: -1000)
        let hidden = try world.perform(DeleteMessagesForMe(channel: "general", messages: [second.messageId]), as: "ann")
        #expect(hidden.messages.map(\.deletedAt) == [second.createdAt])
        let event = try #require(world.events(to: .user("ann")).last)
        #expect(event.rows.ownDeletions?.map(\.deletedAt) == [second.createdAt])
    }

    @Test(
        "MN-10 a message deleted for all or for oneself can't be replied to; a repeat is answered as it is shown"
    )
    func deletedParent() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["ben"])
        let (first, second) = (try world.send("1", to: "general", as: "ann"), try world.send("2", to: "general", as: "ann"))
        func answer(_ parent: Message, _ id: ClientID) -> SendMessage {
            SendMessage(channel: "general", clientId: id, text: "yes", parentId: parent.messageId)
        }
        #expect(try world.perform(answer(first, "a"), as: "ben").parentId == first.messageId)
        try world.perform(DeleteMessage(channel: "general", message: first.messageId), as: "ann")
        try world.perform(DeleteMessagesForMe(channel: "general", messages: [second.messageId]), as: "ben")
        let before = try world.dump()
        for parent in [first, second] {
            let refusal = try world.refusal(answer(parent, "b"), as: "ben")
            #expect(refusal?.code == .notFound && refusal?.field == "parentId")
        }
        // A stored reply is acknowledged again, whatever happened to its parent.
        #expect(try world.perform(answer(first, "a"), as: "ben").parentId == first.messageId)
        #expect(try world.dump() == before)
        #expect(try world.perform(answer(second, "c"), as: "ann").parentId == second.messageId)
        // A sender who deleted their own message for themselves doesn't get its text.
        try world.perform(DeleteMessagesForMe(channel: "general", messages: [second.messageId]), as: "ann")
        let again = try world.perform(SendMessage(channel: "general", clientId: second.clientId, text: "2"), as: "ann")
        #expect(again.messageId == second.messageId && again.text == "" && again.isDeletedForMe)
    }
}
