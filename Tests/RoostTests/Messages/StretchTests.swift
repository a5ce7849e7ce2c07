import GRDB
import RoostAPI
import Testing

@testable import Roost

/// Messages cached apart from the newest ones.
@Suite("Sync: stretches of history")
struct StretchTests {
    /// A client with messages 98 and 99 of a channel that has one at each seq from 2 on.
    private func client() async throws -> Harness {
        var client = try await Harness()
        try await client.connect()
        try await client.answer("stream.resume", with: resumption([fresh(at: 99)]))
        _ = client.take()
        return client
    }

    private func fresh(at seq: Seq) -> Changes {
        RoostTests.fresh(
            messages: [message(seq - 1, "m\(seq - 1)"), message(seq, "m\(seq)")], counters: counters(seq, messages: Int(seq) - 1),
            membership: membership(readSeq: 40, readCount: 39))
    }

    private func resumption(_ channels: [Changes] = []) -> Resumption {
        Resumption(user: changes(user: 1), channels: channels, hasMore: false)
    }

    private func page(_ seqs: ClosedRange<Seq>, hasOlder: Bool = true, hasNewer: Bool = true, seq: Seq = 99) -> MessagePage {
        MessagePage(messages: seqs.map { message($0, "m\($0)") }, hasOlder: hasOlder, hasNewer: hasNewer, seq: seq)
    }

    private func texts(_ seqs: ClosedRange<Seq>) -> [String] { seqs.map { "m\($0)" } }

    private func position(of client: Harness) -> Position? { client.sync.saved.channels[Harness.channel] }

    @Test("I6 R08 a page far from the newest messages is a part of its own: neither is shown next to the other")
    func apart() async throws {
        var client = try await client()
        try await client.feed(.loadMessages(1, Harness.channel, .around(40), limit: 4))
        try await client.answer("message.list", with: page(39...42))
        #expect(client.take().contains(.reply(1, .success([]))))
        #expect(position(of: client)?.stretches == [39...42] && position(of: client)?.windowStart == 98)
        #expect(try await client.texts(at: 40) == texts(39...42))
        #expect(try await client.texts() == texts(98...99))
        #expect(try await client.view()?.lastMessage?.text == "m99")
        #expect(try await client.texts(at: 70) == ["lost"])
        // It survives a restart.
        let again = try await client.restarted()
        #expect(again.sync.saved == client.sync.saved)
    }

    @Test("I6 pages that touch are one part: a stretch grows on both sides, until it meets the newest messages")
    func joined() async throws {
        var client = try await client()
        try await client.feed(.loadMessages(1, Harness.channel, .aroundMessage(MessageID(rawValue: 40)), limit: 4))
        try await client.answer("message.list", with: page(39...42))
        try await client.feed(.loadMessages(2, Harness.channel, .older(than: 41), limit: 4))
        try await client.answer("message.list", with: page(35...38))
        #expect(position(of: client)?.stretches == [35...42])
        try await client.feed(.loadMessages(3, Harness.channel, .around(60), limit: 4))
        try await client.answer("message.list", with: page(59...62))
        #expect(position(of: client)?.stretches == [35...42, 59...62])
        // From one to the other, and on to the window.
        try await client.feed(.loadMessages(4, Harness.channel, .newer(than: 40), limit: 100))
        try await client.answer("message.list", with: page(43...70))
        #expect(position(of: client)?.stretches == [35...70])
        try await client.feed(.loadMessages(5, Harness.channel, .newer(than: 40), limit: 100))
        try await client.answer("message.list", with: page(71...99, hasNewer: false))
        #expect(position(of: client)?.stretches == [] && position(of: client)?.windowStart == 35)
        #expect(try await client.texts() == texts(35...99))
        try await client.feed(.loadMessages(6, Harness.channel, .newer(than: 40), limit: 100))
        #expect(client.calls.isEmpty)
        let again = try await client.restarted()
        #expect(again.sync.saved == client.sync.saved)
    }

