import Foundation
import Logging
import RoostAPI
import Testing

@testable import Roost

/// Channels that the user watches and may read without being a member.
@Suite("Watching: by non-members", .timeLimit(.minutes(5)))
struct VisitTests {
    static let general = Harness.channel
    static let all: [Permission] = [.channelRead, .historyRead, .channelWatch]

    /// The answer to a watch by a non-member.
    static func state(
        _ seq: Seq = 3, _ messages: [Message] = [message(2, "one"), message(3, "two")], count: Int = 2,
        may permissions: [Permission] = all
    ) -> WatchedChannel {
        WatchedChannel(
            config: ChannelPolicy.presets[0], channel: channel(counters(seq, messages: count)), online: 1, watcherCount: 1,
            watchers: [:], members: [:], read: [:],
            messages: MessagePage(messages: messages, hasOlder: true, hasNewer: false, seq: seq), ownCapabilities: permissions)
    }

    /// A client that is in no channel, and watches one at seq 3.
    func visiting(_ client: Harness? = nil) async throws -> Harness {
        var client = if let client { client } else { try await Harness() }
        try await client.connect()
        try await client.answer("stream.resume", with: Self.nothing)
        try await client.feed(.call(1, WatchChannel(channel: Self.general)))
        try await client.answer("channel.watch", with: Self.state())
        _ = client.take()
        return client
    }

    static let nothing = Resumption(user: changes(user: 1), channels: [], hasMore: false)

    func reported(by client: inout Harness) -> [ChatEvent] {
        client.take().compactMap { if case .event(let event, _) = $0 { event } else { nil } }
    }

    /// Requests older messages, and returns the code of the refusal.
    private func refusal(by client: inout Harness) async throws -> RoostError.Code? {
        _ = client.take()
        try await client.feed(.loadMessages(9, Self.general, .older(than: .max), limit: 10))
        for case .reply(9, .failure(let error)) in client.take() { return error.code }
        return nil
    }

    /// Loses the connection, and gets the next one up to its answer to the resume.
    func reconnect(_ client: inout Harness) async throws {
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        client.forgetCalls()
        _ = client.take()
        try await client.connect()
    }

    private struct SentResume: Decodable {
        struct Fields: Decodable { let channels: [String: Seq]? }
        let operation: String
        let with: Fields
    }

    @Test("ST-01 ST-06 a non-member who watches a channel gets its events, which are reported, shown and counted, until they stop")
    func live() async throws {
        var client = try await visiting()
        #expect(try await client.texts() == ["one", "two"])
        let new = message(4, "new")
        try await client.receive(alone(new))
        try await client.receive(edited(message(2, "one, edited", changedAt: 5), messages: 3))
        #expect(reported(by: &client).count == 2)
        #expect(try await client.texts() == ["one, edited", "two", "new"])
        let view = try await client.view()
        #expect(view?.channel.counters.messageCount == 3 && view?.lastMessage == new && view?.membership == nil)
        // None of it is the user's own.
        #expect(try await client.listed() == [] && client.sync.arrivals == [:])

        try await client.feed(.call(2, UnwatchChannel(channel: Self.general)))
        #expect(client.sync.saved.channels == [:])
        #expect(try await client.texts() == [])
        try await client.receive(alone(message(6, "late")))
        #expect(reported(by: &client) == [])
        #expect(try await refusal(by: &client) == .notMember)
    }

    @Test("ST-01 SB-48 older messages of a channel that a non-member watches are fetched page by page")
    func older() async throws {
        var client = try await visiting()
        try await client.feed(.loadMessages(9, Self.general, .older(than: .max), limit: 10))
        let page = MessagePage(messages: [message(1, "first")], hasOlder: false, hasNewer: true, seq: 3)
        try await client.answer("message.list", with: page)
        #expect(try await client.texts() == ["first", "one", "two"])
    }

    @Test("ST-01 I9 a non-member who may watch a channel but not read it gets none of its messages")
    func unreadable() async throws {
        var client = try await Harness()
        try await client.connect()
        try await client.answer("stream.resume", with: Self.nothing)
        try await client.feed(.call(1, WatchChannel(channel: Self.general)))
        try await client.answer("channel.watch", with: Self.state(3, [], may: [.channelRead, .channelWatch]))
        #expect(client.sync.saved.channels == [:] && client.sync.watched == [Self.general])
        #expect(try await refusal(by: &client) == .notMember)
    }

