import Foundation
import Logging
import GRDB
import RoostAPI
import Synchronization
import Testing

@testable import Roost

@MainActor @Suite("Messages: live lists", .timeLimit(.minutes(5)))
struct MessageListTests {
    /// A client that was never started; tests write its store: 1,000 messages, all of them cached.
    private func chat(_ clock: ManualClock? = nil) async throws -> (chat: Chat, store: Store) {
        var configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = TinyServer()
        if let clock { configuration.clock = clock }
        let chat = Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
        let store = try await chat.driver.prepare().store
        try await store.write([.forget(Harness.channel)] + arrival(of: 1...1000))
        return (chat, store)
    }

    private func arrival(of seqs: ClosedRange<Seq>, by sender: UserID = "bob") -> [StoreWrite] {
        [
            .messages(seqs.map { message($0, "\($0)", by: sender) }, of: Harness.channel),
            .position(Harness.channel, Position(cursor: seqs.upperBound, windowStart: 0, messageCount: nil)),
        ]
    }

    @Test("AM-30 scrolling to the beginning and back, a list never holds more than 300 messages, and each is shown once")
    func scrolls() async throws {
        let (chat, _) = try await chat()
        let list = chat.channel(Harness.channel).messages(pageSize: 40)
        var updates = list.updates.makeAsyncIterator()
        _ = await updates.next()
        #expect(list.items.map(\.text) == (961...1000).map { "\($0)" })

        var most = 0
        while list.hasOlder {
            try await list.loadOlder()
            most = max(most, list.items.count)
        }
        #expect(most == MessageList.rowsMax && list.hasNewer)
        #expect(list.items.map(\.text) == (1...300).map { "\($0)" })
        while list.hasNewer {
            try await list.loadNewer()
            most = max(most, list.items.count)
        }
        #expect(most == MessageList.rowsMax && list.hasOlder)
        #expect(list.items.map(\.text) == (701...1000).map { "\($0)" })
    }

    @Test("AM-29 AM-30 a loop over the updates of an object without another owner continues; the object ends with it")
    func keptByReaders() async throws {
        let (chat, store) = try await chat()
        weak var kept: MessageList?
        do {
            var updates: ListUpdates<MessageItem>.Iterator
            do {
                let list = chat.channel(Harness.channel).messages(pageSize: 10)
                kept = list
                updates = list.updates.makeAsyncIterator()
            }
            #expect(await updates.next()?.items.last?.text == "1000")
            try await store.write(arrival(of: 1001...1001))
            #expect(await updates.next()?.items.last?.text == "1001")
        }
        try await until { kept == nil }
        var channel = chat.channel(Harness.channel).updates.makeAsyncIterator()
        #expect(await channel.next() != nil)
        var channels = chat.channels().updates.makeAsyncIterator()
        #expect(await channels.next() != nil)
        var invitations = chat.invitations().updates.makeAsyncIterator()
        #expect(await invitations.next() != nil)
    }

    @Test("AM-29 AM-45 a list that waits for its place, and a channel marked as read while shown, are released with their owner")
    func released() async throws {
        let (chat, _) = try await chat()
        weak var list: MessageList?
        weak var channel: LiveChannel?
        do {
            let shown = chat.channel(Harness.channel)
            let waiting = shown.messages(around: .message(MessageID(rawValue: 5000)))
            (list, channel) = (waiting, shown)
            let token = shown.markReadWhileVisible(waiting)
            try await shown.loaded()
            try await until { !waiting.items.isEmpty }
            #expect(waiting.phase == .loading)
            token.invalidate()
        }
        try await until { list == nil && channel == nil }
    }

