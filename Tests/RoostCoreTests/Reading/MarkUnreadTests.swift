import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@Suite("Marking as unread")
struct MarkUnreadTests {
    private func world() throws -> CoreWorld {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        for text in ["a", "b", "c"] { try world.send(text, to: "general", as: "ann") }
        try world.send("mine", to: "general", as: "bob")
        try world.perform(MarkRead(channel: "general"), as: "bob")
        return world
    }

    @Test("R25 X-34 a user's own messages from before they joined stay read when they mark as unread from before them")
    func sentBeforeJoining() throws {
        let world = try CoreWorld()
        try world.channel("stage", type: .livestream, owner: "ann")
        try world.user("zoe")
        for text in ["a", "b"] { try world.send(text, to: "stage", as: "ann") }
        try world.send("mine", to: "stage", as: "zoe")
        try world.perform(JoinChannel(channel: "stage"), as: "zoe")
        try world.send("c", to: "stage", as: "ann")
        #expect(try world.perform(MarkUnread(channel: "stage", seq: 2), as: "zoe").unreadCount == 3)
    }

    @Test("R25 messages from a seq on are unread again, except the reader's own; only the reader is notified, others see no less")
    func marks() throws {
        let world = try world()
        let readAt = world.now
        world.advance(milliseconds: 5)
        var answer: UnreadCount?
        let notices = try world.notices { answer = try world.perform(MarkUnread(channel: "general", seq: 3), as: "bob") }
        #expect(answer == UnreadCount(channelId: "general", unreadCount: 2, readSeq: 2))
        guard case .event(let event, .user("bob"))? = notices.first else { throw Missed("\(notices)") }
        #expect(notices.dropFirst() == [.markedUnread("bob", "general", at: event.seq)])
        let row = event.rows.memberships?.first
        #expect(event.kind == .readingUnmarked && row?.readSeq == 2 && row?.lastReadAt == readAt)
        #expect(try world.perform(GetTotalUnread(), as: "bob") == TotalUnread(unreadCount: 2, unreadChannelCount: 1))
        // Unread messages stay unread, now and later: reading ends.
        let again = try world.notices { try world.perform(MarkUnread(channel: "general", seq: 4), as: "bob") }
        #expect(again == [.markedUnread("bob", "general", at: event.seq)])
        #expect(try world.perform(MarkUnread(channel: "general", seq: 0), as: "bob").unreadCount == 3)
        #expect(
            try world.perform(MarkRead(channel: "general", seq: 3), as: "bob")
                == UnreadCount(channelId: "general", unreadCount: 1, readSeq: 3))
    }

    @Test("R25 R27 reading again after a mark as unread is sent to others only beyond the former position")
    func readsAgain() throws {
        let world = try world()
        func reported(_ seq: Seq?) throws -> [Seq] {
            try world.notices { try world.perform(MarkRead(channel: "general", seq: seq), as: "bob") }.compactMap { notice in
                if case .read(let position, _) = notice { position.readSeq } else { nil }
            }
        }
        let head = try world.perform(GetUnread(channel: "general"), as: "bob").readSeq
        try world.perform(MarkUnread(channel: "general", seq: 2), as: "bob")
        #expect(try reported(3) == [] && reported(nil) == [])
        try world.send("new", to: "general", as: "ann")
        #expect(try reported(nil) == [head + 1])
    }

    @Test("R25 MN-16 a mention is unread again with its message, and messages hidden from the caller stay read")
    func edges() throws {
        let world = try world()
        let mention = SendMessage(channel: "general", clientId: "m", text: "@bob", mentionees: [.users(["bob"])])
        let sent = try world.perform(mention, as: "ann")
        #expect(try world.perform(MarkRead(channel: "general"), as: "bob").hasMention == false)
        #expect(try world.perform(MarkUnread(channel: "general", seq: sent.seq), as: "bob").hasMention)
        try world.perform(ResetHistory(channel: "general"), as: "bob")
        #expect(try world.perform(MarkUnread(channel: "general", seq: 1), as: "bob").unreadCount == 0)
        try world.send("later", to: "general", as: "ann")
        try world.perform(MarkRead(channel: "general"), as: "bob")
        #expect(try world.perform(MarkUnread(channel: "general", seq: 1), as: "bob").unreadCount == 1)
        // Messages deleted for good don't count.
        try world.perform(PurgeMessage(channel: "general", message: sent.messageId), as: "ann")
        #expect(try world.perform(MarkUnread(channel: "general", seq: 1), as: "bob").unreadCount == 1)
    }

    @Test("R25 R34 a mark far back counts the caller's own messages after it, found by their sender, like one that is near")
    func farBack() throws {
        let world = try world()
        let before = try world.perform(GetUnread(channel: "general"), as: "bob").readSeq
        var others = 0
        for number in 0..<1100 {
            let isOwn = number.isMultiple(of: 100)
            let sent = try world.send("\(number)", to: "general", as: isOwn ? "bob" : "ann")
            if !isOwn { others += 1 }
            if number == 500 { try world.perform(PurgeMessage(channel: "general", message: sent.messageId), as: "bob") }
            if number == 501 { try world.perform(PurgeMessage(channel: "general", message: sent.messageId), as: "ann") }
        }
        try world.perform(MarkRead(channel: "general"), as: "bob")
        #expect(try world.perform(MarkUnread(channel: "general", seq: before + 1), as: "bob").unreadCount == others - 1)
    }

    @Test("R25 bad seqs, strangers, and channels that keep nothing are refused")
    func refusals() throws {
        let world = try world()
        try world.user("zoe")
        try world.perform(CreateChannel(channel: "talk", type: .group, users: ["bob"], isEphemeral: true), as: "ann")
        #expect(try world.code(MarkUnread(channel: "general", seq: -1), as: "bob") == .invalidArgument)
        #expect(try world.code(MarkUnread(channel: "general", seq: 1), as: "zoe") == .notMember)
        #expect(try world.code(MarkUnread(channel: "nowhere", seq: 1), as: "bob") == .notFound)
        #expect(try world.code(MarkUnread(channel: "talk", seq: 1), as: "bob") == .featureDisabled)
    }
}