    @Test(
        "I6 a stretch follows the stream: changes of its messages are stored, live and after an absence; of other messages, none are"
    )
    func follows() async throws {
        var client = try await client()
        try await client.feed(.loadMessages(1, Harness.channel, .around(40), limit: 4))
        try await client.answer("message.list", with: page(39...42))
        try await client.receive(edited(message(40, "m40, edited", changedAt: 100), messages: 98))
        try await client.receive(edited(message(70, "m70, edited", changedAt: 101), messages: 98))
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        try await client.connect()
        let purged = [PurgedMessage(seq: 42, changeSeq: 103, counts: true)]
        let missed = Rows(
            counters: counters(103, messages: 97), [message(41, "m41, edited", changedAt: 102)], purged)
        try await client.answer("stream.resume", with: resumption([changes(channel: 103, missed)]))
        #expect(try await client.texts(at: 40) == ["m39", "m40, edited", "m41, edited"])
        #expect(try await client.texts(at: 70) == ["lost"])
    }

    @Test("I6 a change that overtakes the page around its message isn't lost, whichever page it is")
    func overtaken() async throws {
        var client = try await client()
        try await client.feed(.loadMessages(1, Harness.channel, .around(40), limit: 4))
        try await client.feed(.loadMessages(2, Harness.channel, .around(60), limit: 4))
        try await client.receive(edited(message(61, "m61, edited", changedAt: 100), messages: 98))
        try await client.receive(
            Event(
                kind: .messageDeleted, stream: .channel(Harness.channel), seq: 101, actor: nil,
                rows: Rows(counters: counters(101, messages: 97), [PurgedMessage(seq: 40, changeSeq: 101, counts: true)])))
        try await client.answer("message.list", with: page(39...42))
        try await client.answer("message.list", with: page(59...62))
        #expect(try await client.texts(at: 41) == ["m39", "m41", "m42"])
        #expect(try await client.texts(at: 60) == ["m59", "m60", "m61, edited", "m62"])
    }

    @Test("I6 for a page ahead of the stream, messages that the stream has yet to deliver are left to it")
    func ahead() async throws {
        var client = try await client()
        try await client.feed(.loadMessages(1, Harness.channel, .around(97), limit: 8))
        try await client.answer("message.list", with: page(94...101, hasNewer: false, seq: 101))
        #expect(position(of: client) == Position(cursor: 99, windowStart: 94, messageCount: 98))
        #expect(try await client.texts() == texts(94...99))
        for seq: Seq in [100, 101] { try await client.receive(alone(message(seq, "m\(seq)"))) }
        #expect(try await client.texts() == texts(94...101))
    }

    @Test("I6 a channel that starts over drops its stretches, and an earlier page is requested again")
    func afresh() async throws {
        var client = try await client()
        try await client.feed(.loadMessages(1, Harness.channel, .around(40), limit: 4))
        try await client.answer("message.list", with: page(39...42))
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        try await client.connect()
        try await client.feed(.loadMessages(2, Harness.channel, .around(60), limit: 4))
        try await client.answer("stream.resume", with: resumption([fresh(at: 900)]))
        #expect(try await client.texts(at: 40) == ["lost"])
        #expect(position(of: client) == Position(cursor: 900, windowStart: 899, messageCount: 899))
        // Which changes it lacks is unknown.
        try await client.answer("message.list", with: page(59...62, seq: 99))
        #expect(try await client.texts(at: 60) == ["lost"])
        try await client.answer("message.list", with: page(59...62, seq: 900))
        #expect(try await client.texts(at: 60) == texts(59...62))
        #expect(client.take().filter { $0 == .reply(2, .success([])) }.count == 1)
    }

