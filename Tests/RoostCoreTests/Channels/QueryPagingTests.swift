import Foundation
import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@Suite("Queries of channels: paging")
struct QueryPagingTests {
    @Test(
        "SB-23 AM-33 ST-09 pages of any size give the list of one page, forward and back, in either direction of each sort",
        arguments: Seeds.first(2),
        ChannelSort.allCases.flatMap { sort in
            [nil, .ascending, .descending].map { (direction: SortDirection?) in (sort, direction) }
        })
    func pages(seed: UInt64, by order: (sort: ChannelSort, direction: SortDirection?)) throws {
        let sort = order.sort
        var oracle = try QueryOracle(seed: seed, channels: 40)
        for membership in MembershipFilter.allCases where membership == .member || (sort != .lastMessage && sort != .unreadFirst) {
            let query = QueryChannels(
                membership: membership, includeDeleted: true, hidden: membership == .member ? .all : nil, sort: sort,
                order: order.direction)
            for role in [AppRole.user, .admin] {
                let whole = try oracle.answer(query, as: "ann", role: role)
                let expected = try oracle.expected(query, as: "ann", role: role)
                #expect(whole == expected)
                for limit in [1, 3, 7] {
                    let (onward, back) = try thereAndBack(query, limit: limit, in: oracle.world, as: "ann", role: role)
                    #expect(onward.flatMap { $0 } == whole)
                    #expect(back == onward)
                }
            }
        }
    }

    /// All pages from the first to the last, and the same on the way back.
    private func thereAndBack(
        _ query: QueryChannels, limit: Int, in world: CoreWorld, as user: UserID, role: AppRole = .user
    ) throws -> (onward: [[ChannelID]], back: [[ChannelID]]) {
        var query = query.with { $0.limit = limit }
        var onward: [Page<ChannelView>] = []
        repeat {
            onward.append(try world.perform(query, as: user, role: role))
            query.cursor = onward.last?.nextCursor
        } while query.cursor != nil
        #expect(onward.first?.previousCursor == nil)
        var back = Array(onward.suffix(1))
        query.cursor = onward.last?.previousCursor
        while query.cursor != nil {
            let page = try world.perform(query, as: user, role: role)
            back.insert(page, at: 0)
            query.cursor = page.previousCursor
        }
        return (onward.map { $0.items.map(\.channel.channelId) }, back.map { $0.items.map(\.channel.channelId) })
    }

    @Test(
        "SB-23 while channels move by new messages, none of the others is skipped or shown twice",
        arguments: Seeds.first(6),
        [ChannelSort.lastMessage, .unreadFirst, .lastActivity].flatMap { sort in
            SortDirection.allCases.map { (direction: SortDirection) in (sort, direction) }
        })
    func moving(seed: UInt64, by order: (sort: ChannelSort, direction: SortDirection)) throws {
        let world = try CoreWorld()
        var random = SeededGenerator(seed: seed)
        for user in ["ann", "bob"] as [UserID] { try world.user(user) }
        let channels = (0..<24).map { ChannelID("channel-\($0)") }
        for channel in channels {
            world.advance(milliseconds: 1)
            try world.channel(channel, owner: "ann", members: ["bob"])
        }
        var query = QueryChannels(sort: order.sort, order: order.direction, limit: 4)
        var seen: [ChannelID] = []
        var moved: Set<ChannelID> = []
        let before = try world.perform(query.with { $0.limit = 100 }, as: "bob").items.map(\.channel.channelId)
        repeat {
            let page = try world.perform(query, as: "bob")
            seen += page.items.map(\.channel.channelId)
            query.cursor = page.nextCursor
            for _ in 0..<2 {
                world.advance(milliseconds: 1)
                let channel = random.pick(channels)
                try world.send("news", to: channel, as: "ann")
                moved.insert(channel)
            }
        } while query.cursor != nil
        #expect(seen.filter { !moved.contains($0) } == before.filter { !moved.contains($0) })
    }

    @Test("SB-23 an empty page leads back to its cursor's position")
    func emptyPage() throws {
        let world = try CoreWorld()
        for number in 1...4 {
            world.advance(milliseconds: 1)
            try world.channel(ChannelID("\(number)"), owner: "ann")
        }
        let query = QueryChannels(limit: 2)
        let first = try world.perform(query, as: "ann")
        for channel in ["1", "2"] as [ChannelID] { try world.perform(DeleteChannel(channel: channel), as: "ann") }
        let second = try world.perform(query.with { $0.cursor = first.nextCursor }, as: "ann")
        #expect(second.items.isEmpty && second.nextCursor == nil)
        let again = try world.perform(query.with { $0.cursor = second.previousCursor }, as: "ann")
        #expect(again.items.map(\.channel.channelId) == ["4", "3"])
        #expect(again.previousCursor == nil)
    }

