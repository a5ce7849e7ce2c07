import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@Suite("History by time and with filters")
struct TimedHistoryTests {
    /// A channel whose messages have few distinct times, so many share one, with other changes between them.
    private static func world(seed: UInt64, count: Int = 60) throws -> (CoreWorld, [Message]) {
        let world = try CoreWorld()
        var random = SeededGenerator(seed: seed)
        try world.channel("general", owner: "ann", members: ["ben"])
        for number in 0..<count {
            // The clock sometimes steps back; times in a channel don't.
            world.advance(milliseconds: random.once(in: 8) ? -3 : random.once(in: 3) ? 0 : Int64(random.number(1...2)))
            var content = MessageContent(text: "\(number)")
            if random.once(in: 4) { content = MessageContent(text: "", kind: .custom, customType: random.once(in: 2) ? "a" : "b") }
            try world.perform(
                SendMessage(channel: "general", clientId: "\(number)", content: content), as: random.once(in: 2) ? "ann" : "ben")
            if random.once(in: 5) { try world.perform(UpdateChannel(channel: "general", displayName: "\(number)"), as: "ann") }
        }
        let all = try world.perform(ListMessages(channel: "general", limit: 100), as: "ann").messages
        return (world, all)
    }

    @Test(
        "SB-49 SB-51 SB-52 SB-54 SB-55 R22 pages by time match the definition, and never split messages of one time",
        arguments: Seeds.first(4))
    func byTime(seed: UInt64) throws {
        let (world, all) = try Self.world(seed: seed)
        let times = all.map(\.createdAt)
        #expect(times == times.sorted() && Set(times).count < times.count)
        let first = times[0].milliseconds
        for offset in -2...(times[times.count - 1].milliseconds - first + 2) {
            let time = Timestamp(milliseconds: first + offset)
            let (older, newer, after) = (
                all.filter { $0.createdAt < time }, all.filter { $0.createdAt >= time }, all.filter { $0.createdAt > time }
            )
            for limit in [1, 2, 5, 100] {
                func page(_ set: (inout ListMessages) -> Void) throws -> MessagePage {
                    var operation = ListMessages(channel: "general", limit: limit)
                    set(&operation)
                    return try world.perform(operation, as: "ben")
                }
                let before = try page { $0.beforeTime = time }
                #expect(before.messages == Self.whole(older.reversed(), limit).reversed(), "seed \(seed)")
                #expect(
                    before.hasOlder == (before.messages.count < older.count) && before.hasNewer == (limit > 0 && !newer.isEmpty),
                    "seed \(seed)")
                let later = try page { $0.afterTime = time }
                #expect(later.messages == Self.whole(after, limit), "seed \(seed)")
                #expect(later.hasNewer == (later.messages.count < after.count), "seed \(seed)")
                let around = try page {
                    $0.aroundTime = time
                    $0.newerLimit = 3
                }
                #expect(around.messages == Self.whole(older.reversed(), limit).reversed() + Self.whole(newer, 3), "seed \(seed)")
                let reversed = try page {
                    $0.beforeTime = time
                    $0.reverse = true
                }
                #expect(reversed.messages == before.messages.reversed())
            }
        }
    }

    @Test(
        "SB-52 SB-56 R22 pages by a message match the definition, without it or around it, and never split messages of one time",
        arguments: Seeds.first(3))
    func byMessage(seed: UInt64) throws {
        let (world, all) = try Self.world(seed: seed)
        for (index, message) in all.enumerated() {
            let (older, newer) = (all.prefix(index), all.dropFirst(index + 1))
            for limit in [1, 3, 100] {
                func page(_ set: (inout ListMessages) -> Void) throws -> MessagePage {
                    var operation = ListMessages(channel: "general", limit: limit)
                    set(&operation)
                    return try world.perform(operation, as: "ben")
                }
                let before = try page { $0.beforeMessage = message.messageId }
                #expect(before.messages == Self.whole(older.reversed(), limit).reversed(), "seed \(seed)")
                #expect(before.hasOlder == (before.messages.count < older.count) && before.hasNewer, "seed \(seed)")
                let after = try page { $0.afterMessage = message.messageId }
                #expect(after.messages == Self.whole(Array(newer), limit), "seed \(seed)")
                #expect(after.hasOlder && after.hasNewer == (after.messages.count < newer.count), "seed \(seed)")
                let around = try page {
                    $0.aroundMessage = message.messageId
                    $0.newerLimit = 2
                }
                let first = Self.whole((older + [message]).reversed(), limit).reversed()
                #expect(around.messages == first + Self.whole(Array(newer), 2), "seed \(seed)")
            }
        }
        for field in ["beforeMessage", "afterMessage"] {
            var operation = ListMessages(channel: "general")
            let unknown = MessageID(rawValue: 1)
            if field == "beforeMessage" { operation.beforeMessage = unknown } else { operation.afterMessage = unknown }
            let refusal = try world.refusal(operation, as: "ben")
            #expect(refusal?.code == .notFound && refusal?.field == field)
            operation.before = 3
            #expect(try world.code(operation, as: "ben") == .invalidArgument)
        }
    }

    @Test(
        "SB-52 page after page by seq, a page that keeps times whole ends between times; others needn't",
        arguments: Seeds.first(3))
    func bySeq(seed: UInt64) throws {
        let (world, all) = try Self.world(seed: seed)
        for limit in [1, 3, 7] {
            var (older, newer): ([Message], [Message]) = ([], [])
            while older.count < all.count {
                let place = older.first?.seq ?? Limits.seqMax
                let page = try world.perform(
                    ListMessages(channel: "general", before: place, limit: limit, keepsTimesWhole: true), as: "ben")
                #expect(page.messages == Self.whole(all.dropLast(older.count).reversed(), limit).reversed(), "seed \(seed)")
                try #require(!page.messages.isEmpty)
                older = page.messages + older
            }
            while newer.count < all.count {
                let page = try world.perform(
                    ListMessages(channel: "general", after: newer.last?.seq ?? 0, limit: limit, keepsTimesWhole: true), as: "ben")
                #expect(page.messages == Self.whole(Array(all.dropFirst(newer.count)), limit), "seed \(seed)")
                try #require(!page.messages.isEmpty)
                newer += page.messages
            }
            #expect(older == all && newer == all)
            let plain = ListMessages(channel: "general", beforeTime: all[20].createdAt, limit: limit, keepsTimesWhole: false)
            #expect(try world.perform(plain, as: "ben").messages.count <= limit)
        }
    }

    /// The first messages, and those of the last one's time.
    private static func whole(_ messages: [Message], _ limit: Int) -> [Message] {
        guard messages.count > limit, limit > 0 else { return Array(messages.prefix(max(limit, 0))) }
        let last = messages[limit - 1].createdAt
        return Array(messages.prefix(limit) + messages.dropFirst(limit).prefix { $0.createdAt == last })
    }

    @Test("SB-52 messages of one time that exceed 1 MiB continue from the last one's seq")
    func largeTie() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        for number in 0..<80 {
            try world.perform(
                SendMessage(channel: "general", clientId: "\(number)", text: String(repeating: "x", count: 19_000)), as: "ann")
        }
        let all = try world.rows("SELECT seq FROM messages ORDER BY seq") { $0.int64() }
        let first = try world.perform(
            ListMessages(channel: "general", afterTime: Timestamp(milliseconds: world.now.milliseconds - 1), limit: 1), as: "ann")
        #expect(first.messages.count < 80 && first.messages.count > 40 && first.hasNewer)
        var messages = first.messages
        while messages.count < 80 {
            let next = try world.perform(ListMessages(channel: "general", after: messages.last?.seq, limit: 100), as: "ann")
                .messages
            try #require(!next.isEmpty)
            messages += next
        }
        #expect(messages.map(\.seq) == all)

        // Around a message both sides together are one page, and each of them has its part of it.
        for place in [40, 60, 70] {
            let around = try world.perform(ListMessages(channel: "general", aroundMessage: messages[place].messageId), as: "ann")
            #expect(around.messages.reduce(0) { $0 + $1.contentSizeBytes } <= Limits.pageContentBytes)
            #expect(around.messages.count > 40 && around.messages.count < 80 && around.hasOlder && around.hasNewer == (place < 70))
            let first = try #require(all.firstIndex { $0 == around.messages.first?.seq })
            #expect(around.messages.map(\.seq) == Array(all[first...].prefix(around.messages.count)))
        }
    }

    @Test("SB-52 SB-55 a page around a time has messages from then on, however much those of one time before it contain")
    func largeTieBefore() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        let text = String(repeating: "x", count: 19_000)
        var all = try (0..<60).map { _ in try world.send(text, to: "general", as: "ann").seq }
        world.advance(milliseconds: 5)
        let later = try world.send(text, to: "general", as: "ann")
        all.append(later.seq)
        let page = try world.perform(ListMessages(channel: "general", aroundTime: later.createdAt), as: "ann")
        #expect(page.messages.last == later && page.hasOlder && !page.hasNewer)
        #expect(page.messages.count > 40 && page.messages.map(\.seq) == Array(all.suffix(page.messages.count)))
        #expect(page.messages.reduce(0) { $0 + $1.contentSizeBytes } <= Limits.pageContentBytes)
    }

    @Test("SB-52 SB-53 with filters, messages of one time beyond the 5,000 searched seqs are on the next page")
    func filteredTie() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        let first = try world.send("first", to: "general", as: "ann")
        try world.execute("UPDATE channel_heads SET seq = seq + 5000 WHERE channel_id = 'general'")
        let last = try world.send("last", to: "general", as: "ann")
        #expect(first.createdAt == last.createdAt)
        let time = Timestamp(milliseconds: world.now.milliseconds - 1)
        let page = try world.perform(ListMessages(channel: "general", afterTime: time, kinds: [.text]), as: "ann")
        #expect(page.messages == [first] && page.hasNewer)
        let next = try world.perform(ListMessages(channel: "general", after: page.to, kinds: [.text]), as: "ann")
        #expect(next.messages == [last] && !next.hasNewer)
    }

    @Test("SB-53 R22 filters leave out messages that don't match; page after page they find all that do", arguments: Seeds.first(3))
    func filters(seed: UInt64) throws {
        let (world, all) = try Self.world(seed: seed)
        let filters: [(set: (inout ListMessages) -> Void, matches: (Message) -> Bool)] = [
            ({ $0.kinds = [.custom] }, { $0.kind == .custom }), ({ $0.customType = "a" }, { $0.customType == "a" }),
            ({ $0.senders = ["ben", "nobody"] }, { $0.sender == "ben" }), ({ $0.kinds = [.admin] }, { _ in false }),
            (
                {
                    $0.kinds = [.text, .custom]
                    $0.senders = ["ann"]
                    $0.customType = "b"
                }, { $0.sender == "ann" && $0.customType == "b" }
            ),
        ]
        for filter in filters {
            for isBackward in [true, false] {
                var operation = ListMessages(channel: "general", limit: 3)
                filter.set(&operation)
                if !isBackward { operation.after = 0 }
                var found: [Message] = []
                for _ in 0..<100 {
                    let page = try world.perform(operation, as: "ben")
                    found = isBackward ? page.messages + found : found + page.messages
                    guard isBackward ? page.hasOlder : page.hasNewer else { break }
                    if isBackward { operation.before = page.from } else { operation.after = page.to }
                }
                #expect(found == all.filter(filter.matches), "seed \(seed)")
            }
        }
    }

    @Test(
        "SB-53 SB-55 R22 from a page around a place, the pages before and after its searched range find all that matches",
        arguments: Seeds.first(3))
    func filtersAround(seed: UInt64) throws {
        let (world, all) = try Self.world(seed: seed)
        for place in stride(from: Seq(0), through: (all.last?.seq ?? 0) + 2, by: 3) {
            for (limit, newerLimit) in [(1, nil), (2, nil), (3, nil), (2, 0), (2, 2)] as [(Int, Int?)] {
                var operation = ListMessages(channel: "general", around: place, limit: limit)
                (operation.kinds, operation.newerLimit) = ([.custom], newerLimit)
                var page = try world.perform(operation, as: "ben")
                var found = page.messages
                let newest = page
                (operation.around, operation.newerLimit, operation.limit) = (nil, nil, 3)
                while page.hasOlder {
                    operation.before = page.from
                    page = try world.perform(operation, as: "ben")
                    found = page.messages + found
                }
                (page, operation.before) = (newest, nil)
                while page.hasNewer {
                    operation.after = page.to
                    page = try world.perform(operation, as: "ben")
                    found += page.messages
                }
                #expect(
                    found == all.filter { $0.kind == .custom }, "seed \(seed), around \(place), \(limit) and \(newerLimit ?? -1)")
            }
        }
    }

    @Test("SB-53 a filter that matches nothing searches a bounded range, and says which")
    func bounded() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        try world.batch {
            for number in 0..<5200 {
                try world.perform(SendMessage(channel: "general", clientId: "\(number)", text: "x"), as: "ann")
            }
        }
        var operation = ListMessages(channel: "general")
        operation.kinds = [.admin]
        let page = try world.perform(operation, as: "ann")
        #expect(page.messages == [] && page.hasOlder && !page.hasNewer && page.from == 5202 - 5000 - 1 + 1 && page.to == 5201)
        operation.before = page.from
        let rest = try world.perform(operation, as: "ann")
        #expect(rest.messages == [] && !rest.hasOlder && rest.hasNewer && rest.from == 1)
        // Before the beginning there is nothing to search, and the next page is all of it.
        operation.before = 0
        let none = try world.perform(operation, as: "ann")
        #expect(none.messages == [] && !none.hasOlder && none.hasNewer && none.from == 1 && none.to == 0)
        operation.before = nil
        operation.after = none.to
        let first = try world.perform(operation, as: "ann")
        #expect(first.messages == [] && first.from == 1 && first.to == 5000 && !first.hasOlder && first.hasNewer)
        operation.after = first.to
        let last = try world.perform(operation, as: "ann")
        #expect(last.messages == [] && last.from == 5001 && last.to == 5201 && last.hasOlder && !last.hasNewer)
        // Without filters the range isn't reported.
        #expect(try world.perform(ListMessages(channel: "general"), as: "ann").from == nil)
    }

    @Test("SB-48 SB-51 SB-53 the parameters of a page have limits")
    func limits() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        func refusal(_ set: (inout ListMessages) -> Void) throws -> RoostError? {
            var operation = ListMessages(channel: "general")
            set(&operation)
            return try world.refusal(operation, as: "ann")
        }
        #expect(try refusal { ($0.beforeTime, $0.afterTime) = (world.now, world.now) }?.code == .invalidArgument)
        #expect(try refusal { ($0.before, $0.aroundTime) = (1, world.now) }?.code == .invalidArgument)
        #expect(try refusal { $0.newerLimit = 1 }?.field == "newerLimit")
        #expect(try refusal { ($0.around, $0.newerLimit) = (1, 101) }?.code == .limitExceeded)
        #expect(try refusal { ($0.around, $0.newerLimit) = (1, -1) }?.code == .invalidArgument)
        #expect(try refusal { $0.kinds = [] }?.field == "kinds")
        #expect(try refusal { $0.senders = (0..<20).map { UserID("u\($0)") } } == nil)
        #expect(try refusal { $0.senders = (0...20).map { UserID("u\($0)") } }?.code == .limitExceeded)
        #expect(try refusal { $0.customType = String(repeating: "x", count: 128) } == nil)
        let long = try refusal { $0.customType = String(repeating: "x", count: 129) }
        #expect(long?.code == .limitExceeded && long?.field == "customType")
        #expect(try refusal { $0.limit = 101 }?.code == .limitExceeded)
        #expect(try refusal { ($0.around, $0.newerLimit) = (1, 0) } == nil)
    }

    @Test(
        "SB-60 D-35 R23 emptying a channel for oneself conceals and reads all so far, only for that user; with history off it is refused"
    )
    func reset() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["ben"])
        let old = try world.send("old", to: "general", as: "ann")
        world.advance(milliseconds: 5)
        let membership = try world.perform(ResetHistory(channel: "general"), as: "ben")
        #expect(membership.historyFloor == old.seq && membership.readSeq == old.seq && membership.lastReadAt == world.now)
        let view = try world.perform(GetChannel(channel: "general"), as: "ben")
        #expect(view.lastMessage == nil && view.unreadCount == 0 && view.membership == membership)
        #expect(try world.perform(ListMessages(channel: "general"), as: "ben").messages == [])
        #expect(try world.perform(ListMessages(channel: "general"), as: "ann").messages == [old])
        // A repeat without new messages changes nothing.
        let before = try world.dump()
        world.advance(milliseconds: 5)
        #expect(try world.perform(ResetHistory(channel: "general"), as: "ben") == membership)
        #expect(try world.dump() == before)
        let new = try world.send("new", to: "general", as: "ann")
        #expect(try world.perform(ListMessages(channel: "general"), as: "ben").messages == [new])
        world.options.showsHistoryToNewMembers = false
        let dump = try world.dump()
        #expect(try world.code(ResetHistory(channel: "general"), as: "ben") == .featureDisabled)
        #expect(try world.dump() == dump)
    }

    @Test(
        "SB-60 SB-26 X-23 emptying and hiding up to a seq leave later messages unread, mentioning, and bringing the channel back"
    )
    func seenOnly() throws {
        for isHidden in [false, true] {
            let world = try CoreWorld()
            try world.channel("general", owner: "ann", members: ["ben"])
            try world.send("own", to: "general", as: "ben")
            let seen = try world.send("seen", to: "general", as: "ann")
            let purged = try world.send("purged", to: "general", as: "ann")
            let missed = try world.perform(
                SendMessage(channel: "general", clientId: "m", text: "@ben", mentionees: [.users(["ben"])]), as: "ann")
            try world.send("own, later", to: "general", as: "ben")
            try world.perform(PurgeMessage(channel: "general", message: purged.messageId), as: "ann")
            func conceal(upTo seq: Seq?) throws -> Membership {
                isHidden
                    ? try world.perform(HideChannel(channel: "general", hidePreviousMessages: true, upTo: seq), as: "ben")
                    : try world.perform(ResetHistory(channel: "general", upTo: seq), as: "ben")
            }
            let membership = try conceal(upTo: seen.seq)
            #expect(membership.historyFloor == seen.seq && membership.readSeq == seen.seq)
            #expect(membership.mentionMessage == missed.messageId)
            let view = try world.perform(GetChannel(channel: "general"), as: "ben")
            #expect(view.unreadCount == 1 && view.hasMention && view.hiddenState == .unhidden)
            #expect(try world.perform(GetUnread(channel: "general"), as: "ben").unreadCount == 1)
            #expect(try world.perform(GetTotalUnread(), as: "ben").unreadCount == 1)
            #expect(try world.perform(ListMessages(channel: "general"), as: "ben").messages.map(\.text) == ["@ben", "own, later"])
            // Concealed messages aren't shown again, and beyond the newest there is nothing.
            #expect(try conceal(upTo: 1).historyFloor == seen.seq)
            let all = try conceal(upTo: Limits.seqMax)
            #expect(all.historyFloor == all.readSeq && all.mentionMessage == nil)
            #expect(try world.perform(GetChannel(channel: "general"), as: "ben").unreadCount == 0)
            #expect(try world.perform(ListMessages(channel: "general"), as: "ben").messages == [])
            #expect(try world.code(ResetHistory(channel: "general", upTo: -1), as: "ben") == .invalidArgument)
            #expect(try world.refusal(HideChannel(channel: "general", upTo: -1), as: "ben")?.field == "upTo")
        }
    }

    @Test(
        "SB-52 SB-56 a page around a message whose newer side is empty doesn't split messages of one time, with filters or without"
    )
    func tiesAround() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        let tied = try (0..<3).map { try world.send("\($0)", to: "general", as: "ann") }
        #expect(Set(tied.map(\.createdAt)).count == 1)
        world.advance(milliseconds: 5)
        try world.send("later", to: "general", as: "ann")
        for senders: [UserID]? in [nil, ["ann"]] {
            var operation = ListMessages(
                channel: "general", aroundMessage: tied[1].messageId, limit: 1, kinds: nil, senders: senders)
            for newerLimit in [nil, 0] as [Int?] {
                operation.newerLimit = newerLimit
                let page = try world.perform(operation, as: "ann")
                #expect(page.messages.map(\.seq) == tied.map(\.seq) && page.hasNewer)
            }
            operation = ListMessages(channel: "general", around: tied[1].seq, limit: 1, newerLimit: 0, senders: senders)
            #expect(try world.perform(operation, as: "ann").messages.map(\.seq) == [tied[1].seq])
            operation.keepsTimesWhole = true
            #expect(try world.perform(operation, as: "ann").messages.map(\.seq) == tied.map(\.seq))
        }
    }

    @Test("SB-59 R24 several messages are deleted at once, all or none; deleted for good, nothing of them is left")
    func deleteMany() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["ben"])
        let sent = try (0..<4).map { try world.send("\($0)", to: "general", as: $0 == 3 ? "ann" : "ben") }
        let before = try world.dump()
        let refusal = try world.refusal(DeleteMessages(channel: "general", messages: sent.map(\.messageId)), as: "ben")
        #expect(refusal?.code == .notMessageOwner && refusal?.field == "messages[3]")
        #expect(refusal?.message == "Message \(sent[3].messageId): The message is someone else's.")
        let unknown = DeleteMessages(channel: "general", messages: [sent[0].messageId, MessageID(rawValue: 1)])
        #expect(
            try world.refusal(unknown, as: "ben")
                == RoostError(.notFound, "Message 1: There is no such message.", field: "messages[1]"))
        let single = DeleteMessages(channel: "general", messages: [MessageID(rawValue: 1)])
        #expect(
            try world.refusal(single, as: "ben") == RoostError(.notFound, "There is no such message.", field: "messages[0]"))
        for list in [[], [sent[0].messageId, sent[0].messageId]] {
            #expect(try world.code(DeleteMessages(channel: "general", messages: list), as: "ben") == .invalidArgument)
        }
        let many = (1...101).map { MessageID(rawValue: $0) }
        #expect(try world.code(DeleteMessages(channel: "general", messages: many), as: "ben") == .limitExceeded)
        #expect(try world.dump() == before)
        let deleted = try world.perform(
            DeleteMessages(channel: "general", messages: [sent[2].messageId, sent[0].messageId]), as: "ben")
        #expect(
            deleted.messages.map(\.seq) == [sent[2].seq, sent[0].seq]
                && deleted.messages.allSatisfy { $0.deletedAt != nil && $0.text == "" })
        #expect(
            try world.perform(DeleteMessages(channel: "general", messages: sent.map(\.messageId)), as: "ann").messages.map(
                \.deletedAt
            ).allSatisfy { $0 != nil })
        try world.perform(PurgeMessage(channel: "general", message: sent[0].messageId), as: "ben")
        #expect(try world.code(PurgeMessage(channel: "general", message: sent[0].messageId), as: "ben") == .notFound)
        #expect(try world.code(PurgeMessage(channel: "general", message: sent[3].messageId), as: "ben") == .notMessageOwner)
        #expect(try world.perform(ListMessages(channel: "general"), as: "ben").messages.map(\.seq) == sent.dropFirst().map(\.seq))
    }
}
