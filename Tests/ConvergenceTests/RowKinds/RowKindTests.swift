import RoostDatabase
import RoostTestSupport
import Testing

@testable import Roost
@testable import RoostAPI
@testable import RoostCore

@Suite("A kind of rows declared once")
struct RowKindTests {
    private static let kinds = RowKinds.standard.adding([Sticker.self])

    /// A channel of ann's and bob's with three messages at 2, 3 and 4. Its table of stickers must be removed when a test ends: databases are reused.
    private func world() throws -> CoreWorld {
        let world = try CoreWorld()
        world.rowKinds = StoredRowKinds(Self.kinds)
        try world.execute(Sticker.table)
        try world.channel("general", owner: "ann", members: ["bob"])
        for text in ["one", "two", "three"] { try world.send(text, to: "general", as: "ann") }
        return world
    }

    private func put(_ picture: String, on message: Seq, as user: UserID = "ann", in world: CoreWorld) throws {
        try world.perform(PutSticker(channel: "general", message: message, picture: picture), as: user)
    }

    @Test("the core and the SDK know each kind on the wire")
    func complete() {
        let kinds = RowKinds.standard.all.map { $0.kind }
        #expect(StoredRowKinds.standard.all.map { $0.kind } == kinds)
        #expect(CachedRowKinds.standard.all.map { $0.kind } == kinds)
        #expect(Set(kinds).count == kinds.count)
        let bits = StoredRowKinds(Self.kinds).all.compactMap { $0.headBit }
        #expect(Set(bits).count == bits.count && bits.allSatisfy { $0.nonzeroBitCount == 1 })
    }

    /// How many statements a resume as bob from a position of the channel takes in a program that knows these kinds.
    private func statementCount(after seq: Seq, in world: CoreWorld, _ kinds: RowKinds) throws -> Int {
        try world.database.read { transaction in
            let counting = CountingTransaction(transaction)
            var context = Context(
                transaction: counting, caller: Caller(user: "bob"), now: world.now, ids: IDGenerator(),
                rowKinds: StoredRowKinds(kinds))
            _ = try Resume(after: 0, channels: seq == 0 ? [:] : ["general": seq]).handle(in: &context)
            return counting.statementCount
        }
    }

    @Test("NF-04 a channel costs no look-up for a kind without rows, and as many for twenty changes as for two")
    func unusedKinds() throws {
        let world = try world()
        defer { try? world.execute("DROP TABLE stickers") }
        // From a position, and as a fresh client.
        func counts(_ kinds: RowKinds) throws -> [Int] {
            try [2, 0].map { try statementCount(after: $0, in: world, kinds) }
        }
        // Not only messages, since these alone need no further look-up.
        let four = try world.send("four", to: "general", as: "ann")
        try world.perform(EditMessage(channel: "general", message: four.messageId, text: "edited"), as: "ann")
        let standard = try counts(.standard)
        #expect(try counts(Self.kinds) == standard)
        for number in 0..<20 { try world.send("\(number)", to: "general", as: "ann") }
        #expect(try counts(Self.kinds) == standard)
        try put("star", on: 2, in: world)
        #expect(try counts(.standard) == standard)
        #expect(try counts(Self.kinds) == standard.map { $0 + 1 })
        try put("moon", on: 3, in: world)
        #expect(try counts(Self.kinds) == standard.map { $0 + 1 })
    }

    @Test("NF-04 a client that missed only messages costs one look-up for them, any other change one for each possible kind")
    func onlyMessages() throws {
        let world = try world()
        defer { try? world.execute("DROP TABLE stickers") }
        try put("star", on: 2, in: world)
        let messages = try (0..<3).map { try world.send("\($0)", to: "general", as: "ann") }
        let missed = try statementCount(after: messages[0].seq, in: world, Self.kinds)
        #expect(try statementCount(after: messages[1].seq, in: world, Self.kinds) == missed)
        // Earlier messages that were changed, members, stickers.
        try world.perform(EditMessage(channel: "general", message: messages[2].messageId, text: "edited"), as: "ann")
        #expect(try statementCount(after: messages[0].seq, in: world, Self.kinds) == missed + 3)
    }