    @Test("R09 a cursor of another query is refused, whatever the difference")
    func otherQuery() throws {
        let world = try CoreWorld()
        for number in 1...3 { try world.channel(ChannelID("\(number)"), owner: "ann") }
        let query = QueryChannels(limit: 1)
        let cursor = try world.perform(query, as: "ann").nextCursor
        #expect(cursor != nil)
        let others: [QueryChannels] = [
            query.with { $0.sort = .created }, query.with { $0.membership = .all }, query.with { $0.types = [.community] },
            query.with { $0.includeDeleted = false }, query.with { $0.nameContains = "x" }, query.with { $0.order = .ascending },
        ]
        let refusal = RoostError(.invalidArgument, "cursor isn't a cursor of this query.", field: "cursor")
        for other in others { #expect(try world.refusal(other.with { $0.cursor = cursor }, as: "ann") == refusal) }
        #expect(try world.refusal(ListMembers(channel: "1", cursor: cursor), as: "ann") == refusal)
        // The page size isn't part of the query.
        #expect(try world.refusal(query.with { ($0.cursor, $0.limit) = (cursor, 50) }, as: "ann") == nil)
    }

    @Test("R09 a forged cursor is refused, or is a position like any other", arguments: ChannelSort.allCases)
    func forged(sort: ChannelSort) throws {
        let world = try CoreWorld()
        for number in 1...3 { try world.channel(ChannelID("\(number)"), owner: "ann") }
        let query = QueryChannels(sort: sort, limit: 1)
        let cursor = try #require(try world.perform(query, as: "ann").nextCursor)
        let text = String(decoding: try #require(Data(base64URL: cursor)), as: UTF8.self)
        let keys = try #require(text.range(of: #""k":"#)).upperBound
        let valid =
            sort == .name
            ? #"["z","z"]"#
            : sort == .unreadFirst ? #"[9223372036854775807,-9223372036854775808,"z"]"# : #"[9223372036854775807,"z"]"#
        #expect(try world.refusal(query.with { $0.cursor = Data((text[..<keys] + valid + "}").utf8).base64URL }, as: "ann") == nil)

        let forged = [
            "", "[]", "null", "{}", "[1]", #"["a"]"#, #"["a","b","c","d"]"#, "[1,2]", "[1.5,\"a\"]", "[92233720368547758080,\"a\"]",
            "[true,\"a\"]",
            #"[null,null]"#, #"[1,"\u0000"]"#, #"["a","\u0000"]"#, #"[1,1,"\u0000"]"#, #"[[1],"a"]"#, #"{"a":1}"#, #"["a",1]"#,
        ].map { Data((text[..<keys] + $0 + "}").utf8).base64URL }
        let others = [
            "", "=", "####", "é", "bm90IGpzb24", String(cursor.dropLast(9)), cursor + "AAAA", Data([0xFF, 0xFE]).base64URL,
        ]
        for cursor in forged + others {
            let refusal = try world.refusal(query.with { $0.cursor = cursor }, as: "ann")
            #expect([refusal?.code.rawValue, refusal?.field] == ["invalid_argument", "cursor"], "\(cursor)")
        }
    }

    @Test("AM-33 a query that passes many channels answers with a short page and continues from there")
    func shortPages() throws {
        let world = try CoreWorld()
        try world.user("ann")
        try world.user("bob")
        try BulkRows.channels(6000, in: world)
        try world.channel("needle", owner: "bob")
        try world.perform(FreezeChannel(channel: "needle"), as: "bob")
        try world.execute("UPDATE channels SET created_at = 0 WHERE channel_id = 'needle'")
        try world.execute("UPDATE channels SET is_frozen = 1 WHERE channel_id <> 'needle'")
        var query = QueryChannels(membership: .all, sort: .created).with { $0.includeFrozen = false }
        try world.perform(UnfreezeChannel(channel: "needle"), as: "bob")
        let first = try world.perform(query, as: "ann")
        query.cursor = first.nextCursor
        let second = try world.perform(query, as: "ann")
        #expect([first, second].map { $0.items.map(\.channel.channelId) } == [[], ["needle"]])
        #expect(second.nextCursor == nil)
        query.cursor = second.previousCursor
        #expect(try world.perform(query, as: "ann").items.isEmpty)
    }

    @Test("SB-23 a page of a user's own channels ends before its content is too large, and the next one continues from there")
    func largeChannels() throws {
        let world = try CoreWorld()
        try world.user("ann")
        let metadata: JSONValue = ["k": .string(String(repeating: "x", count: Limits.metadataSizeBytes - 100))]
        let channels = (0..<15).map { ChannelID("channel-\($0)") }
        for channel in channels {
            world.advance(milliseconds: 1)
            try world.perform(CreateChannel(channel: channel, metadata: metadata), as: "ann")
        }
        let query = QueryChannels(limit: 30)
        let first = try world.perform(query, as: "ann")
        #expect(first.items.count == 10 && first.nextCursor != nil)
        let second = try world.perform(query.with { $0.cursor = first.nextCursor }, as: "ann")
        #expect((first.items + second.items).map(\.channel.channelId) == Array(channels.reversed()))
        #expect(second.nextCursor == nil)
    }

    @Test(
        "I10 no cursor reveals a channel that the caller may not know of, however many are passed",
        arguments: [ChannelSort.created, .name, .lastActivity])
    func tellsNothing(sort: ChannelSort) throws {
        let world = try CoreWorld()
        try world.user("ann")
        try world.user("bob")
        try BulkRows.channels(6000, in: world)
        let hidden: [(ChannelID, ChannelType)] = [("secret-1", .group), ("secret-2", .conversation), ("secret-3", .live)]
        for (id, type) in hidden {
            try world.user("cid")
            try world.perform(CreateChannel(channel: id, type: type, displayName: "\(id)", users: ["cid"]), as: "bob")
        }
        try world.channel("secret-4", owner: "bob")
        try world.perform(DeleteChannel(channel: "secret-4"), as: "bob")
        var query = QueryChannels(membership: .all, sort: sort, limit: 1).with { $0.includeFrozen = false }
        try world.execute("UPDATE channels SET is_frozen = 1 WHERE channel_id LIKE 'bulk-%'")
        for (user, role, knows) in [("ann", .user, []), ("ann", .moderator, ["secret-1", "secret-3"])]
            as [(UserID, AppRole, [String])]
        {
            var revealed: Set<String> = []
            var pages = 0
            query.cursor = nil
            repeat {
                let page = try world.perform(query, as: user, role: role)
                query.cursor = page.nextCursor
                pages += 1
                for cursor in [page.nextCursor, page.previousCursor].compactMap({ $0 }) {
                    let text = String(decoding: try #require(Data(base64URL: cursor)), as: UTF8.self)
                    revealed.formUnion((1...4).map { "secret-\($0)" }.filter(text.contains))
                }
            } while query.cursor != nil
            #expect(revealed.isSubset(of: knows))
            #expect(pages > 1)
        }
    }

    @Test(
        "AM-20 SB-24 a list shows each channel as a single read does, including the caller's permissions, however channels differ",
        arguments: Seeds.first(3))
    func showsWhatReadingShows(seed: UInt64) throws {
        let world = try QueryOracle(seed: seed, channels: 60).world
        var shown: Set<[Permission]> = []
        let callers: [(UserID, AppRole)] = [
            ("ann", .user), ("bob", .user), ("ann", .admin), ("cid", .moderator), ("dan", .guest),
        ]
        for (user, role) in callers {
            for membership in MembershipFilter.allCases {
                let hidden: HiddenFilter? = membership == .member ? .all : nil
                let query = QueryChannels(membership: membership, includeDeleted: true, hidden: hidden, limit: 100)
                let items = try world.perform(query, as: user, role: role).items
                let alone = try items.map { item in
                    var view = try world.perform(GetChannel(channel: item.channel.channelId), as: user, role: role)
                    // A page has its users beside its items.
                    view.users = nil
                    return view
                }
                #expect(items == alone)
                shown.formUnion(items.map(\.ownCapabilities))
            }
        }
        #expect(shown.count > 8)
    }
}

extension Data {
    var base64URL: String {
        base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }

    init?(base64URL text: String) {
        let text = text.replacing("-", with: "+").replacing("_", with: "/")
        self.init(base64Encoded: text + String(repeating: "=", count: (4 - text.utf8.count % 4) % 4))
    }
}
