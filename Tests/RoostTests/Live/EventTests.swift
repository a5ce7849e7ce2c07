import Foundation
import Logging
import RoostAPI
import Testing

@testable import Roost

/// The events that an app gets.
@Suite("Live: events", .timeLimit(.minutes(5)))
struct EventTests {
    /// The events of the machine's outputs.
    private func reported(by client: inout Harness) -> [ChatEvent] {
        client.take().compactMap { if case .event(let event, _) = $0 { event } else { nil } }
    }

    private func happening(
        _ kind: Event.Kind?, by actor: UserID?, otherDevice: Bool? = false, isWatched: Bool = false, _ message: Message? = nil
    ) -> ChatEvent {
        .happened(
            ChatEvent.Happening(
                kind: kind, channel: Harness.channel, actor: actor, isOwn: actor == Harness.user, isFromOtherDevice: otherDevice,
                isWatched: isWatched, message: message, purged: nil, invitations: []))
    }

    @Test("each change is reported once, after it is stored; dropped or concealed ones aren't")
    func live() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        _ = client.take()
        let new = message(4, "new")
        try await client.receive(alone(new))
        let outputs = client.take()
        let store = outputs.firstIndex { if case .store = $0 { true } else { false } }
        let event = outputs.firstIndex(
            of: .event(happening(.messageNew, by: "bob", new), StreamPosition(channel: Harness.channel, seq: 4)))
        #expect(store.map { store in event.map { store < $0 } ?? false } == true)

