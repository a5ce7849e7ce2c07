import Foundation
import GRDB
import Logging
import RoostAPI
import Synchronization
import Testing

@testable import Roost

/// A broken or hostile server, and a damaged file, may contain any number. An app must not crash: a sum that traps ends these tests.
@Suite("Impossible numbers", .timeLimit(.minutes(5)))
struct ExtremeNumberTests {
    private static let time = Timestamp(milliseconds: 1)

    /// All rows that a stream delivers.
    private static func rows(at seq: Seq) -> Rows {
        let user = User(userId: Harness.user, createdAt: time, updatedAt: time, version: 3)
        return Rows(
            channel: channel(counters(seq, messages: 3)),
            [message(2, "one"), message(seq, "two", by: Harness.user), message(3, "three", changedAt: seq)],
            [PurgedMessage(seq: 4, changeSeq: seq, counts: true)],
            [ChannelMention(seq: 2, changeSeq: seq, mentionSeq: 2, sender: "bob")],
            [Member(userId: "bob", role: .member, state: .member, joinedAt: time, joinedSeq: 1, changeSeq: seq)],
            [membership(readSeq: 1, readCount: 1, channelSeq: seq, userSeq: 2)], [invitation()], [user],
            [OwnDeletion(channelId: Harness.channel, seq: 3, deletedAt: time, userSeq: 2)],
            [ChannelDraft(channelId: Harness.channel, text: "draft", updatedAt: time, userSeq: 2)])
    }

    /// Has a client continue as apps do, and reads what they show.
    private func goOn(_ client: inout Harness) async throws {
        try await client.store.read { try $0.lookAtEverything() }
        for load in [MessageLoad.older(than: .max), .newer(than: .min), .around(.max), .around(.min)] {
            try await client.feed(.loadMessages(1, Harness.channel, load, limit: 2))
            // A channel that isn't followed has nothing to request.
            guard client.calls.values.contains("message.list") else { continue }
            let page = MessagePage(
                messages: [.min, 1, 4, .max].map { message($0, "m") }, hasOlder: true, hasNewer: true, seq: .max)
            try await client.answer("message.list", with: page)
        }
        try await client.feed(.startReading(2, Harness.channel))
        try await client.enqueue(.read(MarkRead(channel: Harness.channel, seq: 3)))
        try await client.enqueue(.unread(MarkUnread(channel: Harness.channel, seq: 2)))
        try await client.enqueue(.reset(ResetHistory(channel: Harness.channel)))
        try await client.receive(alone(message(9, "next")))
        try await client.store.read { try $0.lookAtLists() }
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        _ = try await client.restarted()
    }

