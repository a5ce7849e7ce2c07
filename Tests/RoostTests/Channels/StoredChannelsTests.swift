import Foundation
import GRDB
import Logging
import RoostAPI
import Testing

@testable import Roost

@MainActor @Suite("Channels: lists from the store", .timeLimit(.minutes(5)))
struct StoredChannelsTests {
    /// A client that was never started; tests write its store.
    private func chat() -> Chat {
        var configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = TinyServer()
        return Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
    }

    private static let queries: [ChannelQuery] = {
        var queries = [
            ChannelQuery(), ChannelQuery(hidden: .all, sort: .lastActivity), ChannelQuery(hidden: .hiddenOnly, sort: .created),
        ]
        queries.append(ChannelQuery(hidden: .hiddenAllowAutoUnhide))
        queries.append(ChannelQuery(hidden: .hiddenPreventAutoUnhide, sort: .name))
        queries.append(ChannelQuery(types: [.group, .live], includingTags: ["a", "b"], hidden: .all, sort: .name))
        queries.append(ChannelQuery(excludingTags: ["a"], hidden: .all, sort: .unreadFirst))
        var query = ChannelQuery(sort: .unreadFirst)
        query.unreadOnly = true
        query.includeEmpty = false
        queries.append(query)
        query = ChannelQuery(hidden: .all, sort: .name)
        query.nameContains = "Élan"
        queries.append(query)
        query.nameContains = "ba"
        query.includeFrozen = false
        queries.append(query)
        query = ChannelQuery(hidden: .all, sort: .created)
        query.customTypes = ["x"]
        query.isPublic = true
        query.createdBy = "bob"
        query.createdAfter = 2
        query.createdBefore = 9
        queries.append(query)
        query = ChannelQuery(hidden: .all)
        query.ids = ["c1", "c2", "group:c3", "live:c4"]
        queries.append(query)
        for sort in [ChannelSort.lastMessage, .name, .unreadFirst] {
            queries.append(
                ChannelQuery(hidden: .all, sort: sort, order: sort.defaultOrder == .ascending ? .descending : .ascending))
        }
        return queries
    }()

