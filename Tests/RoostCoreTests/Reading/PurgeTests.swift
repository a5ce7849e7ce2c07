import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

/// Messages that are deleted for good.
@Suite("Deleting messages for good")
struct PurgeTests {
    /// A channel of ann's and bob's with five messages of ann's, at 2 to 6.
    private func world() throws -> (world: CoreWorld, messages: [Message]) {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        return (world, try (1...5).map { try world.send("\($0)", to: "general", as: "ann") })
    }

    private func purge(_ messages: Message..., in world: CoreWorld) throws {
        for message in messages {
            try world.perform(PurgeMessage(channel: "general", message: message.messageId), as: "root", role: .admin)
        }
    }

    /// Bob's unread messages, from every operation that counts them.
    private func unread(_ world: CoreWorld, as user: UserID = "bob") throws -> [Int] {
        let listed = try world.perform(QueryChannels(), as: user).items
        let own = try world.perform(GetMyChanges(after: 0), as: user).rows.memberships?.last
        let changes = try world.perform(GetChannelChanges(channel: "general", after: 0), as: user)
        let counters = try #require(changes.rows.counters)
        return [
            try world.perform(GetUnread(channel: "general"), as: user).unreadCount,
            try world.perform(GetTotalUnread(), as: user).unreadCount,
            try world.perform(GetChannel(channel: "general"), as: user).unreadCount,
            try world.perform(WatchChannel(channel: "general"), as: user, connection: 1).read[user.rawValue]?.unreadCount ?? -1,
            listed.first?.unreadCount ?? -1,
            own.map { Unread.count(in: counters, for: $0) } ?? -1,
            changes.rows.memberships?.last.map { Unread.count(in: counters, for: $0) } ?? -1,
        ]
    }

    private func all(_ count: Int) -> [Int] { Array(repeating: count, count: 7) }

    @Test("AM-43 AM-44 X-34 a message deleted for good is unread nowhere, and stays so however the user reads on")
    func unread() throws {
        let (world, messages) = try world()
        try purge(messages[1], messages[3], in: world)
        #expect(try unread(world) == all(3))
        // Up to a purged one, which leaves the messages at 4 and 6.
        #expect(try world.perform(MarkRead(channel: "general", seq: 3), as: "bob").unreadCount == 2)
        #expect(try unread(world) == all(2))
        #expect(try world.perform(MarkRead(channel: "general", seq: 4), as: "bob").unreadCount == 1)
        #expect(try unread(world) == all(1))
        try purge(messages[4], in: world)
        #expect(try unread(world) == all(0))
        #expect(try world.perform(GetTotalUnread(), as: "bob") == TotalUnread(unreadCount: 0, unreadChannelCount: 0))
        // Purging a message that was read changes nothing.
        try purge(messages[0], in: world)
        #expect(try unread(world) == all(0))
        try world.send("new", to: "general", as: "ann")
        #expect(try unread(world) == all(1))
        #expect(try world.perform(MarkRead(channel: "general"), as: "bob").unreadCount == 0)
        let counters = try world.perform(GetChannel(channel: "general"), as: "bob").channel.counters
        #expect(counters.messageCount == 2 && counters.ordinal == 6)
    }

    @Test("I8 a user's own message deleted for good was never unread, and isn't subtracted from the unread messages of others")
    func own() throws {
        let (world, messages) = try world()
        let byBob = try world.send("by bob", to: "general", as: "bob")
        try purge(byBob, messages[0], in: world)
        #expect(try unread(world) == all(4))
        #expect(try unread(world, as: "ann") == all(0))
        #expect(try world.perform(MarkRead(channel: "general", seq: 4), as: "bob").unreadCount == 2)
        #expect(try unread(world) == all(2))
    }