        try await client.receive(alone(new))
        try await client.receive(sent(message(5, "secret"), messages: 4).concealing(messagesUpTo: .max))
        #expect(reported(by: &client) == [])
        let changed = message(3, "two, edited", changedAt: 6)
        try await client.receive(edited(changed, messages: 4))
        try await client.receive(
            text: #"{"watching":false,"event":"message.sung","stream":"channel:general","seq":7,"actor":"bob","rows":{}}"#)
        try await client.receive(mine(2, .readingMarked, membership(readSeq: 3, readCount: 2, userSeq: 2)))
        #expect(
            reported(by: &client) == [
                happening(.messageUpdated, by: "bob", changed), happening(nil, by: "bob"),
                happening(.readingMarked, by: Harness.user, otherDevice: true),
            ])
    }

    @Test("ST-07 whether the device watches the channel is reported as sent; if that is unreadable, the rest still counts")
    func watching() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        _ = client.take()
        let (new, changed, last) = (message(4, "new"), message(3, "two, edited", changedAt: 5), message(7, "last"))
        try await client.receive(EventFrame(watching: true, event: Event(of: new)))
        try await client.receive(EventFrame(watching: true, event: edited(changed, messages: 3)))
        try await client.receive(
            text: #"{"watching":"yes","event":"message.sung","stream":"channel:general","seq":6,"actor":"bob","rows":{}}"#)
        try await client.receive(alone(last))
        #expect(
            reported(by: &client) == [
                happening(.messageNew, by: "bob", isWatched: true, new),
                happening(.messageUpdated, by: "bob", isWatched: true, changed),
                happening(nil, by: "bob"), happening(.messageNew, by: "bob", last),
            ])
    }

    @Test(
        "messages sent by this device are told apart from those of the user's other devices; any other own change, as far as known")
    func devices() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        _ = client.take()
        try await client.send("mine", clientId: "mine")
        let mine = message(4, "mine", by: Harness.user, clientId: "mine")
        try await client.receive(alone(mine))
        let other = message(5, "other", by: Harness.user)
        try await client.receive(alone(other))
        #expect(
            reported(by: &client) == [
                happening(.messageNew, by: Harness.user, otherDevice: false, mine),
                happening(.messageNew, by: Harness.user, otherDevice: true, other),
            ])
        // While this device has a request under way, the change may be its own.
        try await client.feed(.call(1, EditMessage(channel: Harness.channel, message: other.messageId, text: "edited")))
        let first = message(5, "edited", by: Harness.user, changedAt: 6)
        try await client.receive(edited(first, messages: 4))
        try await client.answer("message.edit", with: first)
        let second = message(5, "again", by: Harness.user, changedAt: 7)
        try await client.receive(edited(second, messages: 4))
        #expect(
            reported(by: &client) == [
                happening(.messageUpdated, by: Harness.user, otherDevice: nil, first),
                happening(.messageUpdated, by: Harness.user, otherDevice: true, second),
            ])
    }

    @Test("a request that is abandoned or unanswered doesn't hide which device made an own change; an abandoned change does")
    func abandonedCalls() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        _ = client.take()
        func change(_ seq: Seq, by client: inout Harness) async throws -> Bool?? {
            try await client.receive(edited(message(3, "\(seq)", by: Harness.user, changedAt: seq), messages: 2))
            return reported(by: &client).last.map { if case .happened(let news) = $0 { news.isFromOtherDevice } else { nil } }
        }
        try await client.feed(.call(1, GetMe()))
        #expect(try await change(4, by: &client) == .some(true))
        try await client.feed(.cancel(1))
        #expect(try await change(5, by: &client) == .some(true))
        try await client.feed(.call(2, GetMe()))
        try await client.feed(.timer(.call(client.sync.lastCall)))
        #expect(try await change(6, by: &client) == .some(true))
        try await client.feed(.call(3, MarkRead(channel: Harness.channel, seq: 3)))
        try await client.feed(.cancel(3))
        #expect(try await change(7, by: &client) == .some(nil))
    }

    @Test("AM-45 which device has read a channel is unknown while this one reads it, and for what it was given by the end of that")
    func reading() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        _ = client.take()
        #expect(try await isMarkedElsewhere(upTo: 2, &client) == .some(true))
        try await client.feed(.startReading(7, Harness.channel))
        #expect(try await isMarkedElsewhere(upTo: 3, &client) == .some(nil))
        try await client.answer("reading.start", with: UnreadCount(channelId: Harness.channel, unreadCount: 0, readSeq: 3))
        try await client.receive(alone(message(4, "new")))
        #expect(try await isMarkedElsewhere(upTo: 4, &client) == .some(nil))
        try await client.receive(alone(message(5, "newer")))
        try await client.feed(.stopReading(8, Harness.channel, id: 1, at: Timestamp(milliseconds: 0), serverReadSeq: 0))
        try await client.receive(alone(message(6, "before the server knows of the end")))
        try await client.answer("reading.stop", with: Done())
        #expect(try await isMarkedElsewhere(upTo: 5, &client) == .some(nil))
        try await client.answer("reading.mark", with: UnreadCount(channelId: Harness.channel, unreadCount: 1, readSeq: 5))
        // As the server does it a second later, for messages given to a reader.
        #expect(try await isMarkedElsewhere(upTo: 6, &client) == .some(nil))
        try await client.receive(alone(message(7, "after it")))
        #expect(try await isMarkedElsewhere(upTo: 7, &client) == .some(true))
        // If messages are marked as unread since, the server marks none of them for an earlier reader.
        let next = client.sync.saved.userCursor + 1
        try await client.receive(mine(next, .readingUnmarked, membership(readSeq: 2, readCount: 1, userSeq: next)))
        #expect(try await isMarkedElsewhere(upTo: 5, &client) == .some(true))
    }

    @Test("AM-45 which device has read a channel is unknown for what this one was given before the server ended its reading")
    func endedReading() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.feed(.startReading(7, Harness.channel))
        try await client.answer("reading.start", with: UnreadCount(channelId: Harness.channel, unreadCount: 0, readSeq: 3))
        try await client.receive(alone(message(4, "new")))
        try await client.receive(text: #"{"readingEnded":{"channel":"general"}}"#)
        try await client.answer("reading.stop", with: Done())
        #expect(try await isMarkedElsewhere(upTo: 4, &client) == .some(nil))
        try await client.receive(alone(message(5, "after it")))
        #expect(try await isMarkedElsewhere(upTo: 5, &client) == .some(true))
    }

    @Test("AM-45 which device has read a channel is unknown until the server knows that this one no longer reads it")
    func untoldEnd() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.feed(.startReading(7, Harness.channel))
        try await client.answer("reading.start", with: UnreadCount(channelId: Harness.channel, unreadCount: 0, readSeq: 3))
        try await client.receive(alone(message(4, "new")))
        try await client.feed(.stopReading(8, Harness.channel, id: 1, at: Timestamp(milliseconds: 0), serverReadSeq: 0))
        try await client.refuse("reading.stop", with: RoostError(.overloaded, ""))
        try await client.answer("reading.mark", with: UnreadCount(channelId: Harness.channel, unreadCount: 0, readSeq: 4))
        try await client.receive(alone(message(5, "for a reader, as the server sees it")))
        #expect(try await isMarkedElsewhere(upTo: 5, &client) == .some(nil))
    }

    @Test("AM-45 which device has read a channel is unknown after a call to read it was lost: the server may have accepted it")
    func lostReading() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.feed(.startReading(7, Harness.channel))
        try await client.feed(.timer(.call(client.sync.lastCall)))
        try await client.feed(.stopReading(8, Harness.channel, id: 1, at: Timestamp(milliseconds: 0), serverReadSeq: 0))
        try await client.answer("reading.stop", with: Done())
        try await client.answer("reading.mark", with: UnreadCount(channelId: Harness.channel, unreadCount: 0, readSeq: 3))
        try await client.receive(alone(message(4, "new")))
        #expect(try await isMarkedElsewhere(upTo: 4, &client) == .some(nil))
    }

    /// Whether the app is notified that another device has marked the channel as read, once the server says that it is read up to a seq.
    private func isMarkedElsewhere(upTo seq: Seq, _ client: inout Harness) async throws -> Bool?? {
        let next = client.sync.saved.userCursor + 1
        try await client.receive(mine(next, .readingMarked, membership(readSeq: seq, readCount: Int(seq) - 1, userSeq: next)))
        return reported(by: &client).last.map { if case .happened(let news) = $0 { news.isFromOtherDevice } else { nil } }
    }

    @Test("missed changes aren't reported as current: they are one event, with the places where they began, before live ones")
    func missed() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        #expect(reported(by: &client) == [.missed(after: [Harness.channel: 0])])
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        try await client.connect()
        // Some of these are part of the answer, and the last isn't.
        for seq: Seq in 4...6 { try await client.receive(alone(message(seq, "\(seq)"))) }
        #expect(reported(by: &client) == [])
        let caughtUp = changes(channel: 5, Rows(counters: counters(5, messages: 4), [message(4, "4"), message(5, "5")]))
        try await client.answer(
            "stream.resume", with: Resumption(user: changes(user: 1), channels: [caughtUp], hasMore: false))
        #expect(
            reported(by: &client) == [.missed(after: [Harness.channel: 3]), happening(.messageNew, by: "bob", message(6, "6"))])

        // Nothing was missed, so nothing is reported.
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        try await client.connect()
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [], hasMore: false))
        #expect(reported(by: &client) == [])
    }

    @Test(
        "missed changes that couldn't be reported, since the last part couldn't be stored, are reported with the next connection's")
    func untold() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        _ = client.take()
        let saved = client.sync.saved
        // As the driver does when it drops the event.
        try await client.feed(.missedAgain(["other": 7, Harness.channel: 2]))
        try await client.feed(.storeFailed(saved, nil, "disk full"))
        #expect(reported(by: &client) == [])
        try await client.feed(.timer(.reconnect))
        try await client.connect()
        let caughtUp = changes(channel: 5, Rows(counters: counters(5, messages: 4), [message(4, "4"), message(5, "5")]))
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [caughtUp], hasMore: false))
        #expect(reported(by: &client) == [.missed(after: ["other": 7, Harness.channel: 2])])
    }

    @Test("lost events, and several changes in one event, are missed too; over several pages from the first on")
    func gaps() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        _ = client.take()
        try await client.receive(alone(message(8, "8")))
        func page(to seq: Seq) -> Changes {
            changes(channel: seq, Rows(counters: counters(8, messages: 7), [message(seq, "\(seq)")]), hasMore: seq < 8)
        }
        for seq: Seq in 4...8 {
            #expect(reported(by: &client) == [])
            try await client.answer(
                "stream.resume", with: Resumption(user: changes(user: 1), channels: [page(to: seq)], hasMore: seq < 8))
        }
        #expect(reported(by: &client) == [.missed(after: [Harness.channel: 3])])
        let several = Event(
            kind: .changes, stream: .channel(Harness.channel), seq: 10, after: 8, actor: nil,
            rows: Rows(counters: counters(10, messages: 9), [message(9, "9"), message(10, "10")]))
        try await client.receive(several)
        #expect(reported(by: &client) == [.missed(after: [Harness.channel: 8])])
    }

    @Test("a slow reader gets a bounded number of events, and then one event about the missed ones; for each sequence")
    func slowReader() async throws {
        let feed = EventFeed()
        let slow = feed.events()
        let other = feed.events()
        func event(_ number: Seq) -> ChatEvent { happening(.messageNew, by: "bob", message(number, "\(number)")) }
        func send(_ numbers: ClosedRange<Seq>) {
            for number in numbers { feed.send(event(number), at: StreamPosition(channel: Harness.channel, seq: number)) }
        }
        send(11...10 + Seq(EventQueue.countMax))
        var quick = other.makeAsyncIterator()
        for number in 11...10 + Seq(EventQueue.countMax) { #expect(await quick.next() == event(number)) }
        // One more than fits.
        feed.send(.missed(after: ["other": 3]), at: nil)
        send(5000...5001)
        feed.end()
        var all: [ChatEvent] = []
        for await event in slow { all.append(event) }
        #expect(all == [.missed(after: [Harness.channel: 10]), .missed(after: ["other": 3]), event(5000), event(5001)])
        var rest: [ChatEvent] = []
        while let event = await quick.next() { rest.append(event) }
        #expect(rest == [.missed(after: ["other": 3]), event(5000), event(5001)])
        // A loop that starts after the end has ended.
        for await event in feed.events() { Issue.record("\(event)") }
    }

    @Test("changes that one reader missed several times are one event, from the first of them on")
    func missedAgain() async throws {
        let queue = EventQueue()
        for round: Seq in 1...3 {
            for number in 1...Seq(EventQueue.countMax) {
                let seq = round * 10_000 + number
                queue.add(
                    happening(.messageNew, by: "bob", message(seq, "x")), at: StreamPosition(channel: Harness.channel, seq: seq))
            }
        }
        #expect(queue.take() == .missed(after: [Harness.channel: 10_000]))
        var count = 1
        while queue.take() != nil { count += 1 }
        #expect(count <= EventQueue.countMax + 1)
    }

    @Test("AM-29 a loop over events ends when it is cancelled, and when its chat is released, which it doesn't retain")
    func ends() async throws {
        var configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = TinyServer()
        weak var kept: Chat?
        let loop: Task<Void, Never>
        do {
            let chat = Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
            kept = chat
            let (events, others) = (chat.events, chat.events)
            let cancelled = Task { for await _ in others {} }
            cancelled.cancel()
            await cancelled.value
            loop = Task { for await _ in events {} }
        }
        await loop.value
        #expect(kept == nil)
    }
}