    @Test(
        "AM-30 AM-32 AM-33 AM-34 SB-24 SB-27 SB-29 SB-30 ST-09 R08 R09 a live list equals its query's result, after every change",
        arguments: 0..<15)
    func random(number: Int) async throws {
        let query = Self.queries[number]
        let chat = chat()
        let store = try await chat.driver.prepare().store
        var world = RandomChannels(seed: UInt64(number))
        let source = StoredChannels(query, pageSize: 5, driver: chat.driver)
        try await source.follow(.everything)
        var before = try #require(source.items)
        var (most, known) = (0, 0)
        for step in 0..<150 {
            let writes = world.change()
            try await store.write(writes)
            try await source.follow(StoreChange(writes, .standard, introducing: writes.introduced))
            var shown = before
            func check() {
                guard let difference = source.difference, let items = source.items else { return }
                #expect(difference.applied(to: shown) == items && difference.isEmpty == (shown == items), "step \(step)")
                (shown, known) = (items, known + 1)
            }
            check()
            if step % 40 == 39 {
                try await source.extend()
                check()
            }
            let views = try await store.read { database in try RandomChannels.ids.compactMap { try database.channelView($0) } }
            let users = try await store.read { database in
                try Dictionary(uniqueKeysWithValues: RandomChannels.users.map { ($0, try database.summary(of: $0)) })
            }
            let expected = query.evaluated(on: views)
            let items = try #require(source.items)
            #expect(items.map(\.id) == Array(expected.prefix(items.count)).map(\.channel.channelId), "step \(step)")
            #expect(
                items == expected.prefix(items.count).map { ChannelItem($0, users, now: chat.driver.environment.now()) },
                "step \(step)")
            #expect(source.hasMore == (expected.count > items.count))
            #expect(source.unreadCount == expected.reduce(0) { $0 + $1.unreadCount })
            #expect(ListUpdate(from: before, to: items).applied(to: before) == items, "step \(step)")
            (before, most) = (items, max(most, items.count))
        }
        #expect(most > 1, "the query holds nothing that could be out of order")
        #expect(known > 50, "hardly any difference was known")
    }

    @Test("AM-44 R25 the unread total is the sum over the user's channels, after every change", arguments: 0..<5)
    func unread(seed: UInt64) async throws {
        let chat = chat()
        let store = try await chat.driver.prepare().store
        var world = RandomChannels(seed: seed)
        var totals = UnreadTotals()
        var seen: Set<TotalUnread> = []
        func follow(_ change: StoreChange) async throws {
            totals = try await store.read { [totals] database in
                var totals = totals
                try totals.apply(change, in: database)
                return totals
            }
        }
        try await follow(.everything)
        for step in 0..<150 {
            let writes = world.change()
            try await store.write(writes)
            try await follow(StoreChange(writes, .standard))
            let unread = try await store.read { database in
                try RandomChannels.ids.compactMap { try database.channelView($0) }
                    .filter { $0.membership?.state == .member && $0.channel.deletedAt == nil && $0.unreadCount > 0 }
            }
            let expected = TotalUnread(unreadCount: unread.reduce(0) { $0 + $1.unreadCount }, unreadChannelCount: unread.count)
            #expect(totals.total == expected, "step \(step)")
            seen.insert(totals.total)
        }
        #expect(seen.count > 20)
    }

    @Test("AM-30 a list is available offline, follows writes, and is complete page by page")
    func offline() async throws {
        let chat = chat()
        let store = try await chat.driver.prepare().store
        var writes: [StoreWrite] = []
        for number in 1...120 { writes += RandomChannels.member(of: ChannelID("c\(number)"), at: Int64(number)) }
        try await store.write(writes)
        let list = chat.channels(matching: ChannelQuery(), pageSize: 50)
        var updates = list.updates.makeAsyncIterator()
        #expect(await updates.next()?.items.first?.id == "c120")
        #expect(list.items.count == 50 && list.hasMore)
        while list.hasMore { try await list.loadMore() }
        #expect(list.items.map(\.id.rawValue) == (1...120).reversed().map { "c\($0)" })
        #expect(await updates.next()?.items.count == 120)

        let counters = ChannelCounters(
            seq: 9, memberCount: 2, messageCount: 4, lastActivity: Timestamp(milliseconds: 900),
            lastMessageAt: Timestamp(milliseconds: 900))
        try await store.write([.counters("c7", counters)])
        let update = try #require(await updates.next())
        #expect(update.moved == [.init(from: 113, to: 0)])
        #expect(update.updated == [0])
        #expect(list.totalUnreadCount == 4)
    }

    @Test("AM-30 AM-44 the first rows, which an index finds, and hasMore are those of the whole order, and the total follows")
    func firstRows() async throws {
        let chat = chat()
        let store = try await chat.driver.prepare().store
        var world = RandomChannels(seed: 7)
        for _ in 0..<200 { try await store.write(world.change()) }
        var queries = [ChannelQuery(), ChannelQuery(hidden: .all), ChannelQuery(types: [.group, .live], hidden: .all)]
        queries.append(ChannelQuery(hidden: .all))
        queries[3].unreadOnly = true
        for sort in ChannelSort.allCases {
            for order in [SortDirection.ascending, .descending] {
                queries.append(ChannelQuery(hidden: .all, sort: sort, order: order))
            }
        }
        for query in queries {
            try await store.makeIndex(for: query.effectiveSort)
            for pageSize in [1, 3, 100] {
                let source = StoredChannels(query, pageSize: pageSize, driver: chat.driver)
                try await source.follow(.everything)
                #expect(source.isPartial)
                let first = (source.items, source.hasMore)
                try await source.complete()
                #expect(!source.isPartial && first == (source.items, source.hasMore))
                let unread = try await store.read { try query.places(in: $0).reduce(0) { $0 + ($1.isMuted ? 0 : $1.unreadCount) } }
                #expect(source.unreadCount == unread)
                // By reading, without the index.
                let places = try await store.read {
                    ChannelOrder(try query.places(in: $0), isReversed: query.isReversed).places.map(\.id)
                }
                #expect(source.items?.map(\.id) == Array(places.prefix(pageSize)))
                // A list is loaded once it has the total too.
                guard pageSize == 1 else { continue }
                let list = chat.channels(matching: query, pageSize: pageSize)
                try await list.loaded()
                #expect(list.items == source.items && list.totalUnreadCount == unread)
            }
        }
    }

    @Test("AM-30 a row whose channel got a message keeps the rest of its decoded content")
    func keepsParts() async throws {
        let chat = chat()
        let store = try await chat.driver.prepare().store
        try await store.write(RandomChannels.member(of: "c1", at: 1) + RandomChannels.member(of: "c2", at: 2))
        let source = StoredChannels(ChannelQuery(), pageSize: 50, driver: chat.driver)
        try await source.follow(.everything)
        try await source.complete()
        let before = try #require(source.items)
        let counters = ChannelCounters(
            seq: 9, memberCount: 2, messageCount: 4, lastActivity: Timestamp(milliseconds: 900),
            lastMessageAt: Timestamp(milliseconds: 900))
        // Reading the attributes again would fail; they aren't read, as long as their revision is the same.
        try await store.write([.counters("c1", counters)])
        try await store.damage("UPDATE channel_attributes SET metadata = x'00', type = NULL")
        try await source.follow(StoreChange(channels: ["c1"]))
        let items = try #require(source.items)
        #expect(items.map(\.id) == ["c1", "c2"] && items[0].channel.counters == counters && items[1] == before[0])
        #expect(items[1].row === before[0].row && items[0].membership == before[1].membership)
    }

    @Test("the limit and the cursor of a list's query are ignored: a list pages by itself")
    func ownPages() async throws {
        let chat = chat()
        let store = try await chat.driver.prepare().store
        try await store.write(RandomChannels.member(of: "c1", at: 1) + RandomChannels.member(of: "c2", at: 2))
        let list = chat.channels(matching: ChannelQuery(limit: 200, cursor: ""), pageSize: 1)
        try await list.loaded()
        #expect(list.items.map(\.id) == ["c2"] && list.hasMore)
        // It is the same query: nothing is loaded again.
        list.query.limit = 1
        #expect(list.phase == .loaded)
        list.query = ChannelQuery(order: .ascending, limit: 200)
        try await list.loaded()
        #expect(list.items.map(\.id) == ["c1"] && list.hasMore)
    }

    @Test("a query outside its limits makes a list that says so")
    func refused() {
        var query = ChannelQuery()
        query.nameContains = ""
        #expect(chat().channels(matching: query).phase == .refused(.invalidArgument("nameContains", "must not be empty")))
    }
}

