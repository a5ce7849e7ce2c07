import Foundation
import RoostAPI
import Testing

@testable import Roost

/// Messages sent while the user might not read: the window of cached messages never shows messages on both sides of them as adjacent.
@Suite("Sync: holes")
struct HoleTests {
    /// A client with messages 2 and 3, which then gets the positions of 4 and 5 without their messages.
    private func client() async throws -> Harness {
        var client = try await Harness()
        try await client.connectWithChannel()
        for seq: Seq in [4, 5] { try await client.receive(concealed(seq)) }
        _ = client.take()
        return client
    }

    private func concealed(_ seq: Seq) -> Event {
        sent(message(seq, "secret"), messages: Int(seq) - 1).concealing(messagesUpTo: .max)
    }

    /// The channel with the newest of its messages, as the answer to a resume that names no position of it.
    private func whole(to last: Seq) -> Changes {
        fresh(
            messages: (2...last).map { message($0, "m\($0)") }, counters: counters(last, messages: Int(last) - 1),
            membership: membership(readSeq: 1, readCount: 0))
    }

    private func resumption(_ channels: [Changes] = []) -> Resumption {
        Resumption(user: changes(user: 1), channels: channels, hasMore: false)
    }

    @Test("I6 cached messages stay while the user may not read, and the next message that arrives has the earlier ones fetched")
    func nextMessage() async throws {
        var client = try await client()
        #expect(try await client.texts() == ["one", "two"] && client.calls.isEmpty)
        #expect(try await client.store.savedState() == client.sync.saved)
        try await client.receive(sent(message(6, "m6"), messages: 5))
        #expect(client.resumes == [[:]])
        // Events meanwhile are applied afterwards.
        try await client.receive(sent(message(7, "m7"), messages: 6))
        try await client.answer("stream.resume", with: resumption([whole(to: 6)]))
        #expect(try await client.texts() == ["m2", "m3", "m4", "m5", "m6", "m7"])
        #expect(client.sync.status == .online)
        #expect(client.sync.saved.channels == [Harness.channel: Position(cursor: 7, windowStart: 0, messageCount: 6)])
        try await client.receive(sent(message(8, "m8"), messages: 7))
        #expect(try await client.texts().last == "m8" && client.calls.isEmpty)
    }

    @Test(
        "I5 a right that returns has the messages fetched at once, whether it is sent to the user or to all members",
        arguments: [true, false])
    func capabilities(isOwn: Bool) async throws {
        var client = try await client()
        if isOwn {
            var promoted = mine(2, .memberRoleChanged, membership(readSeq: 1, readCount: 0, role: .operator, userSeq: 2))
            promoted.rows.ownCapabilities = ["general": [.channelRead, .historyRead]]
            try await client.receive(promoted)
        } else {
            func opened(_ seq: Seq, _ permissions: [Permission]) -> Event {
                Event(
                    kind: .channelUpdated, stream: .channel(Harness.channel), seq: seq, actor: "bob",
                    rows: Rows(
                        channel: channel(counters(seq, messages: 4)),
                        capabilities: ["member": permissions, "owner": [.channelRead, .historyRead]]))
            }
            try await client.receive(opened(6, [.channelRead]))
            #expect(client.calls.isEmpty)
            try await client.receive(opened(7, [.channelRead, .historyRead]))
        }
        #expect(client.resumes == [[:]])
        var answer = whole(to: 5)
        if !isOwn { answer = fresh(messages: answer.rows.messages ?? [], counters: counters(7, messages: 4)) }
        try await client.answer("stream.resume", with: resumption([answer]))
        #expect(try await client.texts() == ["m2", "m3", "m4", "m5"] && client.calls.isEmpty)
    }

    /// A change of the channel's policy, with the permissions of each role.
    private func policy(_ seq: Seq, _ capabilities: [String: [Permission]]) -> Event {
        Event(
            kind: .channelUpdated, stream: .channel(Harness.channel), seq: seq, actor: "bob",
            rows: Rows(channel: channel(counters(seq, messages: 2)), capabilities: capabilities))
    }

