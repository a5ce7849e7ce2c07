import Foundation
import GRDB
import Logging
import RoostAPI
import Testing

@testable import Roost

/// Two connected chats of one process, which share one file.
@Suite("Store: what several chats have cached of a channel", .timeLimit(.minutes(5)))
struct SharedPositionTests {
    private let directory = URL.temporaryDirectory.appending(component: "roost-\(UUID().uuidString)")

    /// Two clients with messages 98 and 99 of a channel that has one at each seq from 2 on, and whatever a body adds before the second one
    /// starts.
    private func clients(_ body: (inout Harness) async throws -> Void = { _ in }) async throws -> (Harness, Harness) {
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        func store() throws -> Store {
            try Store(url: directory.appending(component: "cache.sqlite"), user: Harness.user, logger: logger)
        }
        var first = try await Harness(store: store(), outbox: Outbox(url: nil, logger: logger))
        try await first.connect()
        let fresh = fresh(
            messages: [message(98, "m98"), message(99, "m99")], counters: counters(99, messages: 98),
            membership: membership(readSeq: 40, readCount: 39))
        try await first.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [fresh], hasMore: false))
        try await body(&first)
        var second = try await Harness(store: store(), outbox: Outbox(url: nil, logger: logger))
        try await second.connect()
        try await second.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [], hasMore: false))
        return (first, second)
    }

    private func load(_ load: MessageLoad, _ seqs: ClosedRange<Seq>, by client: inout Harness) async throws {
        try await client.feed(.loadMessages(seqs.lowerBound, Harness.channel, load, limit: seqs.count))
        let page = MessagePage(messages: seqs.map { message($0, "m\($0)") }, hasOlder: true, hasNewer: true, seq: 99)
        try await client.answer("message.list", with: page)
    }

    private func texts(_ seqs: ClosedRange<Seq>) -> [String] { seqs.map { "m\($0)" } }

    @Test("I6 pages that one chat has fetched stay when another one follows the channel")
    func pagesStay() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        var (first, second) = try await clients()
        try await load(.older(than: .max), 90...97, by: &first)
        try await load(.around(40), 39...42, by: &first)
        for seq: Seq in [100, 101] {
            try await first.receive(sent(message(seq, "m\(seq)"), messages: Int(seq) - 1))
            try await second.receive(sent(message(seq, "m\(seq)"), messages: Int(seq) - 1))
        }
        for client in [first, second] {
            #expect(try await client.texts() == texts(90...101))
            #expect(try await client.texts(at: 40) == texts(39...42))
        }
        // They survive a restart, and pages that the other one fetches are added to them.
        try await load(.around(60), 59...62, by: &second)
        let whole = Position(cursor: 101, windowStart: 90, messageCount: 100, stretches: [39...42, 59...62])
        #expect(try await first.restarted().sync.saved.channels == [Harness.channel: whole])
    }

    @Test("I6 a change of a message that only another chat has fetched is stored by the chat that moves the position past it")
    func changesOfOthers() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        var (first, second) = try await clients()
        try await load(.older(than: .max), 90...97, by: &first)
        try await load(.around(40), 39...42, by: &first)
        try await first.feed(.stop)
        try await second.receive(edited(message(95, "edited", changedAt: 100), messages: 98))
        try await second.receive(edited(message(40, "edited", changedAt: 101), messages: 98))
        try await second.receive(edited(message(70, "edited", changedAt: 102), messages: 98))
        #expect(try await second.texts() == texts(90...94) + ["edited"] + texts(96...99))
        #expect(try await second.texts(at: 40) == ["m39", "edited", "m41", "m42"])
        #expect(try await second.store.read { try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM messages WHERE seq = 70") } == 0)
    }

    @Test("I6 a part that another chat has fetched grows by pages, like a chat's own")
    func growing() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        var (first, second) = try await clients()
        try await load(.around(40), 39...42, by: &first)
        try await load(.older(than: 40), 35...39, by: &second)
        try await load(.newer(than: 42), 43...45, by: &second)
        #expect(try await first.texts(at: 40) == texts(35...45))
    }

    @Test("I6 a stretch that one chat drops isn't claimed by another that knew it, and leaves no hole")
    func givenUp() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        var (first, second) = try await clients { client in
            for place in 1...Seq(Position.stretchesMax) {
                try await load(.around(place * 8), place * 8...place * 8 + 1, by: &client)
            }
        }
        #expect(second.sync.saved == first.sync.saved)
        try await load(.around(80), 80...81, by: &second)
        #expect(try await first.texts(at: 8) == ["lost"])
        let next = sent(message(100, "m100"), messages: 99)
        // Its machine has to read the positions first.
        await #expect(throws: OpenFiles.RestartedElsewhere.self) { try await first.receive(next) }
        try await first.feed(.storeFailed(try await first.store.savedState(), nil, "Another chat."))
        #expect(first.sync.saved == second.sync.saved)
        try await second.receive(next)
        for client in [first, second] {
            #expect(try await client.texts(at: 8) == ["lost"])
            #expect(try await client.texts(at: 16) == texts(16...17))
        }
    }

    @Test("I6 a stretch that has meanwhile become a part of the newest messages isn't dropped")
    func joinedMeanwhile() async throws {
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let store = try Store(url: nil, user: Harness.user, logger: logger)
        try await store.write([
            .messages((2...20).map { message($0, "m\($0)") }, of: Harness.channel),
            .position(Harness.channel, Position(cursor: 20, windowStart: 12, stretches: [2...4, 6...9])),
            .forgetMessages(Harness.channel, 8...14),
        ])
        let saved = try await store.savedState().channels[Harness.channel]
        #expect(saved == Position(cursor: 20, windowStart: 12, stretches: [2...4]))
        let seqs = try await store.read { try Seq.fetchAll($0, sql: "SELECT seq FROM messages ORDER BY seq") }
        #expect(seqs == Array(2...5) + Array(12...20))
    }
}