extension [StoreWrite] {
    /// The users whom the writes may introduce.
    fileprivate var introduced: [UserID] {
        flatMap { write in if case .users(let users) = write { users.map(\.userId) } else { [UserID]() } }
    }
}

extension Store {
    /// Changes the file without the store's knowledge.
    fileprivate func damage(_ sql: String) async throws {
        try await read { database in
            try database.execute(sql: "PRAGMA query_only = 0")
            try database.execute(sql: sql)
        }
    }
}

/// Channels that change at random, as the writes that a store gets for it.
struct RandomChannels {
    static let ids: [ChannelID] = (1...20).map { ChannelID("c\($0)") }
    static let users: [UserID] = ["bob", "cat", "dan"]
    private var chance: SeededChance
    private var channels: [ChannelID: Channel] = [:]
    private var memberships: [ChannelID: Membership] = [:]
    private var userSeq: Seq = 0
    private var version: Int64 = 0

    init(seed: UInt64) { chance = SeededChance(seed: seed) }

    private mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &chance) }

    /// A channel that the user is a member of, created at a time.
    static func member(of id: ChannelID, at time: Int64) -> [StoreWrite] {
        let at = Timestamp(milliseconds: time)
        let channel = Channel(
            channelId: id, type: .community, counters: ChannelCounters(seq: 1, memberCount: 1, messageCount: 0, lastActivity: at),
            createdBy: "bob", createdAt: at, updatedAt: at)
        let membership = Membership(
            channelId: id, role: .member, state: .member, joinedAt: at, joinedSeq: 1, readSeq: 0, readCount: 0, channelSeq: 1,
            userSeq: 1)
        return [.channel(channel), .membership(membership)]
    }

    mutating func change() -> [StoreWrite] {
        let id = Self.ids[number(0...(Self.ids.count - 1))]
        guard var channel = channels[id], var membership = memberships[id] else { return create(id) }
        channel.counters.seq += 1
        switch number(0...8) {
        case 7:
            version += 1
            let user = Self.users[number(0...2)]
            // Some arrive late.
            return [.users([UserSummary(userId: user, displayName: "\(version)", version: max(1, version - Int64(number(0...4))))])]
        case 8:
            let message = Message(
                messageId: MessageID(rawValue: channel.counters.seq), channelId: id, seq: channel.counters.seq,
                changeSeq: channel.counters.seq, sender: Self.users[number(0...2)], clientId: "c", text: "hi",
                createdAt: channel.createdAt)
            channels[id] = channel
            return [.counters(id, channel.counters), .rows(Rows([message]), of: .channel(id))]
        case 0, 1, 2:
            channel.counters.messageCount += 1
            // Some don't count.
            if number(0...3) > 0 { channel.counters.ordinal += 1 }
            channel.counters.lastMessageAt = Timestamp(milliseconds: Int64(number(10...40)))
            channels[id] = channel
            return [.counters(id, channel.counters)]
        case 3:
            attribute(&channel)
            channels[id] = channel
            return [.channel(channel)]
        case 4:
            channel.counters.lastActivity = Timestamp(milliseconds: Int64(number(10...40)))
            channels[id] = channel
            return [.counters(id, channel.counters)]
        default:
            userSeq += 1
            membership.userSeq = userSeq
            switch number(0...3) {
            case 0: membership.readCount = channel.counters.ordinal
            case 1: membership.state = membership.state == .member ? .none : .member
            default:
                membership.hiddenState = HiddenState.allCases[number(0...2)]
                membership.hiddenOrdinal = channel.counters.ordinal
            }
            memberships[id] = membership
            return [.membership(membership)]
        }
    }

    private mutating func create(_ id: ChannelID) -> [StoreWrite] {
        let at = Timestamp(milliseconds: Int64(number(1...9)))
        var channel = Channel(
            channelId: id, type: [.community, .group, .live][number(0...2)],
            counters: ChannelCounters(seq: 1, memberCount: 1, messageCount: 0, lastActivity: at),
            createdBy: ["bob", "cat"][number(0...1)], createdAt: at, updatedAt: at)
        attribute(&channel)
        channel.deletedAt = nil
        userSeq += 1
        let membership = Membership(
            channelId: id, role: .member, state: .member, joinedAt: at, joinedSeq: 1, readSeq: 0, readCount: 0, channelSeq: 1,
            userSeq: userSeq)
        channels[id] = channel
        memberships[id] = membership
        return [.membership(membership), .channel(channel)]
    }

    private mutating func attribute(_ channel: inout Channel) {
        channel.displayName = [nil, "Élan vital", "Bar élan", "foo BAZ", "Abbá", "zebra"][number(0...5)]
        channel.tags = [[], ["a"], ["b", "c"], ["a", "b"]][number(0...3)]
        channel.customType = [nil, "x", "y"][number(0...2)]
        channel.isPublic = number(0...1) == 0
        channel.isFrozen = number(0...3) == 0
        if number(0...15) == 0 { channel.deletedAt = channel.createdAt }
    }
}