    @Test(
        "ST-01 R39 after a reconnect the watch starts again, and the channel at its answer: no resume names it, and nothing is missing"
    )
    func reconnected() async throws {
        var client = try await visiting()
        try await reconnect(&client)
        let resumes = client.take().compactMap { output -> SentResume? in
            guard case .sendBeforeStoring(let bytes) = output else { return nil }
            return try? JSONDecoder().decode(SentResume.self, from: Data(bytes))
        }
        #expect(resumes.map { $0.with.channels ?? [:] } == [[:]])
        // The shown messages stay until the answer.
        #expect(try await client.texts() == ["one", "two"])
        try await client.answer("stream.resume", with: Self.nothing)
        try await client.answer("channel.watch", with: Self.state(7, [message(6, "six"), message(7, "seven")], count: 5))
        #expect(reported(by: &client) == [.missed(after: [Self.general: 3])])
        #expect(try await client.texts() == ["six", "seven"])

        // Nothing starts over if nothing has happened.
        let former = try await client.store.read { try $0.generation(of: Self.general) }
        try await reconnect(&client)
        try await client.answer("stream.resume", with: Self.nothing)
        try await client.answer("channel.watch", with: Self.state(7, [message(7, "seven")], count: 5))
        #expect(reported(by: &client) == [])
        #expect(try await client.store.read { try $0.generation(of: Self.general) } == former)
        #expect(try await client.restarted().sync.saved.channels == [:])
    }

    @Test("ST-01 I3 if events of a channel watched by a non-member are missing, it is watched again: later ones are there, once")
    func gap() async throws {
        var client = try await visiting()
        for seq: Seq in [6, 7] { try await client.receive(sent(message(seq, "m\(seq)"), messages: Int(seq) - 1)) }
        #expect(client.calls.values.sorted() == ["channel.watch"])
        #expect(try await client.texts() == ["one", "two"])
        let newest = (4...7).map { message($0, "m\($0)") }
        try await client.answer("channel.watch", with: Self.state(7, newest, count: 6))
        #expect(reported(by: &client) == [.missed(after: [Self.general: 3])])
        try await client.receive(alone(message(8, "m8")))
        #expect(try await client.texts() == ["m4", "m5", "m6", "m7", "m8"])
    }

    @Test("ST-01 I3 an answer to another watch that is ahead of the events causes no restart: they are still to arrive")
    func ahead() async throws {
        var client = try await visiting()
        try await client.feed(.hold(2, Self.general, by: 5))
        try await client.answer("channel.watch", with: Self.state(4, [], count: 3))
        _ = client.take()
        #expect(try await client.texts() == ["one", "two"])
        try await client.receive(alone(message(4, "new")))
        guard case .happened(let news)? = reported(by: &client).first else { Issue.record("It was reported as missed."); return }
        #expect(news.kind == .messageNew)
        #expect(try await client.texts() == ["one", "two", "new"])
    }

    @Test(
        "ST-01 I3 if the answer to a watch lacks events that arrived before it, the channel is watched again",
        arguments: [true, false])
    func behind(isFirst: Bool) async throws {
        var client: Harness
        if isFirst {
            client = try await Harness()
            try await client.connect()
            try await client.answer("stream.resume", with: Self.nothing)
            try await client.feed(.call(1, WatchChannel(channel: Self.general)))
        } else {
            client = try await visiting()
            try await client.receive(sent(message(6, "m6"), messages: 5))
        }
        try await client.receive(sent(message(8, "m8"), messages: 7))
        #expect(client.calls.values.sorted() == ["channel.watch"])
        try await client.answer("channel.watch", with: Self.state(7, [message(6, "m6"), message(7, "m7")], count: 6))
        #expect(client.calls.values.sorted() == ["channel.watch"])
        try await client.answer("channel.watch", with: Self.state(8, [message(7, "m7"), message(8, "m8")], count: 7))
        #expect(client.calls.isEmpty)
        #expect(try await client.texts() == ["m7", "m8"])
        try await client.receive(alone(message(9, "m9")))
        #expect(try await client.texts() == ["m7", "m8", "m9"])
    }

