import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@Suite("Who has read")
struct ListReadersTests {
    private func world() throws -> CoreWorld {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob", "cid", "dan"])
        return world
    }

    private func positions(_ world: CoreWorld, of message: Message? = nil, as user: UserID = "ann") throws -> [String] {
        try world.perform(ListReaders(channel: "general", message: message?.messageId), as: user).items
            .map { "\($0.userId) \($0.readSeq)" }
    }

    @Test("SB-02 R26 the members' positions, or who has read a message without its sender, page by page")
    func readers() throws {
        let world = try world()
        let first = try world.send("1", to: "general", as: "ann")
        let second = try world.send("2", to: "general", as: "bob")
        try world.perform(MarkRead(channel: "general", seq: first.seq), as: "cid")
        try world.perform(MarkRead(channel: "general"), as: "dan")
        #expect(try positions(world) == ["ann 1", "bob 1", "cid \(first.seq)", "dan \(second.seq)"])
        #expect(try positions(world, of: first) == ["cid \(first.seq)", "dan \(second.seq)"])
        #expect(try positions(world, of: second, as: "cid") == ["dan \(second.seq)"])
        // The sender isn't among the readers of their own message.
        try world.perform(MarkRead(channel: "general"), as: "bob")
        #expect(try positions(world, of: second) == ["dan \(second.seq)"])

        var list = ListReaders(channel: "general", limit: 3)
        let page = try world.perform(list, as: "ann")
        #expect(page.items.count == 3 && page.nextCursor != nil && page.users?.map(\.userId) == ["ann", "bob", "cid"])
        list.cursor = page.nextCursor
        let last = try world.perform(list, as: "ann")
        #expect(last.items.map(\.userId) == ["dan"] && last.nextCursor == nil && last.items[0].lastReadAt == world.now)
        list.message = first.messageId
        #expect(try world.code(list, as: "ann") == .invalidArgument, "another query's cursor")
    }

    @Test("SB-02 R26 a user who joined after a message isn't among its readers, whether they may see it or not")
    func newcomers() throws {
        let world = try world()
        let sent = try world.send("1", to: "general", as: "ann")
        for (user, isHidden) in [("eve", true), ("fay", false)] as [(UserID, Bool)] {
            try world.user(user)
            try world.perform(AddMembers(channel: "general", users: [user], hideHistory: isHidden), as: "ann")
        }
        #expect(try positions(world, of: sent) == [])
        let next = try world.send("2", to: "general", as: "ann")
        try world.perform(MarkRead(channel: "general"), as: "eve")
        #expect(try positions(world, of: sent) == [] && positions(world, of: next) == ["eve \(next.seq)"])
    }

    @Test("SB-02 R26 marking as unread changes nothing for others: a later list says the same as the events")
    func unmarked() throws {
        let world = try world()
        let sent = try ["1", "2", "3"].map { try world.send($0, to: "general", as: "ann") }
        try world.perform(MarkRead(channel: "general"), as: "cid")
        let reported = try positions(world)
        func read(as user: UserID) throws -> ReadState? {
            try world.perform(WatchChannel(channel: "general"), as: user, connection: 1).read["cid"]
        }
        let seen = try read(as: "ann")
        try world.perform(MarkUnread(channel: "general", seq: sent[1].seq), as: "cid")
        #expect(try positions(world) == reported && positions(world, of: sent[2]) == ["cid \(sent[2].seq)"])
        #expect(try read(as: "ann") == seen)
        // The user who marked it sees it.
        #expect(try positions(world, as: "cid").contains("cid \(sent[0].seq)"))
        #expect(try read(as: "cid")?.unreadCount == 2)
        // Reading a part of it again takes nothing back either, and reading further counts.
        world.advance(milliseconds: 1000)
        try world.perform(MarkRead(channel: "general", seq: sent[1].seq), as: "cid")
        #expect(try read(as: "ann") == seen)
        try world.perform(MarkRead(channel: "general", seq: sent[2].seq), as: "cid")
        #expect(try read(as: "ann") == seen && read(as: "cid")?.lastReadAt == seen?.lastReadAt)
        try world.perform(MarkUnread(channel: "general", seq: sent[1].seq), as: "cid")
        let last = try world.send("4", to: "general", as: "ann")
        #expect(try read(as: "ann")?.unreadCount == 1)
        try world.perform(PurgeMessage(channel: "general", message: last.messageId), as: "ann")
        #expect(try read(as: "ann")?.unreadCount == 0)
        try world.perform(MarkRead(channel: "general"), as: "cid")
        #expect(try read(as: "ann")?.readSeq == read(as: "cid")?.readSeq)
        // To others, messages that the user then sends themselves aren't unread.
        try world.perform(MarkUnread(channel: "general", seq: sent[1].seq), as: "cid")
        try world.send("5", to: "general", as: "cid")
        #expect(try read(as: "ann")?.unreadCount == 0 && read(as: "cid")?.unreadCount == 2)
    }

    @Test("SB-02 AM-37 a deleted channel has no members, and therefore no readers")
    func deleted() throws {
        let world = try world()
        try world.perform(MarkRead(channel: "general"), as: "cid")
        try world.perform(DeleteChannel(channel: "general"), as: "ann")
        #expect(try world.perform(ListReaders(channel: "general"), as: "cid").items == [])
    }