    @Test("SB-27 SB-29 hiding, leaving and rejoining keep the count right")
    func standing() throws {
        let (world, messages) = try world()
        try purge(messages[2], in: world)
        for allowed in [true, false] {
            let hidden = try world.perform(HideChannel(channel: "general", allowAutoUnhide: allowed), as: "bob")
            #expect(hidden.readCount == 1)
        }
        try world.perform(UnhideChannel(channel: "general"), as: "bob")
        #expect(try unread(world) == all(4))
        // A channel that came back stays, even if the message that brought it back is gone.
        try world.perform(HideChannel(channel: "general"), as: "bob")
        let news = try world.send("news", to: "general", as: "ann")
        #expect(try world.perform(QueryChannels(), as: "bob").items.count == 1)
        try purge(news, in: world)
        #expect(try world.perform(QueryChannels(), as: "bob").items.count == 1)
        try world.perform(SetMemberRole(channel: "general", users: ["bob"], role: .operator), as: "ann")
        #expect(try unread(world) == all(4))
        try world.perform(HideChannel(channel: "general", hidePreviousMessages: true), as: "bob")
        try world.perform(UnhideChannel(channel: "general"), as: "bob")
        #expect(try unread(world) == all(0))
        try world.perform(LeaveChannel(channel: "general"), as: "bob")
        let sent = try #require(world.events(to: .user("bob")).last?.rows.memberships?.last)
        try purge(messages[0], in: world)
        let left = try #require(try world.perform(GetMyChanges(after: 0), as: "bob").rows.memberships?.last)
        #expect(left.comparable == sent.comparable)
        try world.perform(JoinChannel(channel: "general"), as: "bob")
        #expect(try unread(world) == all(0))
    }

    @Test("AM-43 lists of unread channels leave out one whose unread messages are all deleted for good")
    func lists() throws {
        let (world, messages) = try world()
        try world.channel("other", owner: "ann", members: ["bob"])
        try world.send("other", to: "other", as: "ann")
        func listed(_ query: QueryChannels) throws -> [ChannelID] {
            try world.perform(query, as: "bob").items.map(\.channel.channelId)
        }
        var unreadOnly = QueryChannels()
        unreadOnly.unreadOnly = true
        world.advance(milliseconds: 1)
        try world.send("last", to: "general", as: "bob")
        #expect(try listed(unreadOnly) == ["general", "other"])
        for message in messages { try purge(message, in: world) }
        #expect(try listed(unreadOnly) == ["other"])
        #expect(try listed(QueryChannels(sort: .unreadFirst)) == ["other", "general"])
        #expect(try world.perform(GetTotalUnread(), as: "bob") == TotalUnread(unreadCount: 1, unreadChannelCount: 1))
    }

