import RoostAPI
import RoostDatabase
import RoostTestSupport
import Testing

@testable import RoostCore

@Suite("Drafts")
struct DraftTests {
    private func world() throws -> CoreWorld {
        let world = try CoreWorld()
        for channel in ["general", "other", "third"] as [ChannelID] {
            try world.channel(channel, owner: "ann", members: ["bob", "cid"])
        }
        return world
    }

    @Test(
        "EM-35 a draft is the user's own: it replaces the previous one, only their stream has it, and a repeat changes nothing")
    func sets() throws {
        let world = try world()
        let seq = try world.perform(GetMyChanges(after: 0), as: "bob").seq
        var first: ChannelDraft?
        let notices = try world.notices {
            first = try world.perform(SetDraft(channel: "general", text: "he", metadata: ["to": "ann"]), as: "bob")
        }
        let expected = ChannelDraft(
            channelId: "general", text: "he", metadata: ["to": "ann"], updatedAt: world.now, userSeq: seq + 1)
        #expect(first == expected)
        guard case .event(let event, .user("bob"))? = notices.first, notices.count == 1 else { throw Missed("\(notices)") }
        #expect(event.kind == .draftUpdated && event.seq == seq + 1 && event.rows.drafts == [expected])
        world.advance(milliseconds: 5)
        let dump = try world.dump()
        var again: ChannelDraft?
        let silence = try world.notices {
            again = try world.perform(SetDraft(channel: "general", text: "he", metadata: ["to": "ann"]), as: "bob")
        }
        #expect(again == expected && silence == [])
        #expect(try world.dump() == dump)
        // To Swift it is the same text, with other code points.
        try world.perform(SetDraft(channel: "general", text: "caf\u{E9}"), as: "bob")
        let other = try world.perform(SetDraft(channel: "general", text: "cafe\u{301}"), as: "bob")
        #expect(other.userSeq == seq + 3 && other.metadata == nil)
        #expect(try world.perform(GetDraft(channel: "general"), as: "bob") == other)
        #expect(try world.perform(GetDraft(channel: "general"), as: "ann").isRemoved)
        #expect(try world.perform(GetMyChanges(after: 0), as: "ann").rows.drafts == nil)
    }

    @Test("EM-35 an empty text removes a draft, for devices that were away too, and removing nothing changes nothing")
    func removes() throws {
        let world = try world()
        let dump = try world.dump()
        let none = try world.perform(SetDraft(channel: "general", text: ""), as: "bob")
        #expect(none == ChannelDraft(channelId: "general", text: "", updatedAt: world.now, userSeq: 0))
        #expect(try world.dump() == dump)
        let draft = try world.perform(SetDraft(channel: "general", text: "hello"), as: "bob")
        try world.send("hello", to: "general", as: "bob")
        #expect(try world.perform(GetDraft(channel: "general"), as: "bob") == draft)
        let removed = try world.perform(SetDraft(channel: "general", text: ""), as: "bob")
        #expect(removed.isRemoved && removed.metadata == nil && removed.userSeq > draft.userSeq)
        #expect(try world.perform(GetMyChanges(after: draft.userSeq), as: "bob").rows.drafts == [removed])
        #expect(try world.perform(Resume(after: draft.userSeq, channels: [:]), as: "bob").user.rows.drafts == [removed])
        #expect(try world.perform(ListDrafts(), as: "bob").items == [])
    }

    @Test("EM-35 a user's drafts of all channels are listed and paged, most recently changed first")
    func lists() throws {
        let world = try world()
        for channel in ["general", "other", "third"] as [ChannelID] {
            try world.perform(SetDraft(channel: channel, text: "in \(channel)"), as: "bob")
        }
        try world.perform(SetDraft(channel: "general", text: "in general, again"), as: "bob")
        try world.perform(SetDraft(channel: "general", text: "ann's"), as: "ann")
        let first = try world.perform(ListDrafts(limit: 2), as: "bob")
        #expect(first.items.map(\.text) == ["in general, again", "in third"])
        let second = try world.perform(ListDrafts(limit: 2, cursor: first.nextCursor), as: "bob")
        #expect(second.items.map(\.text) == ["in other"] && second.nextCursor == nil)
        // A deleted channel no longer has any.
        try world.perform(DeleteChannel(channel: "third"), as: "ann")
        #expect(try world.perform(ListDrafts(), as: "bob").items.map(\.text) == ["in general, again", "in other"])
        #expect(try world.code(GetDraft(channel: "third"), as: "bob") == world.code(MarkRead(channel: "third"), as: "bob"))
        #expect(try world.code(GetDraft(channel: "third"), as: "bob") != nil)
        #expect(try world.code(ListDrafts(limit: 0), as: "bob") == .invalidArgument)
        #expect(try world.code(ListDrafts(cursor: "x"), as: "bob") == .invalidArgument)
    }

