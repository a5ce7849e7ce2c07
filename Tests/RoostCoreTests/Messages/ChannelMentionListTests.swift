import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@Suite("Mentions: the list of one channel")
struct ChannelMentionListTests {
    private static func world() throws -> CoreWorld {
        let world = try CoreWorld()
        for channel in ["general", "other"] as [ChannelID] { try world.channel(channel, owner: "ann", members: ["ben", "cid"]) }
        return world
    }

    /// Sends a message a moment after the previous one.
    @discardableResult
    private func send(
        _ text: String, _ mentionees: [Mentionee]?, to channel: ChannelID = "general", as sender: UserID = "ann",
        in world: CoreWorld
    ) throws -> Message {
        world.advance(milliseconds: 2)
        return try world.perform(
            SendMessage(channel: channel, clientId: ClientID(text), text: text, mentionees: mentionees), as: sender)
    }

    private func listed(_ world: CoreWorld, as user: UserID = "ben", limit: Int = 100) throws -> [String] {
        var texts: [String] = []
        var cursor: String?
        repeat {
            let page = try world.perform(ListMentions(channel: "general", limit: limit, cursor: cursor), as: user)
            #expect(page.items.count <= limit)
            texts += page.items.map(\.text)
            cursor = page.nextCursor
        } while cursor != nil
        return texts
    }

    @Test(
        "MN-12 MN-16 R34 a channel's list has mentions of its user by name and with the channel, newest first, in pages of any size"
    )
    func both() throws {
        let world = try Self.world()
        try send("name", [.users(["ben"])], in: world)
        try send("all", [.channel], in: world)
        try send("nobody", nil, in: world)
        try send("elsewhere", [.channel, .users(["ben"])], to: "other", in: world)
        try send("mine", [.channel], as: "ben", in: world)
        try send("somebody else", [.users(["cid"])], in: world)
        try send("both", [.channel, .users(["ben"])], in: world)
        for limit in [1, 2, 3, 100] { #expect(try listed(world, limit: limit) == ["both", "all", "name"]) }
        #expect(try listed(world, as: "cid") == ["both", "somebody else", "mine", "all"])
        #expect(try listed(world, as: "ann") == ["mine"])
        let page = try world.perform(ListMentions(channel: "general"), as: "ben")
        #expect(page.users?.map(\.userId) == ["ann", "ben"])
        // Across channels only mentions by name are listed, as before.
        #expect(try world.perform(ListMentions(), as: "ben").items.map(\.text) == ["both", "elsewhere", "name"])
    }

    @Test("MN-11 MN-16 a message edited to mention is listed once, by when it began to, until its mentions end")
    func edits() throws {
        let world = try Self.world()
        let old = try send("old", [.users(["ben"])], in: world)
        let other = try send("other", [.channel], in: world)
        func edit(_ message: Message, _ mentionees: [Mentionee]) throws {
            try world.perform(
                EditMessage(channel: "general", message: message.messageId, mentionees: mentionees), as: "ann")
        }
        try edit(old, [.users(["ben"]), .channel])
        for limit in [1, 100] { #expect(try listed(world, limit: limit) == ["old", "other"]) }
        try edit(other, [.channel, .users(["ben"])])
        for limit in [1, 100] { #expect(try listed(world, limit: limit) == ["other", "old"]) }
        try edit(other, [.channel])
        #expect(try listed(world) == ["old", "other"])
        try edit(old, [])
        #expect(try listed(world) == ["other"])
        try world.perform(DeleteMessage(channel: "general", message: other.messageId), as: "ann")
        #expect(try listed(world) == [])
    }

    @Test("MN-16 SB-59 messages that their reader deleted or can't see, and those deleted for good, are skipped")
    func gone() throws {
        let world = try Self.world()
        let sent = try (1...4).map { try send("\($0)", [.channel], in: world) }
        try world.perform(DeleteMessagesForMe(channel: "general", messages: [sent[2].messageId]), as: "ben")
        try world.perform(PurgeMessage(channel: "general", message: sent[1].messageId), as: "ann")
        #expect(try listed(world) == ["4", "1"])
        #expect(try listed(world, as: "cid") == ["4", "3", "1"])
        try world.perform(ResetHistory(channel: "general"), as: "ben")
        #expect(try listed(world) == [])
    }

    @Test("MN-16 only users who may read the channel get the list, with the usual limits of pages and its own cursors")
    func refusals() throws {
        let world = try Self.world()
        try world.user("eve")
        for number in 0..<3 { try send("\(number)", [.channel, .users(["ben"])], in: world) }
        #expect(try world.code(ListMentions(channel: "general"), as: "eve") == .notMember)
        #expect(try world.code(ListMentions(channel: "nowhere"), as: "eve") == .notFound)
        #expect(try world.code(ListMentions(channel: ""), as: "ben") == .invalidArgument)
        #expect(try world.code(ListMentions(channel: "general", limit: 101), as: "ben") == .limitExceeded)
        let cursor = try world.perform(ListMentions(channel: "general", limit: 1), as: "ben").nextCursor
        #expect(cursor != nil)
        #expect(try world.code(ListMentions(channel: "other", cursor: cursor), as: "ben") == .invalidArgument)
        #expect(try world.code(ListMentions(cursor: cursor), as: "ben") == .invalidArgument)
    }

    @Test("MN-12 MN-16 where everyone may read, the lists are empty for non-members and former members")
    func nonMembers() throws {
        let world = try CoreWorld()
        try world.channel("general", type: .livestream, owner: "ann", members: ["ben"])
        try world.user("eve")
        try send("all", [.channel], in: world)
        try send("name", [.users(["ben"])], in: world)
        func byName() throws -> [String] { try world.perform(ListMentions(), as: "ben").items.map(\.text) }
        #expect(try listed(world) == ["name", "all"] && byName() == ["name"])
        #expect(try world.perform(ListMessages(channel: "general"), as: "eve").messages.map(\.text) == ["all", "name"])
        #expect(try listed(world, as: "eve") == [])
        try world.perform(LeaveChannel(channel: "general"), as: "ben")
        #expect(try listed(world) == [] && byName() == [])
    }

    @Test("MN-16 thousands of a user's own mentions of a channel are skipped in bounded steps")
    func own() throws {
        let world = try Self.world()
        try send("first", [.channel], in: world)
        for number in 0..<120 { try send("own \(number)", [.channel], as: "ben", in: world) }
        try send("last", [.channel], in: world)
        #expect(try listed(world, limit: 2) == ["last", "first"])
    }
}