    @Test("AM-43 AM-44 messages deleted for good are counted right at the ends of the ranges that are counted together")
    func blocks() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        var messages: [Message] = []
        for number in 0..<2100 { messages.append(try world.send("\(number)", to: "general", as: number % 5 == 0 ? "bob" : "ann")) }
        // All around the ends of the first two ranges, and every third elsewhere.
        let purged = messages.filter { $0.seq % 3 == 0 || (1021...1026).contains($0.seq) || (2045...2050).contains($0.seq) }
        for message in purged { try purge(message, in: world) }
        let gone = Set(purged.map(\.seq))
        func expected(after seq: Seq) -> Int { messages.count { $0.seq > seq && $0.sender == "ann" && !gone.contains($0.seq) } }
        #expect(try unread(world) == all(expected(after: 0)))
        for seq in [2, 1022, 1023, 1024, 1025, 1030, 2046, 2047, 2048, 2049, 2090] as [Seq] {
            #expect(
                try world.perform(MarkRead(channel: "general", seq: seq), as: "bob").unreadCount == expected(after: seq), "\(seq)")
            #expect(try unread(world) == all(expected(after: seq)), "\(seq)")
        }
        for seq in [2048, 1025, 1024, 3] as [Seq] {
            try world.perform(MarkUnread(channel: "general", seq: seq), as: "bob")
            #expect(try unread(world) == all(expected(after: seq - 1)), "\(seq)")
        }
        // A database from before these counts gets them at its start.
        try world.execute("DROP TABLE purged_counts")
        try world.execute("DELETE FROM migrations WHERE name = '0028 purged counts'")
        try world.restart()
        #expect(try unread(world) == all(expected(after: 2)))
    }

    @Test("I2 promise 3 a purged message that is sent again isn't stored again")
    func clientID() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        let send = SendMessage(channel: "general", clientId: "once", text: "secret")
        let message = try world.perform(send, as: "bob")
        try purge(message, in: world)
        let before = try world.dump()
        let again = try world.perform(send, as: "bob")
        #expect(again.messageId == message.messageId && again.seq == message.seq && again.text == "" && again.deletedAt != nil)
        // By its other name, and after its sender has left.
        #expect(try world.perform(SendMessage(channel: "community:general", clientId: "once", text: "x"), as: "bob") == again)
        #expect(try world.dump() == before)
        try world.perform(LeaveChannel(channel: "general"), as: "bob")
        #expect(try world.perform(send, as: "bob").messageId == message.messageId)
        // None of its text is left in any table.
        #expect(try world.dump().allSatisfy { !$0.contains("secret") })
        #expect(try world.code(PurgeMessage(channel: "general", message: message.messageId), as: "ann") == .notFound)
    }

    @Test("I3 changes bring the places page by page, resuming counts existing messages, and a fresh client gets none of it")
    func catchingUp() throws {
        let (world, messages) = try world()
        let head = try world.perform(GetChannel(channel: "general"), as: "bob").channel.counters.seq
        try purge(messages[0], messages[4], messages[2], in: world)
        var places: [PurgedMessage] = []
        var position = head
        while true {
            let page = try world.perform(GetChannelChanges(channel: "general", after: position, limit: 1), as: "bob")
            places += page.rows.purged ?? []
            position = page.seq
            guard page.hasMore else { break }
        }
        #expect(
            places == [
                PurgedMessage(seq: 2, changeSeq: 7, counts: true), PurgedMessage(seq: 6, changeSeq: 8, counts: true),
                PurgedMessage(seq: 4, changeSeq: 9, counts: true),
            ])
        let missed = try world.database.read { try $0.missedEvents(of: .channel("general"), after: head, now: world.now) }
        let purged = missed.notices.compactMap { if case .event(let event, _) = $0 { event.rows.purged } else { nil } }
        #expect(purged == [places])
        let fresh = try world.perform(Resume(after: 0, channels: [:]), as: "bob").channels
        #expect(fresh.map(\.rows.purged) == [nil] && fresh.map { $0.rows.messages?.map(\.seq) } == [[3, 5]])
        // 499 were sent since, of which 3 are deleted for good; one more is still no reason to start over.
        for number in 0..<Limits.resumeMessagesPerChannel { try world.send("\(number)", to: "general", as: "ann") }
        func isFresh(after seq: Seq) throws -> [Bool] {
            try world.perform(Resume(after: 0, channels: ["general": seq]), as: "bob").channels.map { $0.isFresh == true }
        }
        #expect(try isFresh(after: 9) == [false])
        #expect(try isFresh(after: 5) == [false])
        #expect(try isFresh(after: 4) == [true])
    }

    @Test("SB-59 I10 all members get only the place; the sender's devices also their unread count")
    func audience() throws {
        let (world, messages) = try world()
        let byBob = try world.send("by bob", to: "general", as: "bob")
        let notices = try world.notices { try world.perform(PurgeMessage(channel: "general", message: byBob.messageId), as: "bob") }
        let events = notices.compactMap { if case .event(let event, _) = $0 { event } else { nil } }
        #expect(events.map(\.stream) == [.user("bob"), .channel("general")] && events.allSatisfy { $0.actor == nil })
        let own = try #require(events.first?.rows.memberships?.first)
        #expect(own.readCount == 1 && own.channelSeq == 8)
        let event = try #require(events.last)
        #expect(event.kind == .messageDeleted && event.rows.messages == nil)
        #expect(event.rows.purged == [PurgedMessage(seq: 7, changeSeq: 8, counts: true)])
        #expect(event.rows.counters?.messageCount == 5 && event.rows.counters?.ordinal == 6)
        // Users who may not see the message get it too: their unread count falls with it.
        #expect(event.concealing(messagesUpTo: .max) == event)
        // Only the sender's row is written.
        let before = try world.rows("SELECT user_id, user_seq FROM members ORDER BY 1") { [$0.string(), "\($0.int64())"] }
        try purge(messages[0], in: world)
        let after = try world.rows("SELECT user_id, user_seq FROM members ORDER BY 1") { [$0.string(), "\($0.int64())"] }
        #expect(before[1] == after[1] && before[0] != after[0])
    }

    @Test(
        "AM-43 I8 a member who may not read counts like the server, since they get the places of deleted messages, and nothing else"
    )
    func withoutReading() throws {
        let (world, messages) = try world()
        try world.perform(UpdateChannel(channel: "general").with { $0.policy = PolicyChanges(read: .owners) }, as: "ann")
        let view = try world.perform(GetChannel(channel: "general"), as: "bob")
        let membership = try #require(view.membership)
        try purge(messages[1], in: world)
        let changes = try world.perform(GetChannelChanges(channel: "general", after: view.channel.counters.seq), as: "bob")
        let purged = try #require(changes.rows.purged)
        #expect(changes.rows.messages == nil && purged == [PurgedMessage(seq: 3, changeSeq: 8, counts: true)])
        let counters = try #require(changes.rows.counters)
        let updated = Unread.advancing(membership, as: "bob", with: [Message](), purged)
        #expect(Unread.count(in: counters, for: updated) == 4)
        #expect(try world.perform(GetUnread(channel: "general"), as: "bob").unreadCount == 4)
        // Their earlier row doesn't reflect it.
        #expect(Unread.count(in: counters, for: membership) == 5)
    }

    @Test("R09 ST-09 a channel is sorted by its newest remaining message, or without any by its creation")
    func lastMessage() throws {
        let world = try CoreWorld()
        for channel in ["old", "new"] as [ChannelID] {
            try world.channel(channel, owner: "ann", members: ["bob"])
            world.advance(milliseconds: 1000)
        }
        let created = try world.perform(GetChannel(channel: "old"), as: "bob").channel.createdAt
        func sorted() throws -> [ChannelID] { try world.perform(QueryChannels(), as: "bob").items.map(\.channel.channelId) }
        func lastMessageAt() throws -> [Timestamp?] {
            [
                try world.perform(GetChannel(channel: "old"), as: "bob").channel.counters.lastMessageAt,
                world.events().last { $0.stream == .channel("old") }?.rows.counters?.lastMessageAt,
            ]
        }
        var sent: [Message] = []
        for number in 1...3 {
            sent.append(try world.send("\(number)", to: "old", as: "ann"))
            world.advance(milliseconds: 1000)
        }
        #expect(try sorted() == ["old", "new"])
        func purge(_ message: Message) throws {
            try world.perform(PurgeMessage(channel: "old", message: message.messageId), as: "ann")
        }
        try purge(sent[0])
        #expect(try lastMessageAt() == [sent[2].createdAt, sent[2].createdAt])
        try purge(sent[2])
        #expect(try lastMessageAt() == [sent[1].createdAt, sent[1].createdAt] && sorted() == ["old", "new"])
        try purge(sent[1])
        #expect(try lastMessageAt() == [nil, nil] && sorted() == ["new", "old"])
        #expect(try world.rows("SELECT list_at FROM channel_heads WHERE channel_id = 'old'") { $0.timestamp() } == [created])
        try world.send("again", to: "old", as: "ann")
        #expect(try sorted() == ["old", "new"])
    }

    /// The tables whose rows are about a message, and how many rows each has about the one at a seq. A new table's kind deletes them; nil for the
    /// places, which stay, and for the seqs of other things.
    private static func counts(about seq: Seq) -> [String: SQL?] {
        func count(_ table: SQL) -> SQL { "SELECT COUNT(*) FROM \(table) WHERE channel_id = 'general' AND seq = \(seq)" }
        return [
            "messages": count("messages"), "mentions": count("mentions"), "own_deletions": count("own_deletions"),
            "message_versions": count("message_versions"),
            // A mention of the channel stays as a place without a mention, for clients that know it.
            "channel_mentions": "\(count("channel_mentions")) AND mention_seq IS NOT NULL",
            "purged_messages": nil, "channel_heads": nil,
        ]
    }

    @Test("SB-59 no table keeps a row about a message deleted for good, and a new table can't be left out of this")
    func everyTable() throws {
        let world = try CoreWorld()
        world.options.versionSeconds = 3600
        try world.channel("general", owner: "ann", members: ["bob", "cid"])
        var tables: [String: Set<String>] = [:]
        let columns: SQL =
            switch TestDatabase.Engine.chosen {
            case .sqlite:
                """
                SELECT t.name, c.name FROM sqlite_master t JOIN pragma_table_info(t.name) c WHERE t.type = 'table'
                """
            case .postgresql:
                "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema()"
            }
        for (table, column) in try world.rows(columns, { ($0.string(), $0.string()) }) { tables[table, default: []].insert(column) }
        let naming = tables.filter { _, columns in
            !columns.isDisjoint(with: ["message_seq", "message_id"]) || columns.isSuperset(of: ["channel_id", "seq"])
        }
        #expect(Set(naming.keys) == Set(Self.counts(about: 0).keys))

        let message = try world.perform(
            SendMessage(channel: "general", clientId: "1", text: "first", mentionees: [.users(["bob"]), .channel]), as: "ann")
        try world.perform(EditMessage(channel: "general", message: message.messageId, text: "second"), as: "ann")
        try world.perform(DeleteMessagesForMe(channel: "general", messages: [message.messageId]), as: "cid")
        for case (let table, let count?) in Self.counts(about: message.seq) {
            #expect(try world.rows(count) { $0.int() } == [1], "\(table)")
        }
        try purge(message, in: world)
        for case (let table, let count?) in Self.counts(about: message.seq) {
            #expect(try world.rows(count) { $0.int() } == [0], "\(table)")
        }
    }
}