    @Test("ST-01 I3 while own channels catch up, events beyond the limit have a non-member's watched channel start over")
    func dropped() async throws {
        var settings = Sync.Settings()
        settings.heldEventsMax = 1
        var client = try await visiting(Harness(settings: settings))
        // A gap in the user's own stream holds up all events.
        try await client.receive(mine(3, .memberLeft, membership(readSeq: 0, readCount: 0, state: .none, userSeq: 3)))
        for seq: Seq in [4, 5] { try await client.receive(alone(message(seq, "m\(seq)"))) }
        for _ in 0..<2 {
            let caughtUp = Resumption(user: changes(user: 3), channels: [], hasMore: false)
            try await client.answer("stream.resume", with: caughtUp)
        }
        #expect(client.calls.values.sorted() == ["channel.watch"])
        try await client.answer("channel.watch", with: Self.state(5, [message(4, "m4"), message(5, "m5")], count: 4))
        #expect(try await client.texts() == ["m4", "m5"])
    }

    /// What ends it besides the app.
    enum End: CaseIterable, Sendable { case byServer, refused, deleted, unreadable }

    @Test(
        "ST-01 ST-08 nothing of a channel watched by a non-member is shown once the watch, the right to read or the channel has ended",
        arguments: End.allCases)
    func ended(end: End) async throws {
        var client = try await visiting()
        switch end {
        case .byServer: try await client.receive(UnwatchedFrame(unwatched: .init(channel: Self.general)))
        case .refused:
            try await reconnect(&client)
            try await client.answer("stream.resume", with: Self.nothing)
            try await client.refuse("channel.watch", with: RoostError(.notPermitted, "It is closed."))
        case .deleted:
            let deleted = channel(counters(4, messages: 2), deletedAt: Timestamp(milliseconds: 4))
            try await client.receive(
                Event(kind: .channelDeleted, stream: .channel(Self.general), seq: 4, actor: "bob", rows: Rows(channel: deleted)))
        case .unreadable:
            let rows = Rows(counters: counters(4, messages: 2), capabilities: ["member": Self.all])
            try await client.receive(
                Event(kind: .channelUpdated, stream: .channel(Self.general), seq: 4, actor: "bob", rows: rows))
            // The lists of permissions are those of members.
            #expect(try await client.texts() == ["one", "two"])
            try await client.answer(
                "channel.get",
                with: ChannelView(channel: channel(counters(4, messages: 2)), ownCapabilities: [.channelRead, .channelWatch]))
        }
        #expect(client.sync.saved.channels == [:] && client.sync.watches.visits == [:])
        #expect(try await client.texts() == [])
        #expect(try await refusal(by: &client) == .notMember)
    }

    @Test("ST-10 SB-63 a non-member's live object that watches a channel gets its events, until it is released")
    func held() async throws {
        var client = try await Harness()
        try await client.connect()
        try await client.answer("stream.resume", with: Self.nothing)
        try await client.feed(.hold(1, Self.general, by: 5))
        try await client.answer("channel.watch", with: Self.state(3, []))
        try await client.receive(alone(message(4, "new")))
        #expect(try await client.texts() == ["new"])
        try await client.feed(.release(5))
        #expect(client.sync.saved.channels == [:])
    }

    @Test(
        "ST-09 SB-63 a non-member's channel gets events until the last call that may have it watched ends, though its live object is gone"
    )
    func heldAndQueried() async throws {
        var client = try await Harness()
        try await client.connect()
        try await client.answer("stream.resume", with: Self.nothing)
        try await client.feed(.hold(1, Self.general, by: 5))
        try await client.answer("channel.watch", with: Self.state(3, []))
        try await client.feed(.call(2, QueryAndWatchChannels(query: QueryChannels(membership: .all))))
        try await client.feed(.release(5))
        try await client.receive(alone(message(4, "new")))
        #expect(try await client.texts() == ["new"])
        try await client.refuse("channel.queryAndWatch", with: RoostError(.overloaded, "Later."))
        #expect(client.sync.saved.channels == [:])
        #expect(try await client.texts() == [])
    }