    @Test("I2 promise 4 events, changes, resuming and missed events bring its rows, and each client ends like a fresh one")
    func converges() async throws {
        let world = try world()
        defer { try? world.execute("DROP TABLE stickers") }
        var live = try await StickerClient(user: "bob", Self.kinds)
        try await live.connect(to: world)
        var stale = try await StickerClient(user: "bob", Self.kinds)
        try await stale.connect(to: world)
        try put("star", on: 2, in: world)
        try put("moon", on: 3, as: "bob", in: world)
        try put("sun", on: 2, in: world)
        try await live.receive(world.events(to: .channel("general")).suffix(3))

        let expected = try world.rows("SELECT \(Sticker.columns) FROM stickers ORDER BY message_seq, user_id") {
            Sticker(reading: &$0)
        }
        #expect(expected.map(\.picture) == ["sun", "moon"])
        #expect(try await live.stickers() == expected)
        // Catching up from before the stickers, and from nothing.
        try await stale.connect(to: world)
        #expect(try await stale.stickers() == expected)
        var fresh = try await StickerClient(user: "bob", Self.kinds)
        try await fresh.connect(to: world)
        #expect(try await fresh.stickers() == expected)
        // Page by page, and as sent by a node that missed the events.
        var paged: [Sticker] = []
        var place: Seq = 4
        while true {
            let page = try world.perform(GetChannelChanges(channel: "general", after: place, limit: 1), as: "bob")
            paged += page.rows[Sticker.self] ?? []
            place = page.seq
            guard page.hasMore else { break }
        }
        #expect(paged.sorted { $0.key < $1.key } == expected)
        let missed = try world.database.read {
            try $0.missedEvents(of: .channel("general"), after: 4, now: world.now, rowKinds: world.rowKinds)
        }
        let stickers = missed.notices.compactMap { if case .event(let event, _) = $0 { event.rows[Sticker.self] } else { nil } }
        #expect(stickers.flatMap { $0 }.sorted { $0.key < $1.key } == expected)
    }

    @Test("I10 SB-14 SB-26 rows about a message that a member may not see are neither sent, fetched nor kept")
    func concealed() async throws {
        let world = try world()
        defer { try? world.execute("DROP TABLE stickers") }
        try put("star", on: 2, in: world)
        var client = try await StickerClient(user: "bob", Self.kinds)
        try await client.connect(to: world)
        #expect(try await client.stickers().map(\.message) == [2])
        // Bob hides the channel with its history so far: his floor is at 5.
        try world.perform(HideChannel(channel: "general", hidePreviousMessages: true), as: "bob")
        try await client.receive(world.events(to: .user("bob")).suffix(1))
        #expect(try await client.stickers().isEmpty)

        try put("moon", on: 3, in: world)
        let event = try #require(world.events(to: .channel("general")).last)
        #expect(event.oldestMessage == 3)
        let concealed = event.concealing(messagesUpTo: 5)
        #expect(concealed.rows == Rows(counters: event.rows.counters) && concealed.actor == nil)
        // Even if it were sent, the cache wouldn't keep it.
        try await client.receive([event])
        #expect(try await client.stickers().isEmpty)
        for after: Seq in [4, 5] {
            let changes = try world.perform(GetChannelChanges(channel: "general", after: after), as: "bob")
            #expect(changes.rows[Sticker.self] == nil && changes.seq == 6)
        }
        let fresh = try world.perform(Resume(after: 0, channels: [:]), as: "bob")
        #expect(fresh.channels.map { $0.rows[Sticker.self] == nil } == [true])
    }

    @Test("SB-59 rows about a message deleted for good are removed with it, on the server and from every cache")
    func purged() async throws {
        let world = try world()
        defer { try? world.execute("DROP TABLE stickers") }
        try put("star", on: 2, in: world)
        try put("moon", on: 3, in: world)
        var client = try await StickerClient(user: "bob", Self.kinds)
        try await client.connect(to: world)
        let star = try #require(world.events(to: .channel("general")).dropLast().last)
        let message = try #require(try world.perform(ListMessages(channel: "general"), as: "bob").messages.first)
        try world.perform(PurgeMessage(channel: "general", message: message.messageId), as: "root", role: .admin)
        try await client.receive(world.events(to: .channel("general")).suffix(1))
        let left = try world.rows("SELECT \(Sticker.columns) FROM stickers") { Sticker(reading: &$0) }
        #expect(left.map(\.message) == [3])
        #expect(try await client.stickers() == left)
        // Even if it arrived again, as in a page that was read earlier.
        try await client.store.write([.rows(star.rows, of: .channel("general"))])
        #expect(try await client.stickers() == left)
    }

    @Test("a client that doesn't know a kind leaves its rows out and follows the stream")
    func unknown() async throws {
        let world = try world()
        defer { try? world.execute("DROP TABLE stickers") }
        var client = try await StickerClient(user: "bob", .standard)
        try await client.connect(to: world)
        try put("star", on: 2, in: world)
        try await client.receive(world.events(to: .channel("general")).suffix(1))
        #expect(client.sync.saved.channels["general"]?.cursor == 5)
    }

    @Test("a cache that lacks a kind is fetched again")
    func newKind() async throws {
        let world = try world()
        defer { try? world.execute("DROP TABLE stickers") }
        try put("star", on: 2, in: world)
        let file = try TemporaryFile()
        defer { file.remove() }
        var old = try await StickerClient(user: "bob", .standard, at: file.url)
        try await old.connect(to: world)
        #expect(try await old.store.savedState().channels["general"] != nil)
        var new = try await StickerClient(user: "bob", Self.kinds, at: file.url)
        #expect(try await new.store.savedState() == SavedState())
        try await new.connect(to: world)
        #expect(try await new.stickers().map(\.picture) == ["star"])
        let again = try await StickerClient(user: "bob", Self.kinds, at: file.url)
        #expect(try await again.stickers().map(\.picture) == ["star"])
    }
}
