import RoostAPI
import Testing

@testable import Roost

@Suite("Sync: streams")
struct StreamTests {
    @Test("a fresh client has the channel, its newest messages and its unread count (AM-43)")
    func freshClient() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        #expect(client.sync.status == .online)
        #expect(try await client.texts() == ["one", "two"])
        #expect(try await client.unread() == 2)
        #expect(try await client.store.savedState() == client.sync.saved)
    }

    @Test("AM-13 a client that follows two channels whose ids are equal as texts resumes with one of them")
    func spellings() async throws {
        var client = try await Harness()
        let ids: [ChannelID] = ["\u{105c9}", "\u{105d2}\u{307}"]
        for id in ids { client.sync.saved.channels[id] = Position(cursor: 5, windowStart: 0) }
        client.sync.saved.epoch = "first"
        try await client.connect()
        #expect(client.sync.phase == .catchingUp)
        #expect(Set(client.sync.saved.channels.keys) == Set(ids))
    }

    /// A frame in which operators may send, as a newer server writes it for an audience that this version doesn't know.
    private func newer(_ frame: some Encodable) throws -> String {
        let known = String(decoding: try JSONWriter.bytes(of: frame), as: UTF8.self)
        let newer = known.replacing(#""send":"operators""#, with: #""send":"sponsors""#)
        try #require(newer != known)
        return newer
    }

    @Test("I21 a channel whose policy names an audience that this version doesn't know is listed, from a resume and from an event")
    func unknownAudience() async throws {
        let left = PolicyChanges(read: .everyone)
        var row = channel(counters(3, messages: 2))
        row.policy = left.merging(PolicyChanges(send: .operators))
        var client = try await Harness()
        try await client.connect()
        var whole = fresh()
        whole.rows.channel = row
        let number = try #require(client.calls.first { $0.value == "stream.resume" }?.key)
        let result = try newer(Resumption(user: changes(user: 1), channels: [whole], hasMore: false))
        try await client.receive(text: #"{"reply":\#(number),"result":\#(result)}"#)
        #expect(try await client.listed() == [Harness.channel])
        #expect(try await client.view()?.channel.policy == left)

        var other = try await Harness()
        try await other.connect()
        try await other.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [], hasMore: false))
        let joined = membership(readSeq: 1, readCount: 0, channelSeq: 3, userSeq: 2)
        try await other.receive(text: newer(mine(2, .memberJoined, joined, channel: row)))
        #expect(try await other.listed() == [Harness.channel])
        #expect(try await other.view()?.channel.policy == left)
        // It isn't taken for an ephemeral channel, whose messages aren't counted.
        #expect(other.sync.saved.channels[Harness.channel]?.messageCount == 2)
    }

    @Test("I21 a membership with a state that this version doesn't know moves the read position, and ends nothing")
    func unknownStates() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.receive(
            mine(2, .readingMarked, membership(readSeq: 3, readCount: 2, hidden: .unknown("later"), userSeq: 2)))
        #expect(try await client.unread() == 0)
        #expect(try await client.view()?.hiddenState == .unknown("later"))
        #expect(try await client.listed() == [Harness.channel])
        let resting = membership(readSeq: 3, readCount: 2, state: .unknown("resting"), userSeq: 3)
        try await client.receive(mine(3, .readingMarked, resting))
        #expect(try await client.view()?.membership == resting)
        #expect(try await client.texts() == ["one", "two"])
        #expect(client.sync.saved.channels[Harness.channel]?.cursor == 3)
    }

    @Test("an event that follows is stored with its position; a repetition changes nothing (I4)")
    func nextAndDuplicate() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        for _ in 0..<2 { try await client.receive(sent(message(4, "three"), messages: 3)) }
        #expect(try await client.texts() == ["one", "two", "three"])
        #expect(try await client.unread() == 3)
        #expect(
            try await client.store.savedState().channels == [Harness.channel: Position(cursor: 4, windowStart: 0, messageCount: 3)])
    }

    @Test("a message that is sent alone is stored and counted once (I4, I7)")
    func messageAlone() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        for _ in 0..<2 { try await client.receive(alone(message(4, "three"))) }
        try await client.receive(alone(message(5, "mine", by: "ann")))
        #expect(try await client.texts() == ["one", "two", "three", "mine"])
        #expect(try await client.unread() == 3)
        var counted = counters(5, messages: 4)
        counted.lastMessageAt = Timestamp(milliseconds: 5)
        #expect(try await client.view()?.channel.counters == counted)
        #expect(
            try await client.store.savedState().channels == [Harness.channel: Position(cursor: 5, windowStart: 0, messageCount: 4)])
    }

    @Test("a message that is sent alone isn't added to counters that include it")
    func messageAloneBehindCounters() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.store.write([.counters(Harness.channel, counters(5, messages: 4))])
        for seq: Seq in [4, 5] { try await client.receive(alone(message(seq, "m\(seq)"))) }
        #expect(try await client.view()?.channel.counters == counters(5, messages: 4))
        try await client.receive(alone(message(6, "m6")))
        #expect(try await client.view()?.channel.counters.messageCount == 5)
    }

    @Test("AM-43 a message of an unknown kind is shown and counts unless it is silent, and nothing is fetched again")
    func unknownKind() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        for (seq, isSilent) in [(4, false), (5, true)] as [(Seq, Bool)] {
            var poll = message(seq, "Tea or coffee?")
            (poll.content.kind, poll.content.pushOption) = (.unknown("poll"), .unknown("later"))
            poll.content.mentionees = [Mentionee(type: .unknown("team"), users: ["ann"])]
            poll.content.isSilent = isSilent
            try await client.receive(alone(poll))
            #expect(try await client.window().rows.last?.item.message == poll)
        }
        #expect(try await client.texts() == ["one", "two", "Tea or coffee?", "Tea or coffee?"])
        #expect(try await client.unread() == 3 && client.calls.isEmpty)
    }

    @Test("an unreadable message that is sent alone has its channel fetched again, so unread counts stay exact (I7)")
    func unreadableMessage() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        _ = client.take()
        try await client.receive(
            text: #"{"watching":false,"message":{"channelId":"general","seq":4,"sender":"bob","text":7}}"#)
        #expect(client.resumes == [[:]])
        let page = fresh(counters: counters(4, messages: 3))
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [page], hasMore: false))
        #expect(try await client.unread() == 3)
        #expect(client.sync.phase == .online)
        try await client.receive(alone(message(5, "five")))
        #expect(try await client.unread() == 4)
    }

    @Test("a user's own message is never unread, and counts once however often it arrives (I7)")
    func ownMessage() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        for _ in 0..<3 { try await client.receive(sent(message(4, "mine", by: "ann"), messages: 3)) }
        #expect(try await client.unread() == 2)
        try await client.receive(edited(message(4, "mine, edited", by: "ann", changedAt: 5), messages: 3))
        #expect(try await client.unread() == 2)
        #expect(try await client.texts() == ["one", "two", "mine, edited"])
    }

    @Test("a gap is fetched; events meanwhile wait and are applied in order (I3)")
    func gap() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.receive(sent(message(6, "five"), messages: 5))
        try await client.receive(sent(message(7, "six", by: "ann"), messages: 6))
        #expect(try await client.texts() == ["one", "two"])
        let missed = Rows(
            counters: counters(6, messages: 5), [message(4, "three"), message(5, "four"), message(6, "five")],
            [membership(readSeq: 1, readCount: 0)])
        try await client.answer(
            "stream.resume", with: Resumption(user: changes(user: 1), channels: [changes(channel: 6, missed)], hasMore: false))
        #expect(try await client.texts() == ["one", "two", "three", "four", "five", "six"])
        #expect(try await client.unread() == 5)
        #expect(client.sync.phase == .online)
    }

    @Test("a membership that waited with the messages it counts doesn't count them twice (I7)")
    func membershipAmongHeldEvents() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.receive(sent(message(5, "mine", by: "ann"), messages: 4))
        try await client.receive(mine(2, .readingMarked, membership(readSeq: 4, readCount: 4)))
        let missed = Rows(
            counters: counters(5, messages: 4), [message(4, "three"), message(5, "mine", by: "ann")],
            [membership(readSeq: 4, readCount: 4)])
        try await client.answer(
            "stream.resume", with: Resumption(user: changes(user: 2), channels: [changes(channel: 5, missed)], hasMore: false))
        #expect(try await client.unread() == 0)
    }

    @Test("a resume is requested page by page, with the positions of the previous page")
    func resumePaging() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        try await client.connect()
        _ = client.take()
        let first = changes(channel: 4, Rows(counters: counters(5, messages: 4), [message(4, "three")]), hasMore: true)
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [first], hasMore: true))
        #expect(client.sync.phase == .catchingUp)
        let asked = CallFrame(call: 3, with: Resume(after: 1, channels: ["general": 4]))
        #expect(client.take().contains(.sendBeforeStoring(try JSONWriter.bytes(of: asked))))
        let second = changes(channel: 5, Rows(counters: counters(5, messages: 4), [message(5, "four")]))
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [second], hasMore: false))
        #expect(try await client.texts() == ["one", "two", "three", "four"])
    }

    @Test("a resume that promises more and returns nothing ends the connection instead of asking forever")
    func resumeWithoutProgress() async throws {
        var client = try await Harness()
        try await client.connect()
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 0), channels: [], hasMore: true))
        #expect(client.sync.phase == .waiting)
    }

    @Test("a channel that is sent again loses its cached messages, and its window begins with the page")
    func freshAgain() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        try await client.connect()
        let page = fresh(
            messages: [message(900, "new"), message(901, "newest")], counters: counters(901, messages: 700),
            membership: membership(readSeq: 1, readCount: 0))
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [page], hasMore: false))
        #expect(try await client.texts() == ["new", "newest"])
        #expect(try await client.unread() == 700)
        #expect(client.sync.saved.channels == [Harness.channel: Position(cursor: 901, windowStart: 900, messageCount: 700)])
    }

    @Test("another epoch throws the cache away, and the outbox stays (I20)")
    func epoch() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        try await client.send("unsent", clientId: "c1")
        try await client.connect(epoch: "second")
        #expect(try await client.texts() == ["unsent…"])
        #expect(try await client.store.savedState() == SavedState(epoch: "second", role: .user))
    }

    @Test("I20 a read position isn't sent to another history, and is to the same one", arguments: ["first", "second"])
    func marksOfAnotherHistory(epoch: String) async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        try await client.enqueue(.unread(MarkUnread(channel: Harness.channel, seq: 2)))
        try await client.enqueue(.hide(HideChannel(channel: Harness.channel)))
        client.forgetCalls()
        try await client.connect(epoch: epoch)
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [], hasMore: false))
        let isSame = epoch == "first"
        #expect(client.calls.values.contains("reading.markUnread") == isSame)
        let isKept = try await client.outbox.items().contains { if case .unread = $0.operation { true } else { false } }
        #expect(isKept == isSame)
        #expect((client.sync.overlays[Harness.channel]?.unreadAfterSeq != nil) == isSame)
    }

    @Test("I20 unseen messages aren't concealed in another history: a reset is given up, and a channel is only hidden")
    func concealingInAnotherHistory() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        try await client.enqueue(.reset(ResetHistory(channel: Harness.channel)))
        try await client.enqueue(.hide(HideChannel(channel: Harness.channel, hidePreviousMessages: true)))
        #expect(
            try await client.outbox.items().map(\.operation) == [
                .reset(ResetHistory(channel: Harness.channel, upTo: 3)),
                .hide(HideChannel(channel: Harness.channel, hidePreviousMessages: true, upTo: 3)),
            ])
        client.forgetCalls()
        try await client.connect(epoch: "second")
        try await client.answer(
            "stream.resume", with: Resumption(user: changes(user: 1), channels: [fresh()], hasMore: false))
        #expect(client.calls.values.sorted() == ["channel.hide"])
        let items = try await client.outbox.items()
        #expect(items.map(\.operation) == [.hide(HideChannel(channel: Harness.channel))])
        #expect(items.map(\.concealedSeq) == [nil])
        #expect(try await client.texts() == ["one", "two"])
    }

    @Test("a channel joined on another device begins where it was joined, and leaving it takes it away (AM-41)")
    func joinedElsewhere() async throws {
        var client = try await Harness()
        try await client.connect()
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 0), channels: [], hasMore: false))
        let joined = channel(counters(9, messages: 5))
        // The join itself, as sent to members, arrives first and belongs to no channel of ours yet.
        try await client.receive(sent(message(9, "early"), messages: 5))
        try await client.receive(mine(1, .memberJoined, membership(readSeq: 9, readCount: 5), channel: joined))
        try await client.receive(sent(message(10, "hello"), messages: 6))
        #expect(try await client.texts() == ["hello"])
        #expect(try await client.unread() == 1)
        #expect(client.sync.saved.channels == [Harness.channel: Position(cursor: 10, windowStart: 10, messageCount: 6)])

        try await client.receive(mine(2, .memberLeft, membership(readSeq: 9, readCount: 5, state: .none)))
        #expect(try await client.texts() == [])
        #expect(try await client.listed() == [])
        #expect(try await client.store.savedState() == client.sync.saved)
    }

    @Test("a deleted channel leaves the list (AM-34)")
    func deleted() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        let deleted = channel(counters(4, messages: 2), deletedAt: Timestamp(milliseconds: 4))
        try await client.receive(
            Event(kind: .channelDeleted, stream: .channel(Harness.channel), seq: 4, actor: "bob", rows: Rows(channel: deleted)))
        #expect(try await client.listed() == [])
        #expect(try await client.texts() == ["one", "two"])
    }

    @Test("an unknown kind, an unreadable row and a nonsense frame never stop the stream")
    func poison() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.receive(text: "{\"event\": 7}")
        try await client.receive(text: "not JSON at all")
        try await client.receive(
            text: """
                {"watching":false,"event":"message.sung","stream":"channel:general","seq":4,"actor":"bob",
                 "rows":{"messages":[{"messageId":true}],"melody":[1,2]}}
                """)
        try await client.receive(sent(message(5, "after"), messages: 4))
        #expect(try await client.texts() == ["one", "two", "after"])
        #expect(client.sync.phase == .online)
    }

    @Test("an older answer doesn't move the read position back (I8)")
    func readPositionIsMonotone() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.receive(mine(2, .readingMarked, membership(readSeq: 3, readCount: 2)))
        try await client.store.write([.membership(membership(readSeq: 1, readCount: 0))])
        #expect(try await client.unread() == 0)
    }
}