    @Test("SB-02 readers aren't named to users who may not list members")
    func unlisted() throws {
        let world = try CoreWorld()
        for user in ["ann", "bob", "mod"] as [UserID] { try world.user(user) }
        let closed = PolicyChanges(discovery: .admins, read: .members)
        try world.perform(PutChannelType(type: "closed", basedOn: .community, policy: closed), as: "root", role: .admin)
        try world.perform(CreateChannel(channel: "general", type: "closed", users: ["bob"]), as: "ann")
        let sent = try world.send("1", to: "general", as: "ann")
        try world.perform(MarkRead(channel: "general"), as: "bob")
        #expect(try world.code(ListMembers(channel: "general"), as: "mod", role: .moderator) == .kindForbids)
        let readers: [(of: MessageID?, users: [UserID])] = [(nil, ["ann", "bob"]), (sent.messageId, ["bob"])]
        for (message, users) in readers {
            let list = ListReaders(channel: "general", message: message)
            let page = try world.perform(list, as: "mod", role: .moderator)
            #expect(page.items == [] && page.users?.isEmpty != false)
            // Members know the others.
            #expect(try world.perform(list, as: "ann").items.map(\.userId) == users)
        }
    }

    @Test("a user's reading isn't sent to others while they don't share it, and is again once they do")
    func sharing() throws {
        let world = try world()
        let sent = try world.send("1", to: "general", as: "ann")
        try world.perform(UpdatePreferences(sharesReading: false), as: "bob")
        func mark(_ user: UserID) throws -> [Notice] {
            try world.notices { try world.perform(MarkRead(channel: "general"), as: user) }
                .filter { if case .read = $0 { true } else { false } }
        }
        #expect(try mark("bob") == [])
        #expect(
            try mark("cid") == [.read(ReadPosition(userId: "cid", readSeq: sent.seq, lastReadAt: world.now), "general")])
        // Nothing moved.
        #expect(try mark("cid") == [])
        #expect(try positions(world, of: sent) == ["cid \(sent.seq)"])
        #expect(
            try world.perform(WatchChannel(channel: "general"), as: "ann", connection: 1).read.keys.sorted() == [
                "ann", "cid", "dan",
            ])
        #expect(try world.perform(WatchChannel(channel: "general"), as: "bob", connection: 1).read["bob"]?.readSeq == sent.seq)
        try world.perform(UpdatePreferences(sharesReading: true), as: "bob")
        #expect(try positions(world, of: sent) == ["bob \(sent.seq)", "cid \(sent.seq)"])
    }

    @Test("ST-05 X-32 readers are neither sent nor listed if the policy has no read events, or in a channel of more than 1,000")
    func refusals() throws {
        let world = try world()
        let sent = try world.send("1", to: "general", as: "ann")
        let list = ListReaders(channel: "general", message: sent.messageId)
        let typing = StartTyping(channel: "general")
        try world.perform(
            UpdateChannel(channel: "general", policy: PolicyChanges(typingEvents: false, readEvents: false)), as: "ann")
        for (operation, rule) in [(list as any Handled, "readEvents"), (typing, "typingEvents")] {
            let refusal = try world.refusal(operation, as: "ann")
            #expect(refusal?.code == .featureDisabled && refusal?.rule == rule)
        }
        let notices = try world.notices { try world.perform(MarkRead(channel: "general"), as: "bob") }
        #expect(!notices.contains { $0.isRead })
        #expect(try world.perform(WatchChannel(channel: "general"), as: "ann", connection: 1).read.keys.sorted() == ["ann"])

        try world.perform(UpdateChannel(channel: "general", policy: PolicyChanges(typingEvents: true, readEvents: true)), as: "ann")
        #expect(try world.code(list, as: "ann") == nil)
        // A channel of exactly as many members has readers.
        try world.execute("UPDATE channel_heads SET member_count = \(Limits.largeChannelMembers)")
        #expect(try world.code(list, as: "ann") == nil)
        try world.send("at the limit", to: "general", as: "ann")
        #expect(try world.notices { try world.perform(MarkRead(channel: "general"), as: "bob") }.contains { $0.isRead })
        try world.execute("UPDATE channel_heads SET member_count = \(Limits.largeChannelMembers + 1)")
        #expect(try world.refusal(list, as: "ann")?.limit == Int64(Limits.largeChannelMembers))
        // What can't be requested isn't sent either.
        try world.send("2", to: "general", as: "ann")
        #expect(try world.notices { try world.perform(MarkRead(channel: "general"), as: "bob") }.allSatisfy { !$0.isRead })
        try world.execute("UPDATE channel_heads SET member_count = 4")
        try world.send("3", to: "general", as: "ann")
        #expect(try world.notices { try world.perform(MarkRead(channel: "general"), as: "bob") }.contains { $0.isRead })

        #expect(try world.code(ListReaders(channel: "general", message: MessageID(rawValue: 1)), as: "ann") == .notFound)
        #expect(try world.code(ListReaders(channel: "general", limit: 101), as: "ann") == .limitExceeded)
        try world.user("zoe")
        #expect(try world.code(list, as: "zoe") == .notMember)
    }

    @Test("a user who doesn't share their typing may type, and nobody is notified")
    func typing() throws {
        let world = try world()
        try world.perform(UpdatePreferences(sharesTyping: false), as: "bob")
        #expect(try world.notices { try world.perform(StartTyping(channel: "general"), as: "bob") } == [])
        #expect(
            try world.notices { try world.perform(StartTyping(channel: "general"), as: "cid") } == [.typing("cid", "general")])
    }
}

extension Notice {
    /// Whether it is about a read position.
    fileprivate var isRead: Bool { if case .read = self { true } else { false } }
}
