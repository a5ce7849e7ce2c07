import RoostAPI
import Testing

@testable import Roost

@Suite("Sync: memberships, invitations, preferences")
struct MembershipTests {
    @Test("SB-26 R09 messages concealed by hiding are removed from the device, and don't return with a page or an edit")
    func concealed() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        let hidden = membership(
            readSeq: 3, readCount: 2, floor: 3, hidden: .hiddenAllowAutoUnhide, channelSeq: 3, userSeq: 2)
        try await client.receive(mine(2, .channelHidden, hidden))
        #expect(try await client.texts() == [])
        try await client.receive(edited(message(2, "one, edited", changedAt: 4), messages: 2))
        try await client.receive(sent(message(5, "three"), messages: 3))
        #expect(try await client.texts() == ["three"])
        let cached = try await client.window()
        #expect(!cached.hasOlder)
        #expect(try await client.view()?.hiddenState == .unhidden)
    }

    @Test("SB-14 messages from before a floor are left out when a resume sends a channel again")
    func floorOfFreshChannel() async throws {
        var client = try await Harness()
        try await client.connect()
        let page = fresh(
            messages: [message(8, "after")], counters: counters(8, messages: 6),
            membership: membership(readSeq: 8, readCount: 6, floor: 7, channelSeq: 8, userSeq: 1))
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [page], hasMore: false))
        let cached = try await client.window()
        #expect(cached.rows.map(\.item.message) == [message(8, "after")])
        #expect(!cached.hasOlder && !cached.hasOlderCached)
    }

    @Test("I8 SB-29 of two versions of a membership the one with the higher stamp holds, whatever it counts")
    func newerMembership() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.store.write([.membership(membership(readSeq: 3, readCount: 2, userSeq: 5))])
        try await client.store.write([
            .membership(membership(readSeq: 1, readCount: 0, hidden: .hiddenPreventAutoUnhide, userSeq: 4))
        ])
        #expect(try await client.view()?.membership == membership(readSeq: 3, readCount: 2, userSeq: 5))
        let again = membership(readSeq: 1, readCount: 1, hidden: .hiddenPreventAutoUnhide, channelSeq: 3, userSeq: 6)
        try await client.store.write([.membership(again)])
        #expect(try await client.view()?.membership == again)
    }

    @Test("SB-15 SB-16 R14 an invitation arrives with its channel, the higher revision wins, and others' don't affect the list")
    func invitations() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        var leadsTo = channel(counters(1, messages: 0))
        leadsTo = Channel(
            channelId: "private", type: .group, counters: leadsTo.counters,
            createdBy: "bob", createdAt: leadsTo.createdAt, updatedAt: leadsTo.createdAt)
        func event(_ seq: Seq, _ rows: Rows) -> Event {
            Event(kind: .invitationReceived, stream: .user(Harness.user), seq: seq, actor: "bob", rows: rows)
        }
        func waiting() async throws -> [String] {
            try await client.store.read {
                try $0.waitingInvitations().map { "\($0.invitation.revision) \($0.channel?.type.rawValue ?? "?")" }
            }
        }
        try await client.receive(event(2, Rows(channel: leadsTo, [invitation(revision: 3)])))
        #expect(try await waiting() == ["3 group"])
        try await client.receive(event(3, Rows([invitation(.withdrawn, revision: 2)])))
        #expect(try await waiting() == ["3 group"])
        try await client.receive(event(4, Rows([invitation(of: "cat", by: "ann", revision: 1)])))
        #expect(try await waiting() == ["3 group"])
        try await client.receive(event(5, Rows([invitation(.declined, revision: 4)])))
        #expect(try await waiting() == [])
        #expect(try await client.store.savedState().channels.keys.sorted() == [Harness.channel])
    }

    @Test("SB-18 R14 preferences arrive with the user's stream, and have their defaults until then")
    func preferences() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        #expect(try await client.store.read { try $0.preferences() } == Preferences(autoAcceptInvitations: true))
        try await client.receive(
            Event(
                kind: .preferencesUpdated, stream: .user(Harness.user), seq: 2, actor: "ann",
                rows: Rows([Preferences(autoAcceptInvitations: false)])))
        #expect(try await client.restarted().store.read { try $0.preferences() } == Preferences(autoAcceptInvitations: false))
    }

    @Test("AM-27 SB-25 a fetched channel is known here but not followed; a member's is left to its stream")
    func fetched() async throws {
        var client = try await Harness()
        try await client.connect()
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 0), channels: [], hasMore: false))
        try await client.feed(.call(1, GetChannel(channel: "community:general")))
        try await client.answer(
            "channel.get",
            with: ChannelView(
                channel: channel(counters(4, messages: 2)), membership: nil, ownCapabilities: [.channelRead, .memberJoin]))
        #expect(try await client.view()?.ownCapabilities == [.channelRead, .memberJoin])
        #expect(client.sync.saved.channels == [:])
        #expect(try await client.listed() == [])

        var member = try await Harness()
        try await member.connectWithChannel()
        try await member.receive(sent(message(4, "three"), messages: 3))
        try await member.feed(.call(1, GetChannel(channel: Harness.channel)))
        // It was read before the message.
        try await member.answer(
            "channel.get",
            with: ChannelView(
                channel: channel(counters(3, messages: 2)), membership: membership(readSeq: 1, readCount: 0), ownCapabilities: []))
        #expect(try await member.view()?.channel.counters == counters(4, messages: 3))
    }

    @Test(
        "a channel that is joined, or requested, during a catch-up is handed over once it is complete",
        arguments: EarlyAnswer.allCases)
    func early(answer: EarlyAnswer) async throws {
        var client = try await Harness()
        try await client.connect()
        let operations: [any Operation] = [JoinChannel(channel: Harness.channel), GetChannel(channel: Harness.channel)]
        let joined = membership(readSeq: 3, readCount: 2, userSeq: 1)
        for (token, operation) in operations.enumerated() { try await client.feed(.call(CallToken(token), operation)) }
        for operation in operations {
            try await client.answer(
                type(of: operation).name,
                with: ChannelView(channel: channel(counters(3, messages: 2)), membership: joined, ownCapabilities: [.messageSend]))
        }
        #expect(client.replied == [])
        switch answer {
        case .withIt:
            let page = Resumption(user: changes(user: 1), channels: [fresh(membership: joined)], hasMore: false)
            try await client.answer("stream.resume", with: page)
        case .withoutIt:
            // It was made before the user joined.
            let page = Resumption(user: changes(user: 0), channels: [], hasMore: false)
            try await client.answer("stream.resume", with: page)
        case .lost: try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        }
        #expect(client.replied == [0, 1])
        let view = try #require(try await client.view())
        #expect(view.channel == channel(counters(3, messages: 2)) && view.membership == joined)
        #expect(view.ownCapabilities == [.messageSend])
        #expect(try await client.listed() == [Harness.channel])
        #expect(client.sync.saved.channels.keys.sorted() == (answer == .lost ? [] : [Harness.channel]))
        // Later events are a separate matter.
        guard answer != .lost else { return }
        try await client.receive(sent(message(4, "three"), messages: 3))
        #expect(try await client.unread() == 1)
    }

    /// What follows the answer that contains a channel.
    enum EarlyAnswer: CaseIterable { case withIt, withoutIt, lost }

    @Test("a late answer to a join doesn't restore a membership that has ended since", arguments: [true, false])
    func lateAnswer(isCatchingUp: Bool) async throws {
        var client = try await Harness()
        try await client.connect()
        let nothing = Resumption(user: changes(user: 0), channels: [], hasMore: false)
        if !isCatchingUp { try await client.answer("stream.resume", with: nothing) }
        try await client.feed(.call(1, JoinChannel(channel: Harness.channel)))
        let whole = channel(counters(3, messages: 2))
        let joined = membership(readSeq: 3, readCount: 2, userSeq: 1)
        let removed = membership(readSeq: 3, readCount: 2, state: .none, userSeq: 2)
        try await client.receive(mine(1, .memberJoined, joined, channel: whole))
        try await client.receive(mine(2, .memberRemoved, removed))
        try await client.answer(
            "member.join", with: ChannelView(channel: whole, membership: joined, ownCapabilities: [.messageSend]))
        if isCatchingUp { try await client.answer("stream.resume", with: nothing) }
        #expect(client.replied == [1])
        #expect(client.sync.saved == SavedState(epoch: "first", role: .user, userCursor: 2))
        #expect(try await client.store.savedState() == client.sync.saved)
        #expect(try await client.listed() == [])
        let view = try #require(try await client.view())
        #expect(view.channel == whole && view.membership == removed && view.ownCapabilities == [])

        // Another join is another membership.
        let back = membership(readSeq: 3, readCount: 2, userSeq: 3)
        try await client.feed(.call(2, JoinChannel(channel: Harness.channel)))
        try await client.answer("member.join", with: ChannelView(channel: whole, membership: back))
        #expect(try await client.listed() == [Harness.channel])
    }

    @Test("a call that is cancelled while its answer waits for the catch-up is answered once")
    func cancelledEarly() async throws {
        var client = try await Harness()
        try await client.connect()
        try await client.feed(.call(1, JoinChannel(channel: Harness.channel)))
        let joined = membership(readSeq: 3, readCount: 2, userSeq: 1)
        try await client.answer("member.join", with: ChannelView(channel: channel(counters(3, messages: 2)), membership: joined))
        try await client.feed(.cancel(1))
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 0), channels: [], hasMore: false))
        let replies = client.take().filter { if case .reply = $0 { true } else { false } }
        #expect(replies == [.reply(1, .failure(RoostError(.notConnected, "The call was cancelled.")))])
    }

    @Test("SB-04 an ephemeral channel has nothing older to request")
    func ephemeral() async throws {
        var client = try await Harness()
        try await client.connect()
        var page = fresh(
            messages: [], counters: counters(9, messages: 7), membership: membership(readSeq: 9, readCount: 7, userSeq: 1))
        page.rows.channel?.isEphemeral = true
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [page], hasMore: false))
        #expect(client.sync.saved.channels == [Harness.channel: Position(cursor: 9, windowStart: 0)])
    }

    @Test("ST-01 R39 a watched channel is watched again after a reconnect, until it is unwatched, left or refused")
    func watching() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        for (token, channel) in [(1, "general"), (2, "a"), (3, "b")] as [(CallToken, ChannelID)] {
            try await client.feed(.call(token, WatchChannel(channel: channel)))
            try await client.answer("channel.watch", with: Done())
        }
        try await client.feed(.call(4, UnwatchChannel(channel: "b")))
        try await client.answer("channel.unwatch", with: Done())
        try await client.reconnect()
        #expect(client.calls.values.filter { $0 == "channel.watch" }.count == 2)
        try await client.refuse("channel.watch", with: .notFound("channel"))
        #expect(client.sync.watched == [Harness.channel])
        try await client.receive(
            mine(2, .memberLeft, membership(readSeq: 1, readCount: 0, state: .none, userSeq: 2)))
        #expect(client.sync.watched == [])
        try await client.reconnect()
        #expect(!client.calls.values.contains("channel.watch"))
    }

    @Test("ST-10 a channel that is unwatched before the server has answered isn't watched again after a reconnect")
    func unwatchedEarly() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.feed(.call(1, WatchChannel(channel: "public:a")))
        try await client.feed(.call(2, WatchChannel(channel: "b")))
        try await client.feed(.call(3, UnwatchChannel(channel: "a")))
        for _ in 0..<2 { try await client.answer("channel.watch", with: Done()) }
        try await client.answer("channel.unwatch", with: Done())
        #expect(client.sync.watched == ["b"])
        try await client.reconnect()
        #expect(client.calls.values.filter { $0 == "channel.watch" }.count == 1)
    }

    @Test("ST-10 R39 a channel that is unwatched without a connection isn't watched again by the next one")
    func unwatchedOffline() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        for (token, channel) in [(1, "general"), (2, "b")] as [(CallToken, ChannelID)] {
            try await client.feed(.call(token, WatchChannel(channel: channel)))
            try await client.answer("channel.watch", with: Done())
        }
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        client.forgetCalls()
        _ = client.take()
        try await client.feed(.call(3, UnwatchChannel(channel: "public:b")))
        #expect(client.replied == [3])
        #expect(client.sync.watched == [Harness.channel])
        try await client.reconnect()
        #expect(client.calls.values.filter { $0 == "channel.watch" }.count == 1)

        // The same holds until the next one has caught up.
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        client.forgetCalls()
        try await client.feed(.start)
        try await client.feed(.call(4, UnwatchChannel(channel: Harness.channel)))
        #expect(client.sync.watched == [])
        try await client.reconnect()
        #expect(!client.calls.values.contains("channel.watch"))
        #expect(!client.calls.values.contains("channel.unwatch"))
    }
}

extension Harness {
    /// The callers who got a result.
    fileprivate var replied: [CallToken] {
        outputs.compactMap { if case .reply(let token, .success) = $0 { token } else { nil } }
    }

    /// Loses the connection, and gets another one with nothing missed.
    fileprivate mutating func reconnect() async throws {
        try await feed(.transport(sync.connection, .closed(code: nil, reason: "")))
        forgetCalls()
        try await connect()
        try await answer(
            "stream.resume", with: Resumption(user: changes(user: sync.saved.userCursor), channels: [], hasMore: false))
    }
}
