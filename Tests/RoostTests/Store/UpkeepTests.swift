import Foundation
import GRDB
import Logging
import RoostAPI
import Testing

@testable import Roost

@MainActor @Suite("Store: the size of the cache while it is open", .timeLimit(.minutes(5)))
struct UpkeepTests {
    private let folder = URL.temporaryDirectory.appending(component: "roost-\(UUID().uuidString)")
    /// It has the hundred messages before 301.
    private let server = ScriptedServer { call in
        guard case .object(let fields) = call.with, fields["before"] == .integer(301) else { return .nothing }
        return .result(
            MessagePage(messages: (201...300).map { UpkeepTests.large($0, in: "a") }, hasOlder: true, hasNewer: true, seq: 400))
    }
    private let sizeBytesMax = 1 << 20

    private func chat() -> Chat {
        let configuration = Chat.Configuration(
            storage: .directory(folder), cacheSizeBytesMax: sizeBytesMax,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, transport: server)
        return Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
    }

    /// Makes the user a member of channels without messages.
    private func join(_ channels: [ChannelID]) async throws {
        for (seq, id) in zip(Seq(1)..., channels) {
            var joined = channel(counters(1, messages: 0))
            joined.channelId = id
            var own = membership(readSeq: 1, readCount: 0, channelSeq: 1, userSeq: seq)
            own.channelId = id
            try await server.send(
                Event(
                    kind: .memberJoined, stream: .user("ann"), seq: seq, actor: "ann",
                    rows: Rows(channel: joined, [own])))
        }
    }

    /// A message of two thirds of a kilobyte.
    private nonisolated static func large(_ seq: Seq, in channel: ChannelID) -> Message {
        Message(
            messageId: MessageID(rawValue: seq), channelId: channel, seq: seq, changeSeq: seq, sender: "bob",
            clientId: ClientID("\(seq)"), text: String(repeating: "x", count: 650), createdAt: Timestamp(milliseconds: seq))
    }

    /// Receives messages of two thirds of a kilobyte, alternating between channels, and waits until they are stored. Returns the
    /// largest size of the cache in bytes.
    private func receive(_ seqs: ClosedRange<Seq>, in channels: [ChannelID], _ store: Store) async throws -> Int {
        var most = 0
        for seq in seqs {
            for channel in channels {
                try await server.send(EventFrame(watching: false, event: Event(of: Self.large(seq, in: channel))))
            }
            guard seq.isMultiple(of: 10) || seq == seqs.upperBound else { continue }
            try await until {
                try await store.read { database in try channels.allSatisfy { try database.cursor(of: $0) == seq } }
            }
            most = max(most, try await store.read { try $0.usedBytes() })
        }
        return most
    }

    private func seqs(of channel: ChannelID, in store: Store) async throws -> [Seq] {
        try await store.read { try $0.values("SELECT seq FROM messages WHERE channel_id = ? ORDER BY seq", [channel]) }
    }

    @Test(
        "a chat that receives far more than its cache may hold stays within that and an eighth; shown messages and the outbox stay")
    func flood() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let chat = chat()
        try await chat.connect()
        let files = try await chat.driver.files()
        let store = files.store
        try await join(["a", "b", "c"])
        try await chat.channel("b").send("on its way")
        try await chat.channel("c").send("on its way too")
        var most = try await receive(2...400, in: ["a"], store)
        let list = chat.channel("a").messages(pageSize: 100)
        try await list.loaded()
        while list.items.count < MessageList.rowsMax { try await list.loadOlder() }
        let shown = list.items

        most = max(most, try await receive(2...2000, in: ["b", "c"], store))
        most = max(most, try await receive(401...420, in: ["a"], store))
        // The excess of the last messages may be removed just now.
        await chat.driver.rest()
        #expect(most <= sizeBytesMax / 8 * 9)
        let firsts = try await [seqs(of: "b", in: store), seqs(of: "c", in: store)].map { $0.first ?? 0 }
        #expect(firsts.allSatisfy { 1000 < $0 && $0 <= 1901 })
        #expect(list.items == shown)
        #expect(try await seqs(of: "a", in: store).suffix(320) == Array(101...420))
        #expect(try await files.outbox.count() == 2)
        try await until { chat.outbox.count == 2 }