    @Test("a channel that begins with any numbers is followed and shown", arguments: [true, nil])
    func resumed(isFresh: Bool?) async throws {
        var channel = Changes(stream: .channel(Harness.channel), rows: Self.rows(at: 8), seq: 8, hasMore: false, isFresh: isFresh)
        channel.users = [UserSummary(userId: "bob", displayName: "Bob", version: 2)]
        var withoutMessages = channel
        (withoutMessages.rows.messages, withoutMessages.rows.purged) = (nil, nil)
        let answers = (isFresh == true ? [channel, withoutMessages] : [channel]).map {
            Resumption(user: changes(user: 3), channels: [$0], hasMore: false)
        }
        for variant in try answers.flatMap(ExtremeNumbers.variants) {
            var client = try await Harness()
            if isFresh == nil { try await client.connectWithChannel() }
            if isFresh == nil { try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: ""))) }
            client.forgetCalls()
            try await client.connect()
            try await client.answer("stream.resume", with: variant)
            try await goOn(&client)
        }
    }

    @Test("events with any numbers are applied or left out")
    func events() async throws {
        let own = Event(
            kind: .readingMarked, stream: .user(Harness.user), seq: 2, actor: Harness.user, rows: Self.rows(at: 4))
        let all = Event(
            kind: .messageUpdated, stream: .channel(Harness.channel), seq: 4, after: 3, actor: "bob", rows: Self.rows(at: 4))
        let events: [any Encodable & Sendable] = [
            own, all, alone(message(4, "three")), sent(message(4, "three"), messages: 3),
        ]
        for event in events {
            for variant in try ExtremeNumbers.variants(of: event) {
                var client = try await Harness()
                try await client.connectWithChannel()
                try await client.receive(variant)
                try await goOn(&client)
            }
        }
    }

    @Test("answers with any numbers are stored or refused")
    func answers() async throws {
        let page = MessagePage(messages: [message(2, "one"), message(3, "two")], hasOlder: true, hasNewer: true, seq: 3)
        let view = ChannelView(
            channel: channel(counters(5, messages: 4)), membership: membership(readSeq: 2, readCount: 1, userSeq: 3),
            invitation: invitation(), lastMessage: message(5, "last"))
        for load in [MessageLoad.older(than: 3), .around(1), .aroundMessage(MessageID(rawValue: 1)), .aroundTime(Self.time)] {
            for variant in try ExtremeNumbers.variants(of: page) {
                var client = try await Harness()
                try await client.connect()
                let known = Resumption(
                    user: changes(user: 1), channels: [fresh(counters: counters(3, messages: 9))], hasMore: false)
                try await client.answer("stream.resume", with: known)
                try await client.feed(.loadMessages(1, Harness.channel, load, limit: 2))
                try await client.answer("message.list", with: variant)
                try await goOn(&client)
            }
        }
        for variant in try ExtremeNumbers.variants(of: view) {
            for operation in [GetChannel(channel: Harness.channel), JoinChannel(channel: Harness.channel)]
                as [any RoostAPI.Operation]
            {
                var client = try await Harness()
                try await client.connect()
                try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [], hasMore: false))
                try await client.feed(.call(1, operation))
                try await client.answer(type(of: operation).name, with: variant)
                try await goOn(&client)
            }
        }
        for variant in try ExtremeNumbers.variants(of: UnreadCount(channelId: Harness.channel, unreadCount: 1, readSeq: 3)) {
            var client = try await Harness()
            try await client.connectWithChannel()
            try await client.feed(.startReading(1, Harness.channel))
            try await client.answer("reading.start", with: variant)
            try await goOn(&client)
        }
        for variant in try ExtremeNumbers.variants(of: message(4, "sent", by: Harness.user, clientId: "c1")) {
            var client = try await Harness()
            try await client.connectWithChannel()
            try await client.send("sent", clientId: "c1")
            try await client.answer("message.send", with: variant)
            try await goOn(&client)
        }
    }

    @Test("a server may request any pause, and ping as it likes")
    func waits() async throws {
        for number in ExtremeNumbers.all {
            var client = try await Harness()
            try await client.connectWithChannel()
            try await client.send("sent", clientId: "c1")
            try await client.refuse(
                "message.send", with: RoostError(.rateLimited, "Later.", limit: number, retryAfterMilliseconds: number))
            try await client.receive(text: #"{"closing":{"reason":"restart","retryAfterMilliseconds":\#(number)}}"#)
            try await client.feed(.transport(client.sync.connection, .closed(code: 1012, reason: "")))
            try await client.feed(.timer(.reconnect))
            try await client.feed(.transport(client.sync.connection, .opened))
            try await client.receive(
                text: #"{"welcome":{"user":"ann","role":"user","epoch":"first","pingIntervalSeconds":\#(number)}}"#)
            try await client.feed(.timer(.liveness))
            #expect(client.sync.phase == .catchingUp)
        }
    }

    @MainActor @Test("a history of the messages on the server starts at any place, and continues in both directions")
    func history() async throws {
        for number in ExtremeNumbers.all {
            let empty = MessagePage(messages: [], hasOlder: true, hasNewer: true, seq: number)
            let turn = Turn()
            let server = ScriptedServer { _ in
                .result(
                    turn.next() == 0
                        ? empty : MessagePage(messages: [message(number, "m")], hasOlder: true, hasNewer: true, seq: number))
            }
            let configuration = Chat.Configuration(
                storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, transport: server)
            let chat = Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
            try await chat.connect()
            let history = chat.channel("general").history(from: .before(Self.time))
            #expect(try await history.loadOlder().isEmpty)
            // The id of a message can't be negative, nor the place after another one.
            _ = try? await history.loadOlder()
            _ = try? await history.loadNewer()
            await chat.disconnect()
        }
    }

    @Test("unread counts whose sum overflows give the highest total, and the right one once they are right again")
    func totals() {
        let ids = ["a", "b", "c"].map { ChannelID($0) }
        var order = ChannelOrder(ids.map { ChannelPlace(id: $0, unreadCount: .max) })
        #expect(order.unreadCount > 0)
        for id in ids { order.set(ChannelPlace(id: id, unreadCount: 2), for: id) }
        #expect(order.unreadCount == 6)
    }

    @Test("a file with any numbers is read or refused")
    func file() async throws {
        struct Undone: Error {}
        var client = try await Harness()
        try await client.connect()
        var channel = Changes(stream: .channel(Harness.channel), rows: Self.rows(at: 8), seq: 8, hasMore: false, isFresh: true)
        channel.rows.ownCapabilities = [Harness.channel.rawValue: [.historyRead]]
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 3), channels: [channel], hasMore: false))
        try await client.enqueue(.unread(MarkUnread(channel: Harness.channel, seq: 2)))
        let columns = try await client.store.read { try $0.columnsOfNumbers() }
        #expect(columns.count > 30)
        for (table, column) in columns {
            for number in ExtremeNumbers.all {
                let read = Kept<SavedState>()
                await #expect(throws: (any Error).self) {
                    try await client.store.change { database in
                        try database.execute(sql: "UPDATE \(table) SET \(column) = ?", arguments: [number])
                        read.keep(try database.savedState())
                        try database.lookAtEverything()
                        throw Undone()
                    }
                }
                guard let saved = read.value else { continue }
                var sync = Sync(user: Harness.user, client: "test", saved: saved, random: NoChance())
                sync.phase = .online
                for seq in [2, 9, .max] as [Seq] {
                    let frame = try JSONWriter.bytes(of: alone(message(seq, "next")))
                    _ = sync.handle(.transport(sync.connection, .message(frame)))
                    sync.phase = .online
                }
            }
        }
    }

    @Test("operations of the outbox with any numbers are shown, sent and given up", arguments: ExtremeNumbers.all)
    func outbox(number: Int64) async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        let operations: [OutboxOperation] = [
            .unread(MarkUnread(channel: Harness.channel, seq: number)), .read(MarkRead(channel: Harness.channel, seq: number)),
            .mute(MuteNotifications(channel: Harness.channel, seconds: Int(clamping: number))),
            .draft(SetDraft(channel: Harness.channel, text: "draft")),
            .edit(EditMessage(channel: Harness.channel, message: MessageID(rawValue: 2), text: "new")),
            .delete(DeleteMessage(channel: Harness.channel, message: MessageID(rawValue: 3))),
            .hide(HideChannel(channel: Harness.channel, hidePreviousMessages: true)),
        ]
        for operation in operations {
            let time = Timestamp(milliseconds: number)
            let item = OutboxItem(
                id: number, number: number, operation: operation, createdAt: time, firstSentAt: time, concealedSeq: number)
            try await client.store.write([.overlay(Harness.channel, Overlay([item]))])
            try await client.store.read { try $0.lookAtEverything() }
            try await client.outbox.apply([.put(item)])
            var again = try await client.restarted()
            try await again.connectWithChannel()
            try await again.enqueue(.hide(HideChannel(channel: Harness.channel)))
            try await again.feed(.discard(.operation(number, of: Harness.channel)))
            try await again.store.read { try $0.lookAtEverything() }
        }
    }

    @Test("unread events, at any place of a stream, are reported as missed")
    func missed() {
        for number in ExtremeNumbers.all {
            let queue = EventQueue()
            for _ in 0...EventQueue.countMax {
                queue.add(.missed(after: ["other": number]), at: StreamPosition(channel: "general", seq: number))
            }
            #expect(queue.take() == .missed(after: ["other": number, "general": number == .min ? .min : number - 1]))
        }
    }
}

/// A value read in a transaction that is rolled back.
private final class Kept<Value: Sendable>: Sendable {
    private let kept = Mutex<Value?>(nil)
    var value: Value? { kept.withLock { $0 } }
    func keep(_ value: Value) { kept.withLock { $0 = value } }
}

extension Database {
    /// The columns of the cache that have a number in some row.
    fileprivate func columnsOfNumbers() throws -> [(table: String, column: String)] {
        let tables: [String] = try values(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'grdb%' ORDER BY name"
        )
        var columns: [(String, String)] = []
        for table in tables {
            let names: [String] = try values("SELECT name FROM pragma_table_info('\(table)')")
            for name in names {
                let isNumber: Bool? = try value("SELECT EXISTS (SELECT 1 FROM \(table) WHERE typeof(\(name)) = 'integer')")
                if isNumber == true { columns.append((table, name)) }
            }
        }
        return columns
    }
}