    @Test(
        "I5 changes made while the user might not read are there as soon as they may again, though no message is missing",
        arguments: [false, true])
    func changedMeanwhile(isRestarted: Bool) async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.receive(policy(4, ["member": [.channelRead], "operator": [.channelRead, .historyRead]]))
        try await client.receive(edited(message(3, "edited", changedAt: 5), messages: 2).concealing(messagesUpTo: .max))
        // Another change that doesn't restore the right.
        try await client.receive(policy(6, ["member": [.channelRead], "operator": [.channelRead, .historyRead]]))
        #expect(try await client.texts() == ["one", "two"] && client.calls.isEmpty)
        #expect(try await client.store.savedState() == client.sync.saved)
        if isRestarted {
            client = try await client.restarted()
            try await client.connect()
            try await client.answer("stream.resume", with: resumption())
        }
        _ = client.take()
        try await client.receive(policy(7, ["member": [.channelRead, .historyRead]]))
        #expect(client.resumes == [[:]])
        let messages = [message(2, "one"), message(3, "edited", changedAt: 5)]
        try await client.answer(
            "stream.resume", with: resumption([fresh(messages: messages, counters: counters(7, messages: 2))]))
        #expect(try await client.texts() == ["one", "edited"] && client.calls.isEmpty)
        #expect(client.sync.saved.channels == [Harness.channel: Position(cursor: 7, windowStart: 0, messageCount: 2)])
    }

    @Test(
        "I5 a right that returns to the user's own role counts; after a restart it is requested", arguments: [false, true])
    func ofOwnRole(isRestarted: Bool) async throws {
        let own = membership(readSeq: 1, readCount: 0, role: .operator)
        var client = try await Harness()
        try await client.connect()
        try await client.answer("stream.resume", with: resumption([fresh(membership: own)]))
        try await client.receive(policy(4, ["member": [.channelRead], "operator": [.channelRead]]))
        if isRestarted {
            client = try await client.restarted()
            try await client.connect()
            try await client.answer("stream.resume", with: resumption())
        }
        _ = client.take()
        try await client.receive(policy(5, ["member": [.channelRead], "operator": [.channelRead, .historyRead]]))
        if isRestarted {
            #expect(client.resumes.isEmpty)
            let view = ChannelView(
                channel: channel(counters(5, messages: 2)), membership: own, ownCapabilities: [.channelRead, .historyRead])
            try await client.answer("channel.get", with: view)
        }
        #expect(client.resumes == [[:]])
        try await client.answer(
            "stream.resume", with: resumption([fresh(counters: counters(5, messages: 2), membership: own)]))
        #expect(client.sync.status == .online && client.calls.isEmpty)
        #expect(client.sync.saved.channels == [Harness.channel: Position(cursor: 5, windowStart: 0, messageCount: 2)])
    }

    @Test(
        "I5 a right to read that the user alone has lost, or never had, has missed messages fetched when it arrives",
        arguments: [false, true])
    func ownRight(isFresh: Bool) async throws {
        var client = try await Harness()
        if isFresh {
            try await client.connect()
            var unreadable = fresh(messages: [])
            unreadable.rows.ownCapabilities = ["general": [.channelRead]]
            try await client.answer("stream.resume", with: resumption([unreadable]))
        } else {
            try await client.connectWithChannel()
            var demoted = mine(2, .memberRoleChanged, membership(readSeq: 1, readCount: 0, userSeq: 2))
            demoted.rows.ownCapabilities = ["general": [.channelRead]]
            try await client.receive(demoted)
        }
        #expect(client.calls.isEmpty)
        #expect(try await client.store.savedState() == client.sync.saved)
        _ = client.take()
        var promoted = mine(3, .memberRoleChanged, membership(readSeq: 1, readCount: 0, role: .operator, userSeq: 3))
        promoted.rows.ownCapabilities = ["general": [.channelRead, .historyRead]]
        // Between the two the user's stream has no other event.
        if isFresh { promoted.seq = 2 }
        try await client.receive(promoted)
        #expect(client.resumes == [[:]])
        try await client.answer(
            "stream.resume", with: Resumption(user: changes(user: 3), channels: [fresh()], hasMore: false))
        #expect(try await client.texts() == ["one", "two"] && client.calls.isEmpty)
    }

    @Test("a user who scrolls into a permanent hole isn't disconnected, however often")
    func scrolling() async throws {
        var client = try await client()
        for number in 1...8 as ClosedRange<CallToken> {
            try await client.feed(.loadMessages(number, Harness.channel, .around(3), limit: 2))
            let page = MessagePage(messages: [message(3, "two"), message(4, "m4")], hasOlder: true, hasNewer: true, seq: 5)
            try await client.answer("message.list", with: page)
            try await client.answer("stream.resume", with: resumption())
            #expect(client.sync.status == .online && client.sync.phase == .online, "time \(number)")
        }
    }

    @Test("R39 a channel that is being fetched again still is after the connection ended before the answer")
    func lostAnswer() async throws {
        var client = try await client()
        try await client.receive(sent(message(6, "m6"), messages: 5))
        #expect(client.resumes == [[:]])
        _ = client.take()
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        client.forgetCalls()
        try await client.connect()
        #expect(client.resumes == [[:]])
        try await client.answer("stream.resume", with: resumption([whole(to: 6)]))
        #expect(try await client.texts() == ["m2", "m3", "m4", "m5", "m6"] && client.calls.isEmpty)
    }

    @Test("R39 a channel is fetched again over several pages, until one of them contains it")
    func laterPage() async throws {
        var client = try await client()
        try await client.receive(sent(message(6, "m6"), messages: 5))
        for seq: Seq in [2, 3] {
            #expect(client.resumes.last == [:])
            try await client.answer("stream.resume", with: Resumption(user: changes(user: seq), channels: [], hasMore: true))
        }
        #expect(client.resumes == [[:], [:], [:]])
        let page = Resumption(user: changes(user: 3), channels: [whole(to: 6)], hasMore: true)
        try await client.answer("stream.resume", with: page)
        // It has arrived: the rest is another channel's.
        #expect(client.resumes.last == ["general": 6])
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 4), channels: [], hasMore: false))
        #expect(try await client.texts() == ["m2", "m3", "m4", "m5", "m6"] && client.calls.isEmpty)
    }

    @Test("I6 a hole is known after a restart, and a resume with messages after it has the channel sent again")
    func restarted() async throws {
        var client = try await client().restarted()
        try await client.connect()
        let later = changes(channel: 6, Rows(counters: counters(6, messages: 5), [message(6, "m6")]))
        try await client.answer("stream.resume", with: resumption([later]))
        #expect(client.resumes == [["general": 5], [:]])
        #expect(try await client.texts() == ["one", "two"])
        try await client.answer("stream.resume", with: resumption([whole(to: 6)]))
        #expect(try await client.texts() == ["m2", "m3", "m4", "m5", "m6"])
        #expect(client.sync.status == .online && client.calls.isEmpty)
    }

    @Test("I6 a hole left by a resume is known, even one whose changes arrived on several pages")
    func resumedWithout() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        try await client.connect()
        let first = changes(
            channel: 5, Rows(counters: counters(8, messages: 6), [message(4, "m4"), message(5, "m5")]), hasMore: true)
        let second = changes(channel: 8, Rows(counters: counters(8, messages: 6)))
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [first], hasMore: true))
        #expect(client.sync.saved.channels[Harness.channel]?.hasHole == false)
        try await client.answer("stream.resume", with: resumption([second]))
        #expect(client.sync.saved.channels[Harness.channel]?.hasHole == true)
        #expect(try await client.texts() == ["one", "two", "m4", "m5"])
    }

    @Test(
        "I6 a message that was deleted for good leaves no hole, whichever page of changes reports it; a missing one does",
        arguments: [0, 1])
    func purgedBetweenPages(missing: Int) async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        try await client.connect()
        // Sent at 4 to 8. The one at 4 was deleted before the first page was made, and the one at 6 after it.
        let purged = [(4, 9), (6, 10)].map { PurgedMessage(seq: $0, changeSeq: $1, counts: true) }
        var first = Rows(counters: counters(9, messages: 6), [message(5, "m5"), message(6, "m6")])
        try await client.answer(
            "stream.resume",
            with: Resumption(user: changes(user: 1), channels: [changes(channel: 6, first, hasMore: true)], hasMore: true))
        first = Rows(counters: counters(10, messages: 5 + missing), [message(7, "m7"), message(8, "m8")])
        first.purged = purged
        try await client.answer("stream.resume", with: resumption([changes(channel: 10, first)]))
        let position = try #require(client.sync.saved.channels[Harness.channel])
        #expect(position.hasHole == (missing > 0) && position.messageCount == 5 + missing && position.pages == nil)
        #expect(try await client.texts() == ["one", "two", "m5", "m7", "m8"])
    }

    @Test("nothing is fetched again if nothing is missing: edits, members, own messages and pages of changes leave no hole")
    func noHole() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.receive(sent(message(4, "mine", by: "ann"), messages: 3))
        try await client.receive(edited(message(3, "edited", changedAt: 5), messages: 3).concealing(messagesUpTo: 3))
        try await client.receive(
            Event(
                kind: .memberJoined, stream: .channel(Harness.channel), seq: 6, actor: "cat",
                rows: Rows(counters: counters(6, messages: 3))))
        #expect(client.sync.saved.channels == [Harness.channel: Position(cursor: 6, windowStart: 0, messageCount: 3)])
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        try await client.connect()
        // A message that was changed after its creation is among both.
        let born = message(7, "born", changedAt: 8)
        let page = changes(channel: 8, Rows(counters: counters(8, messages: 4), [born, born]))
        try await client.answer("stream.resume", with: resumption([page]))
        #expect(client.sync.saved.channels == [Harness.channel: Position(cursor: 8, windowStart: 0, messageCount: 4)])
        #expect(client.calls.isEmpty)
    }

    @Test("R12 a refresh of a channel that no longer exists ends, and the channel is gone")
    func goneMeanwhile() async throws {
        var client = try await client()
        try await client.receive(sent(message(6, "m6"), messages: 5))
        let left = membership(readSeq: 1, readCount: 0, state: .none, userSeq: 2)
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 2, [left]), channels: [], hasMore: false))
        #expect(client.sync.status == .online && client.calls.isEmpty)
        #expect(client.sync.saved.channels == [:])
        #expect(try await client.texts() == [])
    }
}

extension Harness {
    /// The positions of channels that each resume named since the last ``take()``.
    var resumes: [[String: Seq]] {
        outputs.compactMap { output in
            guard case .sendBeforeStoring(let bytes) = output,
                let call = try? JSONDecoder().decode(ResumeCall.self, from: Data(bytes))
            else {
                return nil
            }
            return call.with.channels
        }
    }
}

private struct ResumeCall: Decodable {
    struct Fields: Decodable { var channels: [String: Seq] }
    var with: Fields
}
