import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

/// Channels that change after a query has found them, before they are watched.
@Suite("Watching: channels that a query finds")
struct QueryAndWatchTests {
    private struct Watch: Hashable {
        let channel: ChannelID
        let seq: Seq
        init(_ channel: ChannelID, at seq: Seq) { (self.channel, self.seq) = (channel, seq) }
    }

    private let world: CoreWorld

    init() throws { world = try CoreWorld() }

    /// Makes a user query and watch while a body runs in between. Returns the page, and where each watch begins.
    private func watch(
        _ query: QueryChannels = QueryChannels(sort: .created), as user: UserID = "ann", role: AppRole = .user,
        meanwhile: @escaping () throws -> Void = {}
    ) throws -> (page: Page<ChannelView>, watches: [Watch]) {
        world.meanwhile = meanwhile
        let before = world.notices.count
        let page = try world.perform(QueryAndWatchChannels(query: query), as: user, role: role, connection: 4)
        let watches = world.notices.dropFirst(before).compactMap { notice -> Watch? in
            guard case .watching(ConnectionID(rawValue: 4), user, let channel, let seq, nil) = notice else { return nil }
            return Watch(channel, at: seq)
        }
        return (page, watches)
    }

    private func ids(_ page: Page<ChannelView>) -> [ChannelID] { page.items.map(\.channel.channelId) }

    @Test("ST-09 I3 I4 a message sent between the query and the watch is in the answer, and the watch begins after it")
    func messageBetween() throws {
        for id in ["a", "b"] as [ChannelID] { try world.channel(id, owner: "ann", members: ["cid"]) }
        try world.channel("stage", type: .livestream, owner: "bob")
        let query = QueryChannels(membership: .all)
        let (page, watches) = try watch(query) {
            try world.send("to a stranger", to: "stage", as: "bob")
            for text in ["1", "2"] { try world.send(text, to: "b", as: "cid") }
        }
        #expect(page == (try world.perform(query, as: "ann")))
        #expect(page.items.map(\.lastMessage?.text) == ["to a stranger", "2", nil])
        #expect(watches == [Watch("stage", at: 2), Watch("b", at: 3), Watch("a", at: 1)])
    }

    @Test("ST-09 the user's changes elsewhere meanwhile are in the answer, and a channel that no longer matches isn't")
    func ownChangesBetween() throws {
        for id in ["a", "b", "c", "d"] as [ChannelID] {
            try world.channel(id, owner: "bob", members: ["ann"])
            try world.send("hi", to: id, as: "bob")
        }
        let query = QueryChannels(unreadOnly: true, sort: .created)
        let (page, watches) = try watch(query) {
            try world.perform(MarkRead(channel: "b"), as: "ann")
            try world.perform(MuteNotifications(channel: "a"), as: "ann")
            try world.perform(HideChannel(channel: "d"), as: "ann")
        }
        #expect(page == (try world.perform(query, as: "ann")))
        #expect(watches == [Watch("c", at: 2), Watch("a", at: 2)])
    }

    @Test("ST-09 SB-59 messages that the user deleted for themselves meanwhile aren't in the answer, and no longer mention them")
    func ownDeletionsBetween() throws {
        for id in ["a", "b", "c"] as [ChannelID] { try world.channel(id, owner: "bob", members: ["ann"]) }
        for id in ["a", "b"] as [ChannelID] {
            try world.perform(
                SendMessage(channel: id, clientId: "1", text: "hi", mentionees: [.channel]), as: "bob")
        }
        // This advances no channel's seq, nor the membership.
        func delete(in channel: ChannelID) throws {
            let page = try world.perform(ListMessages(channel: channel), as: "ann")
            try world.perform(DeleteMessagesForMe(channel: channel, messages: page.messages.map(\.messageId)), as: "ann")
        }
        for id in ["a", "b"] as [ChannelID] {
            let (page, watches) = try watch { try delete(in: id) }
            #expect(page == (try world.perform(QueryChannels(sort: .created), as: "ann")))
            #expect(watches == [Watch("c", at: 1), Watch("b", at: 2), Watch("a", at: 2)])
        }
        let (page, _) = try watch()
        #expect(page.items.map(\.lastMessage?.isDeletedForMe) == [nil, true, true])
        #expect(page.items.map(\.hasMention) == [false, false, false])
    }

    @Test("ST-09 a changed channel keeps its place in the page, whose cursors continue from the query's position")
    func order() throws {
        for id in ["a", "b", "c"] as [ChannelID] {
            try world.channel(id, owner: "ann")
            world.advance(milliseconds: 1)
            try world.send("hi", to: id, as: "ann")
        }
        let (page, _) = try watch(QueryChannels(limit: 2)) { try world.send("again", to: "b", as: "ann") }
        #expect(ids(page) == ["c", "b"] && page.items.map(\.lastMessage?.text) == ["hi", "again"])
        let next = try watch(QueryChannels(limit: 2, cursor: page.nextCursor))
        #expect(ids(next.page) == ["a"] && next.watches == [Watch("a", at: 2)])
    }

