import Foundation
import GRDB
import Logging
import RoostAPI
import Testing

@testable import Roost

/// The cached contents of watched channels that the user isn't in, after a membership and next to other chats.
@Suite("Watching: the cache of non-members", .timeLimit(.minutes(5)))
struct SharedVisitTests {
    private static let general = Harness.channel
    private static let nothing = Resumption(user: changes(user: 1), channels: [], hasMore: false)

    /// The answer to a watch by a non-member.
    private static func state(_ seq: Seq, _ messages: [Message], count: Int) -> WatchedChannel {
        WatchedChannel(
            config: ChannelPolicy.presets[0], channel: channel(counters(seq, messages: count)), online: 1, watcherCount: 1,
            watchers: [:], members: [:], read: [:],
            messages: MessagePage(messages: messages, hasOlder: true, hasNewer: false, seq: seq),
            ownCapabilities: [.channelRead, .historyRead, .channelWatch])
    }

    private static func messages(_ seqs: ClosedRange<Seq>) -> [Message] { seqs.map { message($0, "m\($0)") } }
    private static func texts(_ seqs: ClosedRange<Seq>) -> [String] { seqs.map { "m\($0)" } }

    @Test("ST-01 SB-26 messages concealed from a member are shown to a former member who watches, until they are a member again")
    func formerMember() async throws {
        var client = try await Harness()
        try await client.connect()
        let joined = fresh(
            messages: Self.messages(44...45), counters: counters(45, messages: 44),
            membership: membership(readSeq: 45, readCount: 0, floor: 40))
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [joined], hasMore: false))
        let left = membership(readSeq: 45, readCount: 0, state: .none, floor: 40, channelSeq: 46, userSeq: 2)
        try await client.receive(mine(2, .memberLeft, left))
        #expect(try await client.texts() == [])

        try await client.feed(.call(1, WatchChannel(channel: Self.general)))
        try await client.answer("channel.watch", with: Self.state(50, Self.messages(31...50), count: 48))
        #expect(try await client.texts() == Self.texts(31...50))
        try await client.feed(.loadMessages(9, Self.general, .older(than: .max), limit: 10))
        let page = MessagePage(messages: Self.messages(21...30), hasOlder: true, hasNewer: true, seq: 50)
        try await client.answer("message.list", with: page)
        #expect(try await client.texts() == Self.texts(21...50))
        #expect(try await client.store.read { try $0.maySee(messageAt: 21, in: Self.general) })

        try await client.receive(
            Event(
                kind: .memberJoined, stream: .channel(Self.general), seq: 51, actor: Harness.user,
                rows: Rows(counters: counters(51, messages: 48))))
        let again = membership(readSeq: 51, readCount: 0, floor: 40, channelSeq: 51, userSeq: 3)
        try await client.receive(mine(3, .memberJoined, again, channel: channel(counters(51, messages: 48))))
        #expect(try await client.texts() == Self.texts(41...50))
        #expect(try await !client.store.read { try $0.maySee(messageAt: 40, in: Self.general) })
    }
}

extension SharedVisitTests {
    // MARK: Several chats of a process