    @Test("AM-34 EM-35 a draft in a deleted channel isn't among changes, and can be removed, which notifies the other devices")
    func deletedChannel() throws {
        let world = try world()
        for channel in ["general", "other"] as [ChannelID] {
            try world.perform(SetDraft(channel: channel, text: "in \(channel)"), as: "bob")
        }
        let before = try world.rows("SELECT user_id, user_seq FROM drafts ORDER BY 1, 2") { [$0.string(), "\($0.int64())"] }
        try world.perform(DeleteChannel(channel: "other"), as: "ann")
        #expect(try world.rows("SELECT user_id, user_seq FROM drafts ORDER BY 1, 2") { [$0.string(), "\($0.int64())"] } == before)
        #expect(try world.perform(Resume(after: 0, channels: [:]), as: "bob").user.rows.drafts?.map(\.channelId) == ["general"])
        #expect(try world.perform(GetMyChanges(after: 0), as: "bob").rows.drafts?.map(\.channelId) == ["general"])
        // Nothing else can be written there, and without a draft nothing is removed.
        let dump = try world.dump()
        #expect(try world.code(SetDraft(channel: "other", text: "more"), as: "bob") == .notPermitted)
        #expect(try world.code(SetDraft(channel: "other", text: ""), as: "ann") == .notPermitted)
        try world.user("zoe")
        #expect(try world.code(SetDraft(channel: "other", text: ""), as: "zoe") == .notFound)
        #expect(try world.dump().filter { !$0.contains("zoe") } == dump.filter { !$0.contains("zoe") })
        let removed = try world.perform(SetDraft(channel: "other", text: ""), as: "bob")
        #expect(removed.isRemoved && world.events(to: .user("bob")).last?.rows.drafts == [removed])
        #expect(try world.perform(GetMyChanges(after: removed.userSeq - 1), as: "bob").rows.drafts == [removed])
        #expect(try world.perform(SetDraft(channel: "other", text: ""), as: "bob") == removed)
    }

    @Test("AM-41 EM-28 EM-29 leaving a channel, and being removed from it, removes the draft in the same event")
    func leaving() throws {
        let world = try world()
        for user in ["ann", "bob", "cid"] as [UserID] { try world.perform(SetDraft(channel: "general", text: "mine"), as: user) }
        try world.perform(SetDraft(channel: "other", text: "stays"), as: "bob")
        let left = try world.notices { try world.perform(LeaveChannel(channel: "general"), as: "bob") }
        let removed = try world.notices { try world.perform(RemoveMembers(channel: "general", users: ["cid"]), as: "ann") }
        for (user, notices) in [("bob", left), ("cid", removed)] as [(UserID, [Notice])] {
            let own = notices.compactMap { notice in
                if case .event(let event, .user(user)) = notice { event } else { nil }
            }
            #expect(own.count == 1)
            let draft = own.first?.rows.drafts?.first
            #expect(draft?.isRemoved == true && draft?.userSeq == own.first?.seq)
            #expect(own.first?.rows.memberships?.first?.userSeq == own.first?.seq)
            #expect(try world.perform(GetMyChanges(after: 0), as: user).rows.drafts?.first { $0.channelId == "general" } == draft)
        }
        #expect(try world.perform(ListDrafts(), as: "bob").items.map(\.text) == ["stays"])
        #expect(try world.perform(ListDrafts(), as: "ann").items.map(\.text) == ["mine"])
        // A user who rejoins starts over, and leaving without a draft sends none.
        try world.perform(JoinChannel(channel: "general"), as: "bob")
        #expect(try world.perform(GetDraft(channel: "general"), as: "bob").isRemoved)
        let again = try world.notices { try world.perform(LeaveChannel(channel: "general"), as: "bob") }
        #expect(!again.contains { if case .event(let event, _) = $0 { event.rows.drafts != nil } else { false } })
    }