        // The cached messages have no hole, and the machine agrees with the file.
        #expect(try await seqs(of: "b", in: store) == Array(firsts[0]...2000))
        let saved = try await store.savedState()
        #expect(saved.channels["b"]?.windowStart == firsts[0])
        #expect(await chat.driver.machine?.saved == saved)
        await chat.disconnect()
    }

    @Test("the oldest messages of a channel with a list are removed last, and those that it shows aren't")
    func shownOnly() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let chat = chat()
        try await chat.connect()
        let store = try await chat.driver.files().store
        try await join(["a"])
        let list = chat.channel("a").messages(pageSize: 100)
        try await list.loaded()
        let most = try await receive(2...3000, in: ["a"], store)
        #expect(most <= sizeBytesMax / 8 * 9)
        try await until { list.items.last?.message?.seq == 3000 }
        let first = try #require(list.items.first?.message?.seq)
        #expect(list.items.compactMap { $0.message?.seq } == Array(first...3000) && list.hasOlder)
        let cached = try await seqs(of: "a", in: store)
        #expect(cached.first.map { 1000 < $0 && $0 <= first } == true)
        await chat.disconnect()
    }

    @Test("a list that was scrolled back keeps its rows, though later messages make the cache too large")
    func scrolledBack() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let chat = chat()
        try await chat.connect()
        let store = try await chat.driver.files().store
        try await join(["a"])
        _ = try await receive(2...400, in: ["a"], store)
        let list = chat.channel("a").messages(pageSize: 100)
        try await list.loaded()
        while list.items.count < MessageList.rowsMax { try await list.loadOlder() }
        let shown = list.items
        _ = try await receive(401...2000, in: ["a"], store)
        #expect(list.items == shown && list.hasOlder)
        #expect(try await seqs(of: "a", in: store) == Array(101...2000))
        await chat.disconnect()
    }

    @Test("AM-30 R08 a list that is scrolled back while the oldest messages are removed gets those from the server, and keeps them")
    func scrolledBackMeanwhile() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let chat = chat()
        try await chat.connect()
        let store = try await chat.driver.files().store
        try await join(["a"])
        _ = try await receive(2...400, in: ["a"], store)
        let list = chat.channel("a").messages(pageSize: 100)
        try await list.loaded()
        await letOthersRun()
        await chat.driver.rest()
        // Those before 301 are chosen, and the list read them as cached.
        await chat.driver.chooseTrimming(of: "a")
        try await list.loadOlder()
        let shown = list.items
        #expect(shown.compactMap { $0.message?.seq } == Array(201...400))
        await chat.driver.drain()
        await chat.driver.rest()
        await letOthersRun()
        #expect(list.items == shown)
        #expect(try await seqs(of: "a", in: store) == Array(201...400))
        await chat.disconnect()
    }

    @Test("messages that a list shows, or may move to, aren't removed, and a list shows none that are being removed")
    func shownOrRemoved() {
        let shown = ShownMessages()
        let list = shown.add("a")
        // It may open anywhere.
        #expect(!shown.beginTrimming(["a": 1]))
        #expect(list.shows(from: 800, at: 800, readAt: list.now))
        #expect(!shown.beginTrimming(["a": 801]) && list.now.start == nil)
        list.beginMove()
        #expect(!shown.beginTrimming(["a": 800]))
        list.endMove()
        let before = list.now
        #expect(shown.beginTrimming(["a": 800, "b": 5]) && list.now.start == 800)
        #expect(!list.shows(from: 770, at: 770, readAt: before) && shown.firsts == ["a": 800])
        shown.endTrimming()
        // What was read before they were deleted isn't shown afterwards either.
        #expect(list.now.start == nil && !list.shows(from: 770, at: 770, readAt: before))
        #expect(list.shows(from: 800, at: 800, readAt: before) && list.shows(from: 770, at: 770, readAt: list.now))
        #expect(!shown.beginTrimming(["a": 800]) && list.now.start == nil)
    }

    @Test("a cache that another chat has open isn't trimmed: that chat knows what its lists show")
    func shared() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let chat = chat()
        try await chat.connect()
        let store = try await chat.driver.files().store
        let other = try await self.chat().driver.files().store
        try await join(["a"])
        let most = try await receive(2...2000, in: ["a"], store)
        #expect(most > sizeBytesMax / 8 * 9)
        #expect(try await seqs(of: "a", in: other).count == 1999)
        await chat.disconnect()
    }

    @Test("a chat that was logged out doesn't prevent trimming the next one's cache, while the app has both")
    func loggedOut() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let former = self.chat()
        try await former.connect()
        try await former.logOut()
        let chat = chat()
        try await chat.connect()
        let store = try await chat.driver.files().store
        #expect(!store.isShared)
        try await join(["a"])
        let most = try await receive(2...2000, in: ["a"], store)
        #expect(most <= sizeBytesMax / 8 * 9)
        #expect(try await seqs(of: "a", in: store).count < 1999)
        await chat.disconnect()
        // It ends only now.
        try await former.logOut()
    }

    @Test("a page in flight while older messages are removed is requested again: which changes it lacks is unknown")
    func pageOnItsWay() async throws {
        var client = try await Harness()
        try await client.connect()
        let rows = fresh(
            messages: [message(8, "five"), message(9, "six")], counters: counters(9, messages: 6),
            membership: membership(readSeq: 9, readCount: 6))
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [rows], hasMore: false))
        try await client.feed(.loadMessages(1, Harness.channel, .older(than: .max), limit: 2))
        try await client.feed(.trim([Harness.channel: 9, "left": 5]))
        #expect(client.sync.saved.channels == [Harness.channel: Position(cursor: 9, windowStart: 9, messageCount: 6)])
        #expect(try await client.texts() == ["six"])
        let page = MessagePage(messages: [message(4, "three"), message(6, "four")], hasOlder: true, hasNewer: true, seq: 9)
        try await client.answer("message.list", with: page)
        #expect(try await client.texts(at: 6) == ["lost"])
        // It no longer touches the window: the message between the two is missing.
        try await client.answer("message.list", with: page)
        #expect(try await client.texts(at: 6) == ["three", "four"])
        #expect(try await client.texts() == ["six"])
        try await client.feed(.loadMessages(2, Harness.channel, .older(than: .max), limit: 1))
        let between = MessagePage(messages: [message(8, "five")], hasOlder: true, hasNewer: true, seq: 9)
        try await client.answer("message.list", with: between)
        #expect(try await client.texts() == ["three", "four", "five", "six"])
        #expect(try await client.store.savedState() == client.sync.saved)
    }

    @Test(
        "a cache is checked after a sixteenth of its size, later if something waits, and less often once nothing more may be removed"
    )
    func looks() {
        var upkeep = CacheUpkeep(sizeBytesMax: 16 << 20)
        upkeep.received((1 << 20) - 1)
        #expect(!upkeep.isDue(isCalm: true))
        upkeep.received(1)
        #expect(upkeep.isDue(isCalm: true) && !upkeep.isDue(isCalm: false))
        upkeep.received(1 << 20)
        #expect(upkeep.isDue(isCalm: false))
        upkeep.looked(usedBytes: 16 << 20, [], shown: [])
        #expect(upkeep.trimming == nil && !upkeep.isDue(isCalm: true))

        upkeep.looked(usedBytes: 17 << 20, ["a", "b", "c"], shown: ["a"])
        #expect(upkeep.trimming?.excess == 3 << 20 && upkeep.trimming?.channels == ["a", "c", "b"])
        #expect(upkeep.isDue(isCalm: false) && !upkeep.mustPack(usedBytes: 17 << 20))
        upkeep.trimming?.hasDeleted = true
        #expect(upkeep.mustPack(usedBytes: 16 << 20) && !upkeep.mustPack(usedBytes: 15 << 20))
        upkeep.ended(usedBytes: 17 << 20)
        upkeep.received((8 << 20) - 1)
        #expect(!upkeep.isDue(isCalm: true))
        upkeep.received(1)
        #expect(upkeep.isDue(isCalm: true))
    }
}

extension SyncDriver {
    /// Chooses messages of a channel to remove, as if the cache were far too large. They are removed with the next inputs.
    fileprivate func chooseTrimming(of channel: ChannelID) async {
        upkeep.trimming = CacheUpkeep.Trimming(excess: .max, channels: [channel])
        await keepCacheSmall()
    }
}
