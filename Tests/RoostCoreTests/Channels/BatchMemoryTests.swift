import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

/// Messages of one batch read their channel once and write it once, without any visible difference.
@Suite("Batch memory")
struct BatchMemoryTests {
    /// What an operation does before it fails: nothing, a read of deferred writes, or a change beside them.
    private static let faults: [@Sendable (any Transaction) throws -> Void] = [
        { _ in },
        { transaction in _ = try transaction.rows("SELECT seq FROM channel_heads") { $0.int64() } },
        { transaction in try transaction.perform("UPDATE members SET last_sent_seq = 0, read_count = 0") },
    ]

    @Test(
        "I5 D-13 operations leave the same rows and send the same whether each has its own transaction or many share one",
        arguments: 0..<24 as Range<UInt64>)
    func sameAsAlone(seed: UInt64) throws {
        let (alone, together) = (try CoreWorld(), try CoreWorld())
        var history = try RandomHistory(seed: seed, in: alone)
        var historyTogether = try RandomHistory(seed: seed, in: together)
        for _ in 0..<25 {
            try Self.performBatch(of: &history, in: alone)
            var after = historyTogether
            let callers = historyTogether.channels.flatMap { channel in
                historyTogether.users.map { ChannelCaller(user: $0, channel: channel) }
            }
            // The ids of the first messages, some of which are sent again and some were deleted for good.
            let clientIds = Set((1...64).map { ClientID("\($0)") })
            let messages = Dictionary(uniqueKeysWithValues: callers.map { ($0, clientIds) })
            try together.batch(readingAhead: Set(callers), sending: messages) {
                after = historyTogether
                try Self.performBatch(of: &after, in: together)
            }
            historyTogether = after
            try Self.requireSame(together.notices, alone.notices)
            try Self.requireSame(try together.dump(), try alone.dump())
        }
    }

    /// Shows only the first difference: all of them would fill pages.
    private static func requireSame<Element: Equatable>(_ together: [Element], _ alone: [Element]) throws {
        let first = zip(together, alone).first { $0 != $1 }
        try #require(first.map { "\($0)" } == first.map { "\($1)" })
        try #require(together.count == alone.count)
    }

    private static func performBatch(of history: inout RandomHistory, in world: CoreWorld) throws {
        for _ in 0..<history.random.number(1...20) {
            if history.random.once(in: 12) {
                world.fault = history.random.pick(faults)
                if history.random.once(in: 2) {
                    try history.sendSomething(in: world)
                } else {
                    try history.changeSomething(in: world)
                }
                world.fault = nil
            } else if history.random.once(in: 4) {
                try history.changeSomething(in: world)
            } else if history.random.once(in: 6) {
                try history.step(in: world)
            } else {
                try history.sendSomething(in: world)
            }
        }
    }