extension QueryChannels {
    /// Returns the channels that match the query, according to the documentation of its fields and without the store.
    fileprivate func evaluated(on views: [ChannelView]) -> [ChannelView] {
        let sorted = views.filter(holds).sorted(by: isBefore)
        return effectiveOrder == effectiveSort.defaultOrder ? sorted : sorted.reversed()
    }

    private func isBefore(_ left: ChannelView, _ right: ChannelView) -> Bool {
        let (a, b) = (left.channel, right.channel)
        let listed = ((a.counters.lastMessageAt ?? a.createdAt), (b.counters.lastMessageAt ?? b.createdAt))
        let isLater: (Timestamp, Timestamp) -> Bool = { $0 == $1 ? a.channelId > b.channelId : $0 > $1 }
        switch effectiveSort {
        case .lastMessage: return isLater(listed.0, listed.1)
        case .lastActivity: return isLater(a.counters.lastActivity, b.counters.lastActivity)
        case .created: return isLater(a.createdAt, b.createdAt)
        case .name:
            let (name, other) = (folded(a), folded(b))
            return name == other ? a.channelId < b.channelId : name < other
        case .unreadFirst:
            let (isUnread, isOtherUnread) = (left.unreadCount > 0, right.unreadCount > 0)
            return isUnread == isOtherUnread ? isLater(listed.0, listed.1) : isUnread
        }
    }