    @Test("AM-45 messages on the screen are marked as read again after a reset of the server, which lowers their places")
    func otherHistory() async throws {
        let (chat, store) = try await chat()
        let outbox = try await chat.driver.files().outbox
        func marks() async throws -> [Seq?] {
            try await outbox.items().map { if case .read(let mark) = $0.operation { mark.seq } else { nil } }
        }
        func arrive(_ seq: Seq, epoch: String) async throws {
            try await store.write(
                [.erase(epoch: epoch)] + arrival(of: seq...seq) + [
                    .channel(channel(counters(seq, messages: 1))),
                    .membership(membership(readSeq: 0, readCount: 0, channelSeq: seq, userSeq: 1)),
                ])
        }
        try await arrive(1000, epoch: "first")
        let token = chat.channel(Harness.channel).markReadWhileVisible(every: .milliseconds(1))
        try await until { try await marks() == [1000] }
        try await until { await chat.driver.replies.isEmpty }
        await letOthersRun()
        for item in try await outbox.items() { await chat.driver.request(.discard(.operation(item.id, of: item.channel))) }
        try await arrive(10, epoch: "second")
        try await until { try await marks() == [10] }
        token.invalidate()
    }

    @Test("AM-45 R08 a backup with fewer reads isn't taken for a mark as unread: messages on the screen are marked again")
    func restoredBackup() async throws {
        let clock = ManualClock()
        let (chat, store) = try await chat(clock)
        let outbox = try await chat.driver.files().outbox
        func history(_ epoch: String, readSeq: Seq, userSeq: Seq) -> [StoreWrite] {
            [.erase(epoch: epoch)] + arrival(of: 1...3) + [
                .channel(channel(counters(3, messages: 3))),
                .membership(membership(readSeq: readSeq, readCount: Int(readSeq), channelSeq: 3, userSeq: userSeq)),
            ]
        }
        try await store.write(history("first", readSeq: 3, userSeq: 7))
        let shown = chat.channel(Harness.channel)
        try await shown.loaded()
        let token = shown.markReadWhileVisible(every: .seconds(2))
        try await store.write(history("second", readSeq: 1, userSeq: 4))
        let mark = OutboxOperation.read(MarkRead(channel: Harness.channel, seq: 3))
        try await until { try await outbox.items().map(\.operation) == [mark] }
        token.invalidate()
    }