    @Test("messages of one batch and their changes write their channel's head and their sender's membership once")
    func writtenOnce() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        try world.batch {
            for number in 0..<20 {
                let sender: UserID = number.isMultiple(of: 2) ? "ann" : "bob"
                let sent = try world.perform(
                    SendMessage(channel: "general", clientId: ClientID("\(number)"), text: "hi"), as: sender)
                let edit = EditMessage(channel: "general", message: sent.messageId, text: "\(number)")
                #expect(try world.perform(edit, as: sender).changeSeq == sent.seq + 1)
                if number == 4 { try world.perform(DeleteMessage(channel: "general", message: sent.messageId), as: sender) }
            }
            let memory = try #require(world.batched?.batchMemory)
            let due = try memory.takePendingWrites(isInside: false)
            let tables = due.compactMap { sql in
                ["channel_heads", "members"].first { sql.text.hasPrefix("UPDATE \($0)") }
            }
            #expect(tables == ["channel_heads", "members", "members"])
            for sql in due { try world.batched?.perform(sql) }
        }
        #expect(try world.perform(GetChannel(channel: "general"), as: "bob").unreadCount == 10)
    }

    /// Adjacent rows change adjacent pages, and transactions that lock the same rows do so in one order.
    @Test("a batch writes the heads of its channels in the order of their ids, whatever the order of its messages")
    func writtenInOrder() throws {
        let world = try CoreWorld()
        let channels: [ChannelID] = ["dogs", "ants", "Figs", "eels", "bees", "cats"]
        for channel in channels { try world.channel(channel, owner: "ann") }
        try world.batch {
            for channel in channels + channels.reversed() { try world.send("hi", to: channel, as: "ann") }
            let memory = try #require(world.batched?.batchMemory)
            let due = try memory.takePendingWrites(isInside: false)
            let heads = due.filter { $0.text.hasPrefix("UPDATE channel_heads") }.compactMap(\.values.last)
            let expected = ["Figs", "ants", "bees", "cats", "dogs", "eels"].map { SQLValue.text($0) }
            #expect(heads == expected)
            for sql in due { try world.batched?.perform(sql) }
        }
        for channel in channels { #expect(try world.send("last", to: channel, as: "ann").seq == 4) }
    }

    @Test("AM-13 I9 in a batch, channels whose ids are equal as texts and differ in their bytes are two, with members of their own")
    func spellings() throws {
        let world = try CoreWorld()
        let (one, other): (ChannelID, ChannelID) = ("\u{105c9}", "\u{105d2}\u{307}")
        try world.channel(one, type: .group, owner: "ann")
        try world.channel(other, type: .group, owner: "mal")
        try world.batch {
            try world.send("hers", to: one, as: "ann")
            try world.send("mine", to: other, as: "mal")
            #expect(try world.code(SendMessage(channel: one, clientId: "c", text: "hi"), as: "mal") != nil)
        }
        func texts(in channel: ChannelID, as user: UserID) throws -> [String] {
            try world.perform(ListMessages(channel: channel), as: user).messages.map(\.text)
        }
        #expect(try texts(in: one, as: "ann") == ["hers"])
        #expect(try texts(in: other, as: "mal") == ["mine"])
    }

    @Test(
        "after a message was deleted for good, a batch's messages still write their channel's head once",
        arguments: [false, true])
    func writtenOnceAfterPurge(readsAhead: Bool) throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        let purged = try world.send("gone", to: "general", as: "ann")
        try world.perform(PurgeMessage(channel: "general", message: purged.messageId), as: "root", role: .admin)
        let callers = (["ann", "bob"] as [UserID]).map { ChannelCaller(user: $0, channel: "general") }
        let clientIds = (0..<10).map { ClientID("new \($0)") }
        let messages = Dictionary(uniqueKeysWithValues: callers.map { ($0, Set(clientIds + [purged.clientId])) })
        try world.batch(readingAhead: readsAhead ? Set(callers) : [], sending: readsAhead ? messages : [:]) {
            for (number, clientId) in clientIds.enumerated() {
                let send = SendMessage(channel: "general", clientId: clientId, text: "\(number)")
                try world.perform(send, as: number.isMultiple(of: 2) ? "ann" : "bob")
            }
            let memory = try #require(world.batched?.batchMemory)
            let due = try memory.takePendingWrites(isInside: false)
            let tables = due.compactMap { sql in ["channel_heads", "members"].first { sql.text.hasPrefix("UPDATE \($0)") } }
            #expect(tables == ["channel_heads", "members", "members"], "nothing was written before its time")
            for sql in due { try world.batched?.perform(sql) }
            // Nothing takes a purged message's place, or brings it back.
            let again = SendMessage(channel: "general", clientId: purged.clientId, text: "again")
            #expect(try world.perform(again, as: "ann").messageId == purged.messageId)
        }
        #expect(try world.perform(GetChannel(channel: "general"), as: "bob").unreadCount == 5)
    }

    @Test("another member of a known channel is read alone, and each one's newest mention is written once, with their own stream")
    func oneMoreMember() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob", "cid", "dan"])
        try world.batch {
            try world.send("1", to: "general", as: "ann")
            for (number, user) in (["cid", "dan", "cid", "dan"] as [UserID]).enumerated() {
                let message = SendMessage(
                    channel: "general", clientId: ClientID("m\(number)"), text: "hi", mentionees: [.users([user])])
                try world.perform(message, as: number == 1 ? "bob" : "ann")
            }
            let memory = try #require(world.batched?.batchMemory)
            let due = try memory.takePendingWrites(isInside: false)
            let tables = due.compactMap { sql in ["channel_heads", "members", "user_heads"].first { sql.text.contains($0) } }
            #expect(
                tables == ["channel_heads"] + Array(repeating: "members", count: 4) + ["user_heads", "user_heads"],
                "nothing was written before its time")
            for sql in due { try world.batched?.perform(sql) }
        }
        #expect(try world.perform(GetChannel(channel: "general"), as: "cid").hasMention)
        #expect(try world.perform(GetChannel(channel: "general"), as: "dan").unreadCount == 5)
    }

    @Test("R25 AM-43 the rows that another member's mark needs are read once, as they were at the mark")
    func mark() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob", "cid"])
        func heads() throws -> [Int64] {
            try world.rows("SELECT seq FROM user_heads WHERE user_id IN ('bob', 'cid') ORDER BY user_id") { $0.int64() }
        }
        let before = try heads()
        try world.batch {
            try world.send("hi", to: "general", as: "ann")
            let counting = CountingTransaction(try #require(world.batched))
            let (mark, caller) = (MarkRead(channel: "general"), Caller(user: "bob"))
            var context = Context(
                transaction: counting, caller: caller, now: world.now, ids: IDGenerator(), scope: mark.scope(for: caller))
            _ = try mark.handle(in: &context)
            // With other writers a separate statement locks a stream's head.
            if counting.dialect.rowLock == nil { #expect(counting.statementCount == 2, "a read and a write") }

            func isNotifiedOfMark() throws -> Bool {
                let before = world.notices.count
                try world.send("hi", to: "general", as: "ann")
                try world.perform(MarkRead(channel: "general"), as: "cid")
                return world.notices.dropFirst(before).contains { if case .read = $0 { true } else { false } }
            }
            #expect(try isNotifiedOfMark())
            try world.perform(UpdatePreferences(sharesReading: false), as: "cid")
            #expect(try !isNotifiedOfMark())
        }
        // One mark by bob; two by cid, and the preferences between them.
        #expect(try heads() == [before[0] + 1, before[1] + 3])
    }

    @Test("a damaged row fails only the operation that needs it, not its batch")
    func damagedRow() throws {
        let world = try CoreWorld()
        for channel in ["whole", "damaged"] as [ChannelID] { try world.channel(channel, owner: "ann") }
        try world.execute("UPDATE members SET state = 'rubbish' WHERE channel_id = 'damaged'")
        let callers = (["whole", "damaged"] as [ChannelID]).map { ChannelCaller(user: "ann", channel: $0) }
        try world.batch(readingAhead: Set(callers)) {
            #expect(throws: DamagedDatabase.self) { try world.send("hi", to: "damaged", as: "ann") }
            let message = try world.send("hi", to: "whole", as: "ann")
            #expect(message.seq == 2)
        }
    }
}