    @Test("ST-09 I9 a channel the user was removed from meanwhile is left out or found as by a stranger, and not watched")
    func removedBetween() throws {
        try world.user("ann")
        for (id, type) in [("closed", .group), ("open", .livestream), ("gone", .group), ("kept", .group)]
            as [(ChannelID, ChannelType)]
        {
            try world.channel(id, type: type, owner: "bob")
            try world.perform(AddMembers(channel: id, users: ["ann"]), as: "root", role: .admin)
        }
        func removed() throws {
            for id in ["closed", "open"] as [ChannelID] { try world.perform(RemoveMembers(channel: id, users: ["ann"]), as: "bob") }
            try world.perform(DeleteChannel(channel: "gone"), as: "bob")
        }
        let (page, watches) = try watch(meanwhile: removed)
        #expect(ids(page) == ["kept"] && watches == [Watch("kept", at: 2)])
        for id in ["closed", "open"] as [ChannelID] {
            try world.perform(AddMembers(channel: id, users: ["ann"]), as: "root", role: .admin)
        }
        let all = try watch(QueryChannels(membership: .all)) {
            for id in ["closed", "open"] as [ChannelID] { try world.perform(RemoveMembers(channel: id, users: ["ann"]), as: "bob") }
        }
        #expect(ids(all.page) == ["open", "kept"] && all.page.items.map(\.membership?.state) == [MembershipState.none, .member])
        // Strangers may watch channels open to all.
        #expect(all.watches.map(\.channel) == ["open", "kept"])
    }

    @Test("ST-09 I9 a user whose right to watch ends meanwhile, by a type's policy, gets the channel and doesn't watch it")
    func rightBetween() throws {
        try world.perform(PutChannelType(type: "stage", basedOn: .livestream), as: "root", role: .admin)
        try world.channel("one", type: "stage", owner: "bob")
        try world.user("ann")
        let query = QueryChannels(membership: .notMember)
        #expect(try watch(query).watches == [Watch("one", at: 1)])
        let (page, watches) = try watch(query) {
            let policy = PolicyChanges(read: .members)
            try world.perform(PutChannelType(type: "stage", basedOn: .livestream, policy: policy), as: "root", role: .admin)
        }
        // This advances no channel's seq.
        #expect(ids(page) == ["one"] && page.items[0].channel.counters.seq == 1)
        #expect(page == (try world.perform(query, as: "ann")) && watches == [])
    }

    @Test("ST-09 channels that have grown beyond a page meanwhile are queried again, as far as they fit")
    func growthBetween() throws {
        let channels = (0..<14).map { ChannelID("c\($0)") }
        for id in channels { try world.channel(id, owner: "ann") }
        let metadata: JSONValue = ["text": .string(String(repeating: "x", count: 95_000))]
        let (page, watches) = try watch {
            for id in channels { try world.perform(UpdateChannel(channel: id, metadata: metadata), as: "ann") }
        }
        #expect(page == (try world.perform(QueryChannels(sort: .created), as: "ann")))
        #expect((1..<channels.count).contains(page.items.count) && page.nextCursor != nil)
        #expect(watches.map(\.channel) == ids(page))
    }

    /// What the rule does in its own transaction.
    private struct Handling {
        let page: Page<ChannelView>
        /// The position of the caller's own stream that the answer waits for.
        let callerSeq: Seq
        /// The numbers of statements, and of the rows that they return.
        let cost: [Int]
    }

    /// Has ann query and watch while a body runs in between.
    private func handle(_ query: QueryChannels, meanwhile: () throws -> Void = {}) throws -> Handling {
        let caller = Caller(user: "ann", connection: ConnectionID(rawValue: 4))
        func context(_ transaction: any Transaction) -> Context {
            Context(transaction: transaction, caller: caller, now: world.now, ids: IDGenerator())
        }
        let found = try world.database.read { transaction in
            var context = context(transaction)
            return try FoundChannels(query, in: &context)
        }
        try meanwhile()
        return try world.database.read { transaction in
            let counting = CountingTransaction(transaction)
            var context = context(counting)
            context.foundChannels = found
            let page = try QueryAndWatchChannels(query: query).handle(in: &context)
            return Handling(
                page: page, callerSeq: context.callerSeq, cost: [counting.statementCount, counting.rowCount])
        }
    }

    @Test("ST-09 I9 the answer waits for the memberships it relies on, which another node may have made or changed meanwhile")
    func waitsForMemberships() throws {
        for id in ["a", "b"] as [ChannelID] { try world.channel(id, owner: "bob", members: ["ann"]) }
        try world.channel("stage", type: .livestream, owner: "bob")
        let query = QueryChannels(membership: .all, sort: .created)
        func head() throws -> Seq { try world.database.read { try $0.streams(of: "ann").user } }
        let handling = try handle(query)
        #expect(try handling.callerSeq == head())
        let changed = try handle(query) {
            try world.perform(SetMemberRole(channel: "a", users: ["ann"], role: .operator), as: "bob")
        }
        #expect(try changed.callerSeq == head())
        #expect(changed.callerSeq > handling.callerSeq && ids(changed.page) == ["stage", "b", "a"])
    }

    @Test(
        "ST-09 the writer runs no search: it reads the caller's access to each channel of the page, and changed channels again"
    )
    func cost() throws {
        for number in 0..<30 { try world.channel(ChannelID("c\(number)"), owner: "ann") }
        let query = QueryChannels(limit: 5)
        #expect(try handle(query).cost == [5, 5])
        #expect(try handle(QueryChannels(membership: .all, includingTags: ["none"])).cost == [0, 0])
        let one = try handle(query) { try world.send("hi", to: "c9", as: "ann") }.cost
        #expect(one[0] > 5 && one[0] < 12 && one[1] < 12, "\(one)")
    }

    @Test("ST-02 ST-09 nothing is watched over HTTP, nor by a refused query, whose field is named")
    func refusals() throws {
        try world.channel("a", owner: "ann")
        let notices = try world.notices { () throws -> Void in
            #expect(try world.code(QueryAndWatchChannels(query: QueryChannels()), as: "ann") == .notConnected)
            let wrong = QueryAndWatchChannels(query: QueryChannels(cursor: "wrong"))
            #expect(try world.refusal(wrong, as: "ann", connection: 4)?.field == "query.cursor")
        }
        #expect(notices == [])
    }
}
