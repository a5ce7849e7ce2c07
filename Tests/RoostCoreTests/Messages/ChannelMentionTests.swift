import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

/// Events that replace those missed by a node.
@Suite("Mentions of a channel in events of a node")
struct MissedMentionTests {
    @Test("MN-13 I3 they have the mention of the channel even where admins may not read")
    func membersOnly() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        let policy = PolicyChanges(read: .membersOnly)
        try world.perform(UpdateChannel(channel: "general", policy: policy), as: "root", role: .admin)
        let mention = SendMessage(channel: "general", clientId: "1", text: "all", mentionees: [.channel])
        let sent = try world.perform(mention, as: "ann")
        let now = world.now
        let missed = try world.database.read { try $0.missedEvents(of: .channel("general"), after: sent.seq - 1, now: now) }
        let rows = missed.notices.compactMap { if case .event(let event, _) = $0 { event.rows } else { nil } }
        #expect(rows.map { $0.channelMentions?.map(\.seq) } == [[sent.seq]])
    }
}

/// What devices know of mentions of a whole channel from their initial and later rows must match the server.
@Suite("Mentions of a channel on devices")
struct ChannelMentionTests {
    /// How a device learns what has changed.
    enum Way: CaseIterable, Sendable {
        case events, changes, missedEvents
    }

    /// A device that started over, and has only the mentions sent to it.
    private struct Device {
        let user: UserID
        private var mentions: [Seq: ChannelMention] = [:]
        private var position: Seq

        init(of user: UserID, in world: CoreWorld) throws {
            self.user = user
            let fresh = try #require(try world.perform(Resume(after: 0, channels: [:]), as: user).channels.first)
            position = fresh.seq
            apply(fresh.rows)
        }

        private mutating func apply(_ rows: Rows) {
            for place in rows.purged ?? [] { mentions[place.seq] = nil }
            for mention in rows.channelMentions ?? [] where mention.changeSeq >= mentions[mention.seq]?.changeSeq ?? 0 {
                mentions[mention.seq] = mention
            }
        }

        mutating func catchUp(by way: Way, in world: CoreWorld) throws {
            switch way {
            case .events:
                for event in world.events(to: .channel("general")) where event.seq > position {
                    apply(event.rows)
                    position = event.seq
                }
            case .changes:
                var hasMore = true
                while hasMore { hasMore = try fetchPage(limit: 1, in: world) }
            case .missedEvents:
                var hasMore = true
                while hasMore {
                    let (after, now) = (position, world.now)
                    let missed = try world.database.read { try $0.missedEvents(of: .channel("general"), after: after, now: now) }
                    for case .event(let event, _) in missed.notices { apply(event.rows) }
                    (position, hasMore) = (missed.seq, missed.hasMore)
                }
            }
        }

        /// Fetches one page of changes.
        ///
        /// - Returns: Whether there are more.
        mutating func fetchPage(limit: Int, in world: CoreWorld) throws -> Bool {
            let page = try world.perform(GetChannelChanges(channel: "general", after: position, limit: limit), as: user)
            apply(page.rows)
            position = page.seq
            return page.hasMore
        }

        func isMentioned(in world: CoreWorld) throws -> Bool {
            let membership = try #require(try world.perform(GetChannel(channel: "general"), as: user).membership)
            // The user's own stream has the messages that they deleted for themselves.
            let deleted = Set(world.events(to: .user(user)).flatMap { $0.rows.ownDeletions ?? [] }.map(\.seq))
            return Unread.hasMention(in: membership, mentions.values.filter { !deleted.contains($0.seq) }, as: user)
        }
    }

    /// Ways in which a mention ends, the last one for one user only.
    private static let ends: [(name: String, end: @Sendable (Message, CoreWorld) throws -> Void)] = [
        (
            "edited",
            { message, world in
                try world.perform(EditMessage(channel: "general", message: message.messageId, mentionees: []), as: message.sender)
            }
        ),
        (
            "deleted",
            { message, world in
                try world.perform(DeleteMessage(channel: "general", message: message.messageId), as: message.sender)
            }
        ),
        (
            "deleted for good",
            { message, world in
                try world.perform(PurgeMessage(channel: "general", message: message.messageId), as: "root", role: .admin)
            }
        ),
        (
            "deleted for oneself",
            { message, world in
                try world.perform(DeleteMessagesForMe(channel: "general", messages: [message.messageId]), as: "ben")
            }
        ),
    ]