    @Test("I6 a page from beyond a hole has the channel fetched again first")
    func hole() async throws {
        var client = try await client()
        try await client.receive(sent(message(100, "secret"), messages: 99).concealing(messagesUpTo: .max))
        try await client.receive(sent(message(101, "secret"), messages: 100).concealing(messagesUpTo: .max))
        #expect(position(of: client)?.hasHole == true)
        try await client.feed(.loadMessages(1, Harness.channel, .around(101), limit: 2))
        try await client.answer("message.list", with: page(101...101, hasNewer: false, seq: 101))
        #expect(client.resumes == [[:]])
        try await client.answer("stream.resume", with: resumption([fresh(at: 101)]))
        #expect(position(of: client) == Position(cursor: 101, windowStart: 100, messageCount: 100))
        #expect(try await client.texts() == texts(100...101))
        let failed = client.take().contains { output in
            if case .reply(1, .failure(let error)) = output { error.code == .unavailable } else { false }
        }
        #expect(failed && client.sync.status == .online)
    }

    @Test("a channel keeps a bounded number of stretches: the one extended longest ago is dropped, with its messages")
    func bounded() async throws {
        var client = try await client()
        for place in 1...Seq(Position.stretchesMax) + 1 {
            try await client.feed(.loadMessages(place, Harness.channel, .around(place * 8), limit: 2))
            try await client.answer("message.list", with: page(place * 8...place * 8 + 1))
        }
        #expect(position(of: client)?.stretches == (2...9 as ClosedRange<Seq>).map { $0 * 8...($0 * 8 + 1) })
        #expect(try await client.texts(at: 8) == ["lost"])
        #expect(try await client.texts(at: 16) == texts(16...17))
        let count = try await client.store.read { try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM messages") }
        #expect(count == 2 * Position.stretchesMax + 2)
    }

    @Test("a stretch that a list shows stays, however many others arrive")
    func shown() async throws {
        var client = try await client()
        func load(_ places: ClosedRange<Seq>) async throws {
            for place in places {
                try await client.feed(.loadMessages(place, Harness.channel, .around(place * 8), limit: 2))
                try await client.answer("message.list", with: page(place * 8...place * 8 + 1))
            }
        }
        func firsts() -> [Seq]? { position(of: client)?.stretches.map(\.lowerBound) }
        try await load(1...8)
        try await client.feed(.showing([Harness.channel: [9]]))
        try await load(9...9)
        #expect(firsts() == [8, 24, 32, 40, 48, 56, 64, 72])
        #expect(try await client.texts(at: 8) == texts(8...9))
        #expect(try await client.texts(at: 16) == ["lost"])
        // If lists show all of them, all stay, together with an awaited one.
        try await client.feed(.showing([Harness.channel: [8, 24, 32, 40, 48, 56, 64, 72]]))
        try await load(10...10)
        #expect(firsts() == [8, 24, 32, 40, 48, 56, 64, 72, 80])
        // Excess stretches are dropped once they are no longer shown.
        try await client.feed(.showing([:]))
        try await load(2...2)
        #expect(firsts() == [32, 40, 48, 56, 64, 72, 80, 16])
        #expect(try await client.restarted().sync.saved == client.sync.saved)
    }

    @Test("I6 whatever the pages and their order, the parts are those of the fetched messages", arguments: 0..<20 as Range<UInt64>)
    func random(seed: UInt64) {
        var chance = SeededChance(seed: seed)
        var position = Position(cursor: 200, windowStart: 150)
        var held = Set(150...200 as ClosedRange<Seq>)
        for _ in 0..<60 {
            let first = Seq.random(in: 0...200, using: &chance)
            let page = first...min(200, first + Seq.random(in: 0...20, using: &chance))
            for range in position.insert(page) { held.subtract(range) }
            held.formUnion(page)
            #expect((0...200).filter(position.holds) == held.sorted(), "seed \(seed)")
            // No two parts touch: each is as large as possible.
            for seq in held where !held.contains(seq + 1) && seq < 200 {
                #expect(position.part(holding: seq)?.upperBound == seq, "seed \(seed)")
            }
            #expect(position.stretches.count <= Position.stretchesMax)
        }
    }
}