    private func folded(_ channel: Channel) -> String {
        (channel.displayName ?? "").folding(options: [.caseInsensitive, .diacriticInsensitive], locale: nil)
    }

    private func holds(_ view: ChannelView) -> Bool {
        let channel = view.channel
        guard view.membership?.state == .member, channel.deletedAt == nil, isHiddenAsAsked(view) else { return false }
        let (tags, createdAt) = (Set(channel.tags), channel.createdAt.milliseconds)
        if let types, !types.contains(channel.type) { return false }
        if let ids {
            let alias = ChannelID("\(channel.type):\(channel.channelId)")
            guard ids.contains(channel.channelId) || ids.contains(alias) else { return false }
        }
        if let includingTags, tags.isDisjoint(with: includingTags) { return false }
        if let excludingTags, !tags.isDisjoint(with: excludingTags) { return false }
        if let customTypes {
            guard let type = channel.customType, customTypes.contains(type) else { return false }
        }
        if let isPublic, channel.isPublic != isPublic { return false }
        if let createdBy, channel.createdBy != createdBy { return false }
        if let createdBefore, createdAt >= createdBefore { return false }
        if let createdAfter, createdAt <= createdAfter { return false }
        if includeEmpty == false, channel.counters.messageCount == 0 { return false }
        if includeFrozen == false, channel.isFrozen { return false }
        if unreadOnly == true, view.unreadCount == 0 { return false }
        guard let nameContains else { return true }
        let named: [String: [String]] = ["ba": ["Bar élan", "foo BAZ"], "Élan": ["Bar élan", "Élan vital"]]
        return named[nameContains]?.contains(channel.displayName ?? "") ?? false
    }

    private func isHiddenAsAsked(_ view: ChannelView) -> Bool {
        switch hidden ?? .unhiddenOnly {
        case .unhiddenOnly: view.hiddenState == .unhidden
        case .hiddenOnly: view.hiddenState != .unhidden
        case .hiddenAllowAutoUnhide: view.hiddenState == .hiddenAllowAutoUnhide
        case .hiddenPreventAutoUnhide: view.hiddenState == .hiddenPreventAutoUnhide
        case .all: true
        }
    }
}