    private static func world() throws -> CoreWorld {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["ben", "cid"])
        try world.user("root")
        return world
    }

    @discardableResult
    private static func mention(_ id: ClientID, as user: UserID, in world: CoreWorld) throws -> Message {
        try world.perform(SendMessage(channel: "general", clientId: id, text: "@all", mentionees: [.channel]), as: user)
    }

    private func isMentionedOnServer(_ user: UserID, in world: CoreWorld) throws -> Bool {
        try world.perform(GetUnread(channel: "general"), as: user).hasMention
    }

    @Test(
        "MN-12 MN-16 R35 a device that began after any number of the user's own mentions knows the older of two by others too",
        arguments: ends.indices, Way.allCases)
    func behindOwn(end: Int, way: Way) throws {
        let world = try Self.world()
        let older = try Self.mention("older", as: "ann", in: world)
        let newer = try Self.mention("newer", as: "ann", in: world)
        for number in 0..<(Limits.freshMentions + 5) { try Self.mention("\(number)", as: "ben", in: world) }
        var device = try Device(of: "ben", in: world)
        for message in [newer, older] {
            #expect(try device.isMentioned(in: world))
            try Self.ends[end].end(message, world)
            try device.catchUp(by: way, in: world)
            let isMentioned = try isMentionedOnServer("ben", in: world)
            #expect(try device.isMentioned(in: world) == isMentioned && isMentioned == (message == newer), "\(Self.ends[end].name)")
        }
    }

    @Test(
        "MN-12 MN-16 R35 when all mentions that a device began with are removed, it learns the newest remaining one",
        arguments: ends.indices.dropLast(), Way.allCases)
    func takenBack(end: Int, way: Way) throws {
        let world = try Self.world()
        let first = try Self.mention("first", as: "ann", in: world)
        let others = try (0...Limits.freshMentions).map { try Self.mention("\($0)", as: "cid", in: world) }
        // Ben reads the mentions by others, and they are cid's own.
        var devices = try (["ben", "cid"] as [UserID]).map { try Device(of: $0, in: world) }
        for message in others + [first] {
            try Self.ends[end].end(message, world)
            for index in devices.indices {
                try devices[index].catchUp(by: way, in: world)
                let isMentioned = try isMentionedOnServer(devices[index].user, in: world)
                #expect(try devices[index].isMentioned(in: world) == isMentioned && isMentioned == (message != first))
            }
        }
    }

    @Test("MN-16 R35 mentions of one batch know the previous one by another user as if each had its own transaction")
    func ofOneBatch() throws {
        func stored(together: Bool) throws -> [Int64] {
            let world = try Self.world()
            func perform() throws {
                var sent: [Message] = []
                for (number, user) in (["ann", "ben", "ben", "ann", "ann", "ben", "ann", "ben", "ben", "ann"] as [UserID])
                    .enumerated()
                {
                    sent.append(try Self.mention("\(number)", as: user, in: world))
                    // The newest ends in each way while further ones follow.
                    guard [2, 4, 6, 8].contains(number) else { continue }
                    try Self.ends[(number / 2 - 1) % Self.ends.count].end(sent[number], world)
                }
                // An edit mentions the channel again, in the oldest message.
                let edit = EditMessage(channel: "general", message: sent[0].messageId, mentionees: [])
                try world.perform(edit, as: "ann")
                try world.perform(
                    EditMessage(channel: "general", message: sent[0].messageId, mentionees: [.channel]), as: "ann")
                try Self.mention("last", as: "ann", in: world)
            }
            if together { try world.batch(perform) } else { try perform() }
            return try world.rows("SELECT COALESCE(other_mention_seq, -1) FROM channel_mentions ORDER BY seq") { $0.int64() }
        }
        let alone = try stored(together: false)
        #expect(try stored(together: true) == alone && Set(alone).count > 3)
    }

    @Test("MN-16 I5 pages of a channel's changes have each mention of it as it is now, whether its message was changed or not")
    func pagesOfChanges() throws {
        let world = try Self.world()
        let start = try world.perform(GetChannel(channel: "general"), as: "ben").channel.counters.seq
        let sent = try (0..<60).map { try Self.mention("\($0)", as: "ann", in: world) }
        for (number, message) in sent.enumerated() where number % 3 != 0 {
            for mentionees in number % 3 == 1 ? [[]] : [[], [.channel]] as [[Mentionee]] {
                try world.perform(EditMessage(channel: "general", message: message.messageId, mentionees: mentionees), as: "ann")
            }
        }
        var (found, after, hasMore, pages) = ([Seq: ChannelMention](), start, true, 0)
        while hasMore {
            let changes = try world.perform(GetChannelChanges(channel: "general", after: after, limit: 20), as: "ben")
            for mention in changes.rows.channelMentions ?? [] { found[mention.seq] = mention }
            #expect(changes.seq > after)
            (after, hasMore, pages) = (changes.seq, changes.hasMore, pages + 1)
        }
        let stored = try world.rows("SELECT seq, change_seq, mention_seq FROM channel_mentions ORDER BY seq") { row in
            [row.int64(), row.int64(), row.optionalInt64()]
        }
        let reported = found.values.sorted { $0.seq < $1.seq }.map { [$0.seq, $0.changeSeq, $0.mentionSeq] }
        #expect(reported == stored && pages > 3)
    }

    @Test(
        "MN-12 MN-16 R35 I5 pages with ends of mentions bring the newest remaining one, even if a later end is undone between them",
        arguments: ends.indices.dropLast())
    func pagesOfEnds(end: Int) throws {
        let world = try Self.world()
        let limit = 25
        try Self.mention("older", as: "cid", in: world)
        let newer = try (0..<Limits.freshMentions).map { try Self.mention("\($0)", as: "ann", in: world) }
        // It begins with only the newer ones.
        var device = try Device(of: "ben", in: world)
        for message in newer { try Self.ends[end].end(message, world) }
        let own = try (0..<(limit + 5)).map { try Self.mention("own\($0)", as: "ben", in: world) }
        let last = try #require(own.last)
        try Self.ends[0].end(last, world)
        var hasMore = try device.fetchPage(limit: limit, in: world)
        #expect(try hasMore && device.isMentioned(in: world), "\(Self.ends[end].name)")
        try world.perform(EditMessage(channel: "general", message: last.messageId, mentionees: [.channel]), as: "ben")
        while hasMore { hasMore = try device.fetchPage(limit: limit, in: world) }
        let isMentioned = try isMentionedOnServer("ben", in: world)
        #expect(try device.isMentioned(in: world) == isMentioned && isMentioned, "\(Self.ends[end].name)")
    }

    @Test(
        "MN-12 MN-16 R35 I5 a page with the end of a mention has the newest remaining one, even if it was sent beyond the page",
        arguments: ends.indices.dropLast())
    func pageOfAnEnd(end: Int) throws {
        let world = try Self.world()
        let first = try Self.mention("first", as: "ann", in: world)
        var device = try Device(of: "ben", in: world)
        try Self.ends[end].end(first, world)
        let others = try (0..<5).map { try world.send("\($0)", to: "general", as: "ann") }
        try Self.mention("last", as: "ann", in: world)
        // A later message is deleted for good too: the remaining mention doesn't depend on that.
        try Self.ends[2].end(others[4], world)
        var hasMore = try device.fetchPage(limit: 2, in: world)
        #expect(try hasMore && device.isMentioned(in: world), "\(Self.ends[end].name)")
        while hasMore { hasMore = try device.fetchPage(limit: 2, in: world) }
        #expect(try device.isMentioned(in: world) && isMentionedOnServer("ben", in: world), "\(Self.ends[end].name)")
    }

    @Test("I18 any number of mentions of a channel that don't count are skipped at once")
    func statements() throws {
        let world = try Self.world()
        var mentions: [(ann: Message, ben: Message)] = []
        for number in 0..<60 {
            mentions.append(
                (try Self.mention("a\(number)", as: "ann", in: world), try Self.mention("b\(number)", as: "ben", in: world)))
        }
        for (_, message) in mentions { try Self.ends[0].end(message, world) }
        func statements(_ operation: some Handled, as user: UserID) throws -> Int {
            var count = 0
            try world.batch {
                let counting = CountingTransaction(try #require(world.batched))
                let caller = Caller(user: user)
                var context = Context(
                    transaction: counting, caller: caller, now: world.now, ids: IDGenerator(), scope: operation.scope(for: caller))
                _ = try operation.handle(in: &context)
                count = counting.statementCount
            }
            return count
        }
        // All remaining ones are ann's.
        let newest = mentions[59].ann.messageId
        #expect(try statements(DeleteMessage(channel: "general", message: newest), as: "ann") < 30)
        // cid has deleted all of ann's.
        try world.perform(DeleteMessagesForMe(channel: "general", messages: mentions.dropLast().map(\.ann.messageId)), as: "cid")
        #expect(try statements(GetUnread(channel: "general"), as: "cid") < 15)
        #expect(try !isMentionedOnServer("cid", in: world) && isMentionedOnServer("ben", in: world))
    }

    @Test("I18 MN-12 a search for a mention goes back past some that its user deleted for themselves, and past 2,000 at most")
    func rows() throws {
        let world = try Self.world()
        try Self.mention("older", as: "ann", in: world)
        let deleted = try Self.mention("deleted", as: "ann", in: world)
        try world.perform(DeleteMessagesForMe(channel: "general", messages: [deleted.messageId]), as: "cid")
        /// Makes ann mention the channel in some of 3,000 further messages, and cid delete these for themselves.
        func addDeleted(_ part: SQL) throws {
            let numbers: SQL = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 3000)"
            try world.execute(
                """
                INSERT INTO channel_mentions (channel_id, seq, change_seq, mention_seq, sender_id)
                \(numbers) SELECT 'general', n + 100, n + 100, n + 100, 'ann' FROM numbers WHERE \(part)
                """)
            try world.execute(
                """
                INSERT INTO own_deletions (user_id, channel_id, seq, deleted_at, user_seq)
                \(numbers) SELECT 'cid', 'general', n + 100, 0, 1 FROM numbers WHERE \(part)
                """)
        }
        func look() throws -> (isMentioned: Bool, rowCount: Int, statementCount: Int) {
            try world.database.read { transaction in
                let counting = CountingTransaction(transaction)
                var context = Context(transaction: counting, caller: Caller(user: "cid"), now: world.now, ids: IDGenerator())
                let unread = try GetUnread(channel: "general").handle(in: &context)
                return (unread.hasMention, counting.rowCount, counting.statementCount)
            }
        }
        try addDeleted("n <= 1500")
        #expect(try look().isMentioned)
        try addDeleted("n > 1500")
        let last = try look()
        #expect(!last.isMentioned)
        #expect(last.rowCount < 2000 && last.statementCount < 110, "\(last)")
        // The first one mentions a user who has deleted none.
        #expect(try isMentionedOnServer("ben", in: world))
    }

    @Test(
        "MN-12 MN-16 R35 after each step of random histories a device agrees with the server, whenever it began",
        arguments: Seeds.first(3))
    func random(seed: UInt64) throws {
        let world = try Self.world()
        let users: [UserID] = ["ann", "ben", "cid"]
        var random = SeededGenerator(seed: seed)
        var messages: [Message] = []
        var devices: [Device] = []
        for step in 0..<250 {
            // Mostly ben's, so the others' are far back.
            let sender = random.once(in: 3) ? random.pick(users) : "ben"
            let place = Seq(random.number(1...(2 * step + 2)))
            switch random.number(1...20) {
            case 1...9: messages.append(try Self.mention("\(step)", as: sender, in: world))
            case 10...15 where !messages.isEmpty: try Self.ends[0].end(random.pick(messages), world)
            case 16...17 where !messages.isEmpty:
                let message = random.pick(messages)
                messages.removeAll { $0.messageId == message.messageId }
                try Self.ends[random.number(1...2)].end(message, world)
            case 18 where !messages.isEmpty:
                let message = random.pick(messages)
                let edit = EditMessage(channel: "general", message: message.messageId, mentionees: [.channel])
                try world.perform(edit, as: message.sender)
            case 19: try world.perform(MarkRead(channel: "general", seq: min(place, Seq(step))), as: random.pick(users))
            default: _ = try world.refusal(MarkUnread(channel: "general", seq: place), as: random.pick(users))
            }
            if step.isMultiple(of: 25) { devices = Array(devices.suffix(3)) + (try users.map { try Device(of: $0, in: world) }) }
            for index in devices.indices {
                try devices[index].catchUp(by: random.pick(Way.allCases), in: world)
                let isMentioned = try isMentionedOnServer(devices[index].user, in: world)
                #expect(try devices[index].isMentioned(in: world) == isMentioned, "\(devices[index].user), step \(step)")
            }
        }
    }
}