    @Test("ST-09 the channels that a non-member's query watches get their events, each from its newest message on")
    func queried() async throws {
        var client = try await Harness()
        try await client.connect()
        try await client.answer("stream.resume", with: Self.nothing)
        try await client.feed(.call(1, QueryAndWatchChannels(query: QueryChannels(membership: .all))))
        let view = ChannelView(
            channel: channel(counters(3, messages: 2)), lastMessage: message(3, "two"), ownCapabilities: Self.all)
        try await client.answer("channel.queryAndWatch", with: Page(items: [view]))
        try await client.receive(alone(message(4, "new")))
        #expect(try await client.texts() == ["two", "new"])
    }

    @Test("ST-01 ST-06 a user who joins a watched channel keeps what is shown, and follows it as a member from there on")
    func joined() async throws {
        var client = try await visiting()
        try await client.receive(
            Event(
                kind: .memberJoined, stream: .channel(Self.general), seq: 4, actor: Harness.user,
                rows: Rows(counters: counters(4, messages: 2))))
        let own = membership(readSeq: 3, readCount: 0, channelSeq: 4, userSeq: 2)
        try await client.receive(mine(2, .memberJoined, own, channel: channel(counters(4, messages: 2))))
        let position = Position(cursor: 4, windowStart: 2, messageCount: 2)
        #expect(client.sync.saved.channels == [Self.general: position] && client.sync.watched == [Self.general])
        #expect(try await client.texts() == ["one", "two"])
        #expect(try await client.restarted().sync.saved.channels == [Self.general: position])
        // It doesn't end with the watch.
        try await client.feed(.call(2, UnwatchChannel(channel: Self.general)))
        try await client.receive(alone(message(5, "new")))
        #expect(try await client.texts() == ["one", "two", "new"])
    }

    /// A member who was removed while away, and watches the channel before their device knows.
    private func removed(isQuery: Bool) async throws -> Harness {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await reconnect(&client)
        guard isQuery else {
            try await client.feed(.call(7, WatchChannel(channel: Self.general)))
            try await client.answer("channel.watch", with: Self.state(5, [message(5, "five")], count: 3))
            return client
        }
        try await client.feed(.call(7, QueryAndWatchChannels(query: QueryChannels(membership: .all))))
        let view = ChannelView(
            channel: channel(counters(5, messages: 3)), lastMessage: message(5, "five"), ownCapabilities: Self.all)
        try await client.answer("channel.queryAndWatch", with: Page(items: [view]))
        return client
    }

    private func replies(to token: CallToken, by client: inout Harness) -> Int {
        client.take().count { if case .reply(token, .success) = $0 { true } else { false } }
    }

    private static let removal = Resumption(
        user: changes(user: 2, [membership(readSeq: 1, readCount: 0, state: .none, userSeq: 2)]), channels: [], hasMore: false)

    @Test(
        "ST-01 ST-06 a user who watches a channel before their device knows that they were removed from it gets its events",
        arguments: [true, false])
    func removedBefore(isQuery: Bool) async throws {
        var client = try await removed(isQuery: isQuery)
        #expect(replies(to: 7, by: &client) == 0)
        try await client.answer("stream.resume", with: Self.removal)
        #expect(replies(to: 7, by: &client) == 1)
        #expect(client.sync.watched == [Self.general])
        try await client.receive(alone(message(6, "six")))
        #expect(try await client.texts() == ["five", "six"])
    }

    @Test(
        "ST-10 a channel isn't watched if the app has ended the watch before the device knows that the user was removed from it",
        arguments: [true, false])
    func removedAndUnwatched(isQuery: Bool) async throws {
        for isCancelled in [true, false] {
            var client = try await removed(isQuery: isQuery)
            if isCancelled {
                try await client.feed(.cancel(7))
            } else {
                try await client.feed(.call(8, UnwatchChannel(channel: Self.general)))
            }
            #expect(client.calls.values.contains("channel.unwatch"))
            try await client.answer("stream.resume", with: Self.removal)
            #expect(client.sync.watched == [] && client.sync.saved.channels == [:])
            #expect(!client.calls.values.contains("channel.watch"))
        }
    }

