import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

/// Messages that are stored but don't count. No kind of today does so: the rows are written without the rules, as a rule will write them for a kind for
/// which ``Unread/counts(_:)`` is false.
@Suite("What counts")
struct CountingTests {
    /// A channel of ann's and bob's, with one message that counts at 2 and this many after it that don't.
    private func world(silent: Int) throws -> CoreWorld {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        try world.send("counts", to: "general", as: "ann")
        for number in 0..<silent {
            let seq = Seq(3 + number)
            try world.execute(
                """
                INSERT INTO messages (channel_id, seq, message_id, change_seq, ordinal, counts, sender_id, client_id, text, created_at)
                VALUES ('general', \(seq), \(seq), \(seq), 1, 0, 'ann', \("silent-\(number)"), 'silent', 0)
                """)
        }
        try world.execute(
            "UPDATE channel_heads SET seq = seq + \(silent), message_count = message_count + \(silent) WHERE channel_id = 'general'"
        )
        return world
    }

    private func unread(_ world: CoreWorld, as user: UserID = "bob") throws -> [Int] {
        let watched = try world.perform(WatchChannel(channel: "general"), as: user, connection: 1)
        return [
            try world.perform(GetUnread(channel: "general"), as: user).unreadCount,
            try world.perform(GetTotalUnread(), as: user).unreadCount,
            try world.perform(GetChannel(channel: "general"), as: user).unreadCount,
            watched.read[user.rawValue]?.unreadCount ?? -1,
        ]
    }

    @Test("AM-43 AM-44 a message that doesn't count is unread nowhere, but still belongs to the channel")
    func unreadOnly() throws {
        let world = try world(silent: 3)
        #expect(try unread(world) == [1, 1, 1, 1])
        #expect(try world.perform(GetChannel(channel: "general"), as: "bob").channel.counters.messageCount == 4)
        // Up to a place among them, and then to the end.
        #expect(try world.perform(MarkRead(channel: "general", seq: 4), as: "bob").unreadCount == 0)
        #expect(try unread(world) == [0, 0, 0, 0])
        try world.send("counts too", to: "general", as: "ann")
        #expect(try unread(world) == [1, 1, 1, 1])
        #expect(try world.perform(MarkRead(channel: "general"), as: "bob").unreadCount == 0)
    }

    @Test("I8 of the user's own messages after a marked place only those that count are read with it")
    func own() throws {
        let world = try world(silent: 2)
        // Ann has read up to her message at 2: those at 3 and 4 are hers, and count neither as read nor as unread.
        try world.execute("UPDATE members SET read_seq = 1, read_count = 0, last_sent_seq = 4 WHERE user_id = 'ann'")
        try world.execute("INSERT INTO user_heads (user_id, seq) VALUES ('ann', 9) ON CONFLICT (user_id) DO UPDATE SET seq = 9")
        try world.send("by bob", to: "general", as: "bob")
        #expect(try world.perform(MarkRead(channel: "general", seq: 2), as: "ann").unreadCount == 1)
    }

    @Test("SB-27 D-32 messages that don't count bring no hidden channel back, and don't make it unread")
    func hidden() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        try world.perform(HideChannel(channel: "general"), as: "bob")
        try world.execute("UPDATE channel_heads SET message_count = message_count + 1, seq = seq + 1 WHERE channel_id = 'general'")
        func listed(_ hidden: HiddenFilter, unreadOnly: Bool? = nil, includeEmpty: Bool? = nil) throws -> Int {
            var query = QueryChannels(hidden: hidden)
            query.unreadOnly = unreadOnly
            query.includeEmpty = includeEmpty
            return try world.perform(query, as: "bob").items.count
        }
        #expect(try listed(.unhiddenOnly) == 0)
        #expect(try listed(.all, unreadOnly: true) == 0)
        // It isn't empty, though.
        #expect(try listed(.all, includeEmpty: false) == 1)
        try world.send("counts", to: "general", as: "ann")
        #expect(try listed(.unhiddenOnly) == 1)
        #expect(try listed(.all, unreadOnly: true) == 1)
    }

    @Test("a client that has missed many messages starts over, whether they count or not", arguments: [500, 501])
    func resume(silent: Int) throws {
        let world = try world(silent: silent)
        let answer = try world.perform(Resume(after: 0, channels: ["general": 2]), as: "bob")
        #expect(answer.channels.map { $0.isFresh == true } == [silent > Limits.resumeMessagesPerChannel])
    }
}