    @Test("a member may keep a draft where they currently can't send")
    func frozen() throws {
        let world = try world()
        try world.perform(FreezeChannel(channel: "general"), as: "ann")
        try world.perform(SilenceChannel(channel: "other", seconds: 60), as: "ann")
        for channel in ["general", "other"] as [ChannelID] {
            #expect(
                try world.refusal(SendMessage(channel: channel, clientId: "1", text: "later"), as: "bob") != nil)
            try world.perform(SetDraft(channel: channel, text: "later"), as: "bob")
        }
    }

    @Test("X-01 AM-35 values outside limits, strangers and unknown channels are refused, and nothing changes")
    func refusals() throws {
        let world = try world()
        try world.user("zoe")
        try world.perform(SetDraft(channel: "general", text: "kept"), as: "bob")
        let dump = try world.dump()
        let deep = (1...Limits.metadataDepth + 1).reduce(JSONValue.integer(1)) { value, _ in .object(["k": value]) }
        func refusal(_ operation: SetDraft, as user: UserID = "bob") throws -> String? {
            try world.refusal(operation, as: user).map { "\($0.code.rawValue) \($0.field ?? "") \($0.limit ?? 0)" }
        }
        func text(_ text: String, _ metadata: JSONValue? = nil) -> SetDraft {
            SetDraft(channel: "general", text: text, metadata: metadata)
        }
        #expect(try refusal(text(String(repeating: "x", count: 20_001))) == "limit_exceeded text 20000")
        #expect(try refusal(text("a\u{0}")) == "invalid_argument text 0")
        #expect(try refusal(text("a", ["k": .string(String(repeating: "x", count: 100_000))])) == "limit_exceeded metadata 100000")
        #expect(try refusal(text("a", deep)) == "limit_exceeded metadata 32")
        #expect(try refusal(text("a", "text")) == "invalid_argument metadata 0")
        #expect(try refusal(text("", ["k": 1])) == "invalid_argument metadata 0")
        #expect(try refusal(text("a"), as: "zoe")?.hasPrefix("not_member") == true)
        #expect(try refusal(SetDraft(channel: "nowhere", text: "a"))?.hasPrefix("not_found") == true)
        #expect(try world.dump() == dump)
        try world.perform(text(String(repeating: "x", count: 20_000)), as: "bob")
    }

    @Test("NF-04 a page of changes ends before it is too large, and a client that continues gets each draft once")
    func pages() throws {
        let world = try world()
        let long = String(repeating: "\u{1F426}", count: 20_000)
        for channel in (1...20).map({ ChannelID("c\($0)") }) {
            try world.channel(channel, owner: "bob")
            try world.perform(SetDraft(channel: channel, text: long), as: "bob")
        }
        var (found, after, pages): ([ChannelDraft], Seq, Int) = ([], 0, 0)
        var hasMore = true
        while hasMore {
            let page = try world.perform(GetMyChanges(after: after, limit: 1000), as: "bob")
            #expect(page.rows.contentSizeBytes < 2 * Limits.pageContentBytes)
            found += page.rows.drafts ?? []
            (after, hasMore, pages) = (page.seq, page.hasMore, pages + 1)
        }
        #expect(pages == 2 && found.map(\.channelId) == (1...20).map { ChannelID("c\($0)") })
        // A node that missed the events has all of them.
        let missed = try world.database.read { transaction in
            try ChannelDraft.changed(for: "bob", after: 0, limit: Int(Int32.max), in: transaction)
        }
        #expect(missed.upTo == nil)
    }

    @Test("NF-04 a page of large drafts fetches few rows beyond its end, and goes on behind drafts in deleted channels")
    func fetches() throws {
        let world = try CoreWorld()
        let long = String(repeating: "\u{1F426}", count: 20_000)
        let channels = (1...60).map { ChannelID("c\($0)") }
        for channel in channels {
            try world.channel(channel, owner: "bob")
            let metadata: JSONValue = ["k": .string(String(repeating: "x", count: 90_000))]
            try world.perform(SetDraft(channel: channel, text: long, metadata: metadata), as: "bob")
        }
        func rowCount(_ read: (any Transaction) throws -> Void) throws -> Int {
            try world.database.read { transaction in
                let counting = CountingTransaction(transaction)
                try read(counting)
                return counting.rowCount
            }
        }
        let changes = try rowCount { _ = try ChannelDraft.changed(for: "bob", after: 0, limit: 1000, in: $0) }
        #expect(changes < 12)
        let list = try rowCount { transaction in
            var context = Context(transaction: transaction, caller: Caller(user: "bob"), now: world.now, ids: IDGenerator())
            _ = try ListDrafts(limit: 100).handle(in: &context)
        }
        #expect(list < 40)
        // More than a page has room for.
        for channel in channels.suffix(15) { try world.perform(DeleteChannel(channel: channel), as: "bob") }
        var (listed, cursor): ([ChannelID], String?) = ([], nil)
        repeat {
            let page = try world.perform(ListDrafts(limit: 100, cursor: cursor), as: "bob")
            listed += page.items.map(\.channelId)
            cursor = page.nextCursor
        } while cursor != nil
        #expect(listed == Array(channels.dropLast(15).reversed()))
    }

    @Test("NF-04 removing many members looks for drafts once, and writes only existing ones")
    func lookUps() throws {
        let world = try world()
        let users = (1...50).map { UserID("u\($0)") }
        for user in users { try world.user(user) }
        /// The number of statements for removing some users, the first of whom have drafts.
        func count(_ users: some Collection<UserID>, drafts: Int) throws -> Int {
            let users = Array(users)
            try world.perform(AddMembers(channel: "general", users: users), as: "ann")
            for user in users.prefix(drafts) { try world.perform(SetDraft(channel: "general", text: "mine"), as: user) }
            let operation = RemoveMembers(channel: "general", users: users)
            var statements = 0
            try world.batch {
                let counting = CountingTransaction(try #require(world.batched))
                let caller = Caller(user: "ann")
                var context = Context(
                    transaction: counting, caller: caller, now: world.now, ids: IDGenerator(), scope: operation.scope(for: caller))
                _ = try operation.handle(in: &context)
                statements = counting.statementCount
            }
            return statements
        }
        let none = try count(users, drafts: 0)
        #expect(try count(users, drafts: 3) == none + 3)
        #expect(try world.rows("SELECT user_id FROM drafts WHERE text <> ''") { $0.string() } == [])
    }
}