    private func withDirectory(_ body: (URL) async throws -> Void) async throws {
        let directory = URL.temporaryDirectory.appending(component: "roost-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        try await body(directory)
    }

    private func store(in directory: URL, sizeBytesMax: Int = .max) throws -> Store {
        try Store(
            url: directory.appending(component: "cache.sqlite"), user: Harness.user, sizeBytesMax: sizeBytesMax,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    /// A client in no channel.
    private func client(in directory: URL) async throws -> Harness {
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        var client = try await Harness(store: store(in: directory), outbox: Outbox(url: nil, logger: logger))
        try await connect(&client)
        return client
    }

    private func connect(_ client: inout Harness) async throws {
        client.forgetCalls()
        try await client.connect()
        try await client.answer("stream.resume", with: Self.nothing)
    }

    private func watch(_ client: inout Harness, _ state: WatchedChannel) async throws {
        try await client.feed(.call(1, WatchChannel(channel: Self.general)))
        try await client.answer("channel.watch", with: state)
    }

    private func receive(_ seq: Seq, by client: inout Harness) async throws {
        try await client.receive(alone(message(seq, "m\(seq)")))
    }

    private func cursor(of client: Harness) async throws -> Seq? {
        try await client.store.read { try $0.cursor(of: Self.general) }
    }

    @Test("ST-01 I6 of two chats that visit a channel one moves its position, and the cache has the messages given to either")
    func together() async throws {
        try await withDirectory { directory in
            var first = try await client(in: directory)
            var second = try await client(in: directory)
            try await watch(&first, Self.state(3, Self.messages(3...3), count: 2))
            try await watch(&second, Self.state(3, Self.messages(2...3), count: 2))
            for seq: Seq in 4...5 { try await receive(seq, by: &second) }
            #expect(try await second.texts() == Self.texts(2...5))
            // Messages of the other one are within the position of the lists.
            #expect(try await cursor(of: first) == 3)
            try await receive(4, by: &first)
            #expect(try await cursor(of: first) == 4)
            #expect(try await first.texts() == Self.texts(2...5))
        }
    }

    @Test("ST-01 I3 a chat that visits a channel starts over where another one that has lost its connection left off")
    func behind() async throws {
        try await withDirectory { directory in
            var first = try await client(in: directory)
            var second = try await client(in: directory)
            try await watch(&first, Self.state(3, Self.messages(2...3), count: 2))
            try await first.feed(.transport(first.sync.connection, .closed(code: nil, reason: "")))
            try await watch(&second, Self.state(7, Self.messages(6...7), count: 6))
            #expect(try await second.texts() == Self.texts(6...7))
            // The first one reconnects, and they continue together.
            try await connect(&first)
            try await first.answer("channel.watch", with: Self.state(7, Self.messages(6...7), count: 6))
            for seq: Seq in 8...9 {
                try await receive(seq, by: &first)
                try await receive(seq, by: &second)
            }
            #expect(try await first.texts() == Self.texts(6...9))
        }
    }

    @Test("ST-01 I6 two chats that visit a channel, each of them once ahead of the other, don't take it from each other again")
    func inTurns() async throws {
        try await withDirectory { directory in
            var first = try await client(in: directory)
            var second = try await client(in: directory)
            try await watch(&first, Self.state(3, Self.messages(2...3), count: 2))
            try await watch(&second, Self.state(5, Self.messages(4...5), count: 4))
            await #expect(throws: OpenFiles.RestartedElsewhere.self) { try await receive(4, by: &first) }
            try await first.feed(.storeFailed(try await first.store.savedState(), nil, "Another chat."))
            try await connect(&first)
            try await first.answer("channel.watch", with: Self.state(7, Self.messages(6...7), count: 6))
            for seq: Seq in 6...7 { try await receive(seq, by: &second) }
            for seq: Seq in 8...9 {
                try await receive(seq, by: &first)
                try await receive(seq, by: &second)
            }
            #expect(try await cursor(of: second) == 9)
            #expect(try await second.texts() == Self.texts(4...9))
        }
    }

    @Test("ST-01 I6 the visit of a chat that is gone continues with another one, and ends with it")
    func gone() async throws {
        try await withDirectory { directory in
            var first: Harness? = try await client(in: directory)
            var second = try await client(in: directory)
            if var visitor = first {
                try await watch(&visitor, Self.state(3, Self.messages(2...3), count: 2))
                first = visitor
            }
            try await watch(&second, Self.state(3, Self.messages(2...3), count: 2))
            #expect(try await first?.texts() == Self.texts(2...3))
            first = nil
            try await receive(4, by: &second)
            #expect(try await cursor(of: second) == 4)
            #expect(try await second.texts() == Self.texts(2...4))
            try await second.feed(.call(2, UnwatchChannel(channel: Self.general)))
            #expect(try await second.texts() == [])
            #expect(try await cursor(of: second) == nil)
        }
    }

    @Test("ST-01 I6 opening the cache drops channels followed only while watched, even if it can't be trimmed")
    func untrimmed() async throws {
        try await withDirectory { directory in
            func visit() async throws {
                let former = try store(in: directory)
                try await former.write([
                    .position("other", Position(cursor: 3, windowStart: 2)),
                    .visit(Self.general, Position(cursor: 3, windowStart: 2, isVisit: true)),
                ])
                let trigger = """
                    CREATE TRIGGER refused BEFORE UPDATE OF window_start ON positions
                    BEGIN SELECT RAISE(ABORT, 'it is full'); END
                    """
                try await former.change { try $0.execute(sql: trigger) }
            }
            try await visit()
            let opened = try store(in: directory, sizeBytesMax: 0)
            #expect(try await opened.read { try $0.cursor(of: "other") } == 3)
            #expect(try await opened.read { try $0.cursor(of: Self.general) } == nil)
        }
    }
}