    @Test("ST-01 a user who is added to a channel that they watch, while the watch lags behind, gets it as a member does")
    func joinedLate() async throws {
        var client = try await visiting()
        let own = membership(readSeq: 8, readCount: 0, channelSeq: 9, userSeq: 2)
        try await client.receive(mine(2, .memberJoined, own, channel: channel(counters(9, messages: 7))))
        #expect(client.sync.saved.channels == [Self.general: Position(cursor: 9, windowStart: 10, messageCount: 7)])
        #expect(try await client.texts() == [])
    }
}

extension VisitTests {
    // MARK: Files

    private func store(in directory: URL) throws -> Store {
        try Store(
            url: directory.appending(component: "cache.sqlite"), user: Harness.user,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    private func visiting(in directory: URL) async throws -> Harness {
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        return try await visiting(Harness(store: store(in: directory), outbox: Outbox(url: nil, logger: logger)))
    }

    @Test("ST-01 I6 opening the cache drops channels followed only while watched")
    func opened() async throws {
        let directory = URL.temporaryDirectory.appending(component: "roost-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        func visit() async throws {
            let client = try await visiting(in: directory)
            #expect(try await client.texts() == ["one", "two"])
        }
        try await visit()
        let store = try store(in: directory)
        #expect(try await store.savedState().channels == [:])
        #expect(try await store.read { try $0.cursor(of: Self.general) } == nil)
        #expect(try await store.read { try $0.message(MessageID(rawValue: 2), in: Self.general) } == nil)
    }

    @Test(
        "ST-01 I6 two chats of one process that watch the same channel as a non-member don't disturb each other; it starts over if one stops"
    )
    func shared() async throws {
        let directory = URL.temporaryDirectory.appending(component: "roost-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        var first = try await visiting(in: directory)
        var second = try await visiting(in: directory)
        try await first.receive(alone(message(4, "new")))
        try await second.receive(alone(message(4, "new")))
        for client in [first, second] { #expect(try await client.texts() == ["one", "two", "new"]) }

        try await first.feed(.call(2, UnwatchChannel(channel: Self.general)))
        // The machine of the other one has to read the positions first.
        await #expect(throws: OpenFiles.RestartedElsewhere.self) { try await second.receive(alone(message(5, "next"))) }
        try await second.feed(.storeFailed(try await second.store.savedState(), nil, "Another chat."))
        second.forgetCalls()
        try await second.connect()
        try await second.answer("stream.resume", with: Self.nothing)
        try await second.answer("channel.watch", with: Self.state(5, [message(4, "new"), message(5, "next")], count: 4))
        try await second.receive(alone(message(6, "last")))
        #expect(try await second.texts() == ["new", "next", "last"])
    }

    // MARK: An app's view

    @Test("ST-06 ST-08 AM-30 SB-02 while a non-member watches, lists show the messages, and their senders no longer as typing")
    @MainActor func list() async throws {
        let server = ScriptedServer { call in
            switch call.operation {
            case "channel.watch": .result(Self.state(3, [message(3, "two")]))
            case "message.list":
                .result(MessagePage(messages: [message(2, "one")], hasOlder: false, hasNewer: true, seq: 3))
            case "message.send": .nothing
            case "channel.unwatch": .result(Done())
            default: .error(.notFound("operation"))
            }
        }
        let chat = try await server.connected()
        let general = chat.channel(Self.general)
        let (list, typing) = (general.messages(), general.typing())
        try await until { list.phase.error?.code == .notMember }
        try await general.watch()
        try await until { list.phase == .loaded && list.items.map(\.text) == ["one", "two"] }
        try await typing.loaded()
        try await server.send(
            Signal(kind: .typingChanged, channel: Self.general, typing: TypingUsers(users: ["bob"], hasMore: false)))
        try await until { typing.users.map(\.id) == ["bob"] }
        try await server.send(alone(message(4, "new")))
        try await until { list.items.last?.text == "new" && typing.users.isEmpty && general.lastMessage?.text == "new" }
        try await general.send("mine")
        try await until { list.items.map(\.text) == ["one", "two", "new", "mine"] }
        #expect(general.unreadCount == 0 && general.currentUserMembership == .none)

        try await general.unwatch()
        try await until { list.phase.error?.code == .notMember && list.items.map(\.text) == ["mine"] }
        await chat.disconnect()
    }
}