    @Test("AM-45 messages marked as unread on the screen stay so, even if the newest message was deleted for good")
    func unreadAfterPurge() async throws {
        let clock = ManualClock()
        let (chat, store) = try await chat(clock)
        let outbox = try await chat.driver.files().outbox
        try await store.write(
            [.erase(epoch: "first")] + arrival(of: 1...3) + [
                .channel(channel(counters(3, messages: 3))),
                .membership(membership(readSeq: 0, readCount: 0, channelSeq: 3, userSeq: 1)),
            ])
        let shown = chat.channel(Harness.channel)
        let token = shown.markReadWhileVisible(every: .seconds(2))
        try await until { clock.ends.contains(.seconds(2)) }
        clock.advance(by: .seconds(2))
        try await until { clock.ends.isEmpty && shown.unreadCount == 0 }
        let purged = Rows([PurgedMessage(seq: 3, changeSeq: 4, counts: true)])
        try await store.write([
            .rows(purged, of: .channel(Harness.channel)), .counters(Harness.channel, counters(4, messages: 2)),
            .position(Harness.channel, Position(cursor: 4, windowStart: 0, messageCount: nil)),
        ])
        try await until { shown.lastMessage?.seq == 2 && shown.channel?.counters.seq == 4 }
        try await shown.markUnread(from: 2)
        try await until { shown.unreadCount > 0 }
        let later = try await enqueueLater(in: chat)
        #expect(
            try await outbox.items().suffix(2).map(\.operation) == [.unread(MarkUnread(channel: Harness.channel, seq: 2)), later])
        token.invalidate()
    }

    @Test("AM-30 the properties of a list can't be set: that would edit nothing")
    func readOnly() {
        let paths: [AnyKeyPath] = [\MessageItem.text, \MessageItem.content, \MessageItem.content.text]
        for path in paths {
            #expect(!(path is WritableKeyPath<MessageItem, String>) && !(path is WritableKeyPath<MessageItem, MessageContent>))
        }
    }

    @Test("AM-30 R08 a list's reads of the store don't grow with the number of pending messages")
    func pendingReads() async throws {
        let (chat, store) = try await chat()
        let list = chat.channel(Harness.channel).messages(pageSize: 10)
        try await list.loaded()
        let statements = Mutex(0)
        try await store.read { $0.trace { _ in statements.withLock { $0 += 1 } } }
        /// The number of statements to store and show one more message.
        func count(of seq: Seq) async throws -> Int {
            statements.withLock { $0 = 0 }
            try await store.write(arrival(of: seq...seq))
            try await until { list.items.contains { $0.message?.seq == seq } }
            return statements.withLock { $0 }
        }
        var counts: [Int] = []
        for (first, last, seq) in [(1, 10, 1001), (11, 300, 1002)] as [(Int, Int, Seq)] {
            for number in first...last { try await chat.channel(Harness.channel).send("\(number)") }
            try await until { list.items.count { $0.state == .pending } == last }
            await letOthersRun()
            counts.append(try await count(of: seq))
        }
        // Some more changes may be shown at the same time.
        #expect(counts[1] < counts[0] + 100, "\(counts)")
    }

    /// Enqueues an operation after the earlier ones, and returns once it is in the outbox too.
    private func enqueueLater(in chat: Chat) async throws -> OutboxOperation {
        let later = OutboxOperation.mute(MuteNotifications(channel: Harness.channel))
        try await Task { try await chat.driver.enqueue(later) }.value
        return later
    }

    @Test(
        "AM-45 messages marked as unread on the screen stay so with nothing unread before, below an own message, and as others arrive, until it is reopened",
        arguments: [false, true])
    func unreadAfterReading(isOwnNewest: Bool) async throws {
        let clock = ManualClock()
        let (chat, store) = try await chat(clock)
        let outbox = try await chat.driver.files().outbox
        let newest: Seq = isOwnNewest ? 4 : 3
        try await store.write(
            [.erase(epoch: "first")] + arrival(of: 1...3) + (isOwnNewest ? arrival(of: 4...4, by: "ann") : []) + [
                .channel(channel(counters(newest, messages: Int(newest)))),
                .membership(membership(readSeq: 3, readCount: Int(newest), channelSeq: newest, userSeq: 1)),
            ])
        let shown = chat.channel(Harness.channel)
        let list = shown.messages()
        try await shown.loaded()
        try await list.loaded()
        #expect(shown.unreadCount == 0 && list.items.count == Int(newest))
        let token = shown.markReadWhileVisible(list)
        try await shown.markUnread(from: 2)
        try await until { shown.unreadCount == 2 }
        let unread = OutboxOperation.unread(MarkUnread(channel: Harness.channel, seq: 2))
        let later = try await enqueueLater(in: chat)
        #expect(try await outbox.items().map(\.operation) == [unread, later])

        try await store.write(
            arrival(of: newest + 1...newest + 1) + [.counters(Harness.channel, counters(newest + 1, messages: Int(newest) + 1))])
        try await until { shown.unreadCount == 3 && list.items.count == Int(newest) + 1 }
        token.invalidate()
        _ = try await enqueueLater(in: chat)
        #expect(try await outbox.items().map(\.operation) == [unread, later])
        let next = shown.markReadWhileVisible(list)
        try await until { try await outbox.count() == 3 }
        let mark = MarkRead(channel: Harness.channel, seq: newest + 1)
        #expect(try await outbox.items().map(\.operation) == [unread, later, .read(mark)])
        next.invalidate()
    }

    @Test("AM-45 messages marked as unread by another device stay so on an open screen, even when it closes")
    func unreadElsewhere() async throws {
        let (chat, store) = try await chat()
        let outbox = try await chat.driver.files().outbox
        func reads(to seq: Seq, userSeq: Seq, _ newest: Seq) -> [StoreWrite] {
            [
                .channel(channel(counters(newest, messages: Int(newest)))),
                .membership(membership(readSeq: seq, readCount: Int(seq), channelSeq: newest, userSeq: userSeq)),
            ]
        }
        try await store.write([.erase(epoch: "first")] + arrival(of: 1...3) + reads(to: 3, userSeq: 1, 3))
        let shown = chat.channel(Harness.channel)
        try await shown.loaded()
        let token = shown.markReadWhileVisible()
        try await store.write(reads(to: 1, userSeq: 2, 3))
        try await until { shown.unreadCount == 2 }
        try await store.write(arrival(of: 4...4) + reads(to: 1, userSeq: 2, 4))
        try await until { shown.unreadCount == 3 }
        token.invalidate()
        let later = try await enqueueLater(in: chat)
        #expect(try await outbox.items().map(\.operation) == [later])
    }

    @Test(
        "AM-45 MN-16 a mention added to a read message by an edit is read with it on the screen, and with all channels",
        arguments: [nil, true, false] as [Bool?], [false, true])
    func mentionedByEdit(isInList: Bool?, hasOwnAfterIt: Bool) async throws {
        let (chat, store) = try await chat()
        let outbox = try await chat.driver.files().outbox
        var mentioning = membership(readSeq: 3, readCount: 3, channelSeq: 4, userSeq: 2)
        (mentioning.mentionSeq, mentioning.mentionMessage) = (4, MessageID(rawValue: 2))
        var edited = message(2, "@ann", changedAt: 4)
        edited.mentionees = [.users(["ann"])]
        try await store.write(
            [.erase(epoch: "first")] + arrival(of: 1...3) + [
                .channel(channel(counters(4, messages: 3))), .messages([edited], of: Harness.channel), .membership(mentioning),
                .capabilities(Harness.channel, Capabilities.Own(permissions: [.historyRead], userSeq: 2, channelSeq: 4)),
                .position(Harness.channel, Position(cursor: 4, windowStart: 0, messageCount: 3)),
            ])
        if hasOwnAfterIt {
            var own = message(5, "mine", by: "ann")
            own.isSilent = true
            var silent = counters(5, messages: 4)
            silent.ordinal = 3
            try await store.write([
                .channel(channel(silent)), .messages([own], of: Harness.channel),
                .position(Harness.channel, Position(cursor: 5, windowStart: 0, messageCount: 4)),
            ])
        }
        let shown = chat.channel(Harness.channel)
        try await shown.loaded()
        #expect(shown.unreadCount == 0 && shown.hasMention)
        func marks() async throws -> [OutboxOperation] { try await outbox.items().map(\.operation) }
        guard let isInList else {
            // The machine learns how far the channel is followed here.
            let (saved, kept) = (try await store.savedState(), try await outbox.saved())
            await chat.driver.request(.reopened(saved, kept))
            try await chat.markAllRead()
            #expect(try await marks() == [.read(MarkRead(channel: Harness.channel, seq: hasOwnAfterIt ? 5 : 4))])
            return
        }
        let list = isInList ? shown.messages() : nil
        try await list?.loaded()
        let token = shown.markReadWhileVisible(list)
        try await until { !shown.hasMention }
        #expect(try await marks() == [.read(MarkRead(channel: Harness.channel, seq: hasOwnAfterIt && !isInList ? 5 : 4))])
        token.invalidate()
    }

    @Test(
        "AM-30 AM-43 a list that starts at the first unread message finds it on this device offline, and keeps it while reading advances"
    )
    func firstUnread() async throws {
        let (chat, store) = try await chat()
        func read(to seq: Seq, userSeq: Seq) async throws {
            let unread = counters(1000, messages: 1000)
            try await store.write([
                .channel(channel(unread)),
                .membership(membership(readSeq: seq, readCount: Int(seq), channelSeq: 1000, userSeq: userSeq)),
            ])
        }
        try await read(to: 500, userSeq: 1)
        try await store.change { try CachedRowKinds.standard.forget(messages: 501...501, in: Harness.channel, $0) }
        try await store.write([.messages([message(501, "mine", by: "ann")], of: Harness.channel)])
        let list = chat.channel(Harness.channel).messages(around: .firstUnread, pageSize: 10)
        try await list.loaded()
        #expect(list.items.map(\.text) == (496...500).map { "\($0)" } + ["mine"] + (502...505).map { "\($0)" })
        #expect(list.firstUnread?.clientId == "bob-502" && list.newerCount == 495 && list.hasOlder)
        try await read(to: 900, userSeq: 2)
        try await store.write(arrival(of: 1001...1001))
        try await until { list.newerCount == 496 }
        #expect(list.firstUnread?.clientId == "bob-502")
        // Only if it is deleted for good, the next one becomes the first.
        let purged = Rows([PurgedMessage(seq: 502, changeSeq: 1002, counts: true)])
        try await store.write([.rows(purged, of: .channel(Harness.channel))] + arrival(of: 1003...1003))
        try await until { list.firstUnread?.clientId == "bob-503" }
        #expect(list.items.map(\.text) == (496...500).map { "\($0)" } + ["mine"] + (503...506).map { "\($0)" })
    }

    @Test("AM-30 a list that was scrolled back reports newer messages, and shows them on request")
    func jumps() async throws {
        let (chat, store) = try await chat()
        let list = chat.channel(Harness.channel).messages(pageSize: 100)
        try await list.loaded()
        try await list.loadOlder()
        #expect(list.items.count == 200 && !list.hasNewer)
        try await store.write(arrival(of: 1001...1200))
        try await until { list.hasNewer }
        #expect(list.items.map(\.text) == (801...1100).map { "\($0)" })
        try await chat.channel(Harness.channel).send("on its way")
        #expect(list.items.last?.text == "1100")

        await list.showNewest()
        try await until { list.items.last?.text == "on its way" }
        #expect(list.items.dropLast().map(\.text) == (1101...1200).map { "\($0)" } && !list.hasNewer)
        // From here on it follows.
        try await store.write(arrival(of: 1201...1201))
        try await until { list.items.dropLast().last?.text == "1201" }
        #expect(list.items.count == 102)
    }

    @Test("AM-30 I6 an own message that arrived among very many others isn't also shown as pending")
    func settled() async throws {
        let (chat, store) = try await chat()
        let list = chat.channel(Harness.channel).messages()
        try await list.loaded()
        let clientId = try await chat.channel(Harness.channel).send("mine")
        try await until { list.items.last?.state == .pending }
        // The message and 400 after it, before its row of the outbox is removed.
        let mine = message(1001, "mine", by: "ann", clientId: clientId)
        try await store.write([.messages([mine], of: Harness.channel)] + arrival(of: 1002...1401))
        try await until { list.items.last?.text == "1401" }
        #expect(list.items.allSatisfy { $0.state == .sent } && list.items.count == MessageList.rowsMax)
    }

    @Test("I4 a message without the app's own client id gets a random one, of 22 characters")
    func clientIds() async throws {
        let (chat, _) = try await chat()
        let channel = chat.channel(Harness.channel)
        let ids = [try await channel.send("one"), try await channel.send("two")]
        #expect(Set(ids).count == 2 && ids.map(\.rawValue.utf8.count) == [22, 22])
    }

    @Test("AM-30 unchanged rows aren't remade because something else changed")
    func keepsRows() async throws {
        let (chat, store) = try await chat()
        let list = chat.channel(Harness.channel).messages()
        try await list.loaded()
        let before = list.items
        let edit = StoreWrite.messages([message(990, "edited", changedAt: 1001)], of: Harness.channel)
        try await store.write(arrival(of: 1001...1001) + [edit])
        try await until { list.items.last?.text == "1001" }
        let kept = zip(before, list.items).filter { $0.row === $1.row }.map(\.0.text)
        #expect(kept == (971...1000).map { "\($0)" }.filter { $0 != "990" })
        #expect(list.items.first { $0.message?.seq == 990 }?.text == "edited")
    }

    @Test(
        "before the first connection a list knows nothing, and says so; the user's pending messages are shown",
        arguments: [.newest, .firstUnread, .time(Timestamp(milliseconds: 0)), .message(MessageID(rawValue: 1))] as [MessageAnchor])
    func beforeFirstConnection(anchor: MessageAnchor) async throws {
        let configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, transport: TinyServer())
        let chat = Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
        let general = chat.channel("general")
        let list = general.messages(around: anchor)
        try await general.send("hi")
        try await until { list.items.map(\.text) == ["hi"] }
        try await until { list.phase.error?.code == .notConnected }
        #expect(list.items.map(\.state) == [.pending])
        try await chat.connect()
        try await list.loaded()
        try await until { list.items.map(\.state) == [.sent, .sent] }
        #expect(list.phase == .loaded && list.items.map(\.text) == ["welcome", "hi"])
        await chat.disconnect()
    }

    @Test(
        "a list of a channel is refused to a non-member, until they join, and again after they have left",
        arguments: [.newest, .firstUnread, .time(Timestamp(milliseconds: 0)), .message(MessageID(rawValue: 2))] as [MessageAnchor])
    func notMember(anchor: MessageAnchor) async throws {
        let page = MessagePage(messages: [message(2, "one")], hasOlder: false, hasNewer: false, seq: 3)
        let server = ScriptedServer { call in call.operation == "message.list" ? .result(page) : .nothing }
        let chat = try await server.connected()
        let list = chat.channel("general").messages(around: anchor)
        let error = await #expect(throws: RoostError.self) { try await list.loaded() }
        #expect(error?.code == .notMember && list.phase.error == error && list.items.isEmpty)
        await list.showNewest()
        #expect(list.phase.error?.code == .notMember)

        let own = membership(readSeq: 1, readCount: 0, channelSeq: 3, userSeq: 1)
        try await server.send(
            Event(
                kind: .memberJoined, stream: .user("ann"), seq: 1, actor: "ann",
                rows: Rows(channel: channel(counters(3, messages: 2)), [message(3, "two")], [own])))
        try await until { list.phase == .loaded && list.items.last?.text == "two" }

        var left = own
        (left.state, left.userSeq) = (.none, 2)
        try await server.send(mine(2, .memberLeft, left))
        try await until { list.phase.error?.code == .notMember }
        #expect(list.items.isEmpty)
        await chat.disconnect()
    }

    @Test("AM-30 a list that goes to the newest messages while it requests others returns with the answer about the newest")
    func newestWhileFetching() async throws {
        let (answers, answer) = AsyncStream.makeStream(of: Void.self)
        let page = MessagePage(messages: [], hasOlder: false, hasNewer: false, seq: 3)
        let server = ScriptedServer { call in
            call.operation == "message.list" ? .held(until: answers, .result(page)) : .nothing
        }
        let chat = try await server.connectedInGeneral()
        let store = try await chat.driver.files().store
        try await until { try await store.savedState().channels[Harness.channel] != nil }
        let list = chat.channel(Harness.channel).messages(around: .message(MessageID(rawValue: 2)))
        try await until { await server.operations().contains("message.list") }
        let left = membership(readSeq: 3, readCount: 0, state: .none, channelSeq: 3, userSeq: 2)
        try await server.send(mine(2, .memberLeft, left))
        try await until { try await store.savedState().channels[Harness.channel] == nil }

        let hasReturned = Mutex(false)
        let showing = Task {
            await list.showNewest()
            hasReturned.withLock { $0 = true }
            return list.phase.error?.code
        }
        await letOthersRun()
        #expect(!hasReturned.withLock { $0 })
        answer.finish()
        #expect(await showing.value == .notMember)
        await chat.disconnect()
    }
}
