import RoostAPI
import Synchronization
import Testing

@testable import Roost

/// When the server is asked again how far others have read.
@MainActor @Suite("Reading: asking for receipts again", .timeLimit(.minutes(5)))
struct ReceiptRequestTests {
    private let clock = ManualClock()

    private func server(_ answer: @escaping @Sendable (Int) -> ScriptedServer.Answer) -> ScriptedServer {
        let asked = Turn()
        return ScriptedServer { call in
            call.operation == "reading.listReaders" ? answer(asked.next()) : .error(.notFound("operation"))
        }
    }

    private func requests(_ server: ScriptedServer) async -> Int {
        await server.operations().count { $0 == "reading.listReaders" }
    }

    private nonisolated static func page(_ seq: Seq) -> ScriptedServer.Answer {
        .result(Page(items: [ReadPosition(userId: "bob", readSeq: seq)]))
    }

    private func read(_ seq: Seq?, isWhole: Bool) -> Signal {
        Signal(
            kind: .readUpdated, channel: "general",
            read: ReadUpdate(readers: seq.map { [ReadPosition(userId: "bob", readSeq: $0)] } ?? [], isWhole: isWhole))
    }

    private func joined(memberCount: Int) -> Event {
        let cat = Member(
            userId: "cat", role: .member, state: .member, joinedAt: Timestamp(milliseconds: 0), joinedSeq: 4, changeSeq: 4)
        let counters = ChannelCounters(
            seq: 4, memberCount: memberCount, messageCount: 0, lastActivity: Timestamp(milliseconds: 4))
        return Event(
            kind: .memberJoined, stream: .channel("general"), seq: 4, actor: "cat", rows: Rows(counters: counters, [cat]))
    }

    @Test("SB-02 R08 after a join, receipts are requested again within seconds, and not at the moment of all others")
    func joins() async throws {
        let server = server { Self.page($0 == 0 ? 2 : 4) }
        let chat = try await server.connectedInGeneral(clock)
        let receipts = chat.channel("general").receipts()
        try await receipts.loaded()
        try await server.send(joined(memberCount: 3))
        try await until { clock.isSpreading }
        clock.advance(by: .milliseconds(499))
        await letOthersRun()
        #expect(await requests(server) == 1)
        clock.advance(by: .seconds(5))
        try await until { receipts.positions["bob"]?.readSeq == 4 }
        await chat.disconnect()
    }

    @Test(
        "SB-02 receipts of a channel that is too large are requested again after a change of members only if it is small enough then"
    )
    func tooLarge() async throws {
        for memberCount in [1001, 1000] {
            let refusal = RoostError(.featureDisabled, "It is too large.", limit: 1000)
            let server = server { _ in .error(refusal) }
            let clock = ManualClock()
            let chat = try await server.connectedInGeneral(clock)
            let receipts = chat.channel("general").receipts()
            try await until { receipts.phase == .refused(refusal) }
            try await server.send(joined(memberCount: memberCount))
            let store = try await chat.driver.files().store
            try await until { try await store.read { try $0.cursor(of: "general") } == 4 }
            if memberCount == 1000 { try await until { clock.isSpreading } }
            await letOthersRun()
            clock.advance(by: .seconds(6))
            if memberCount == 1000 { try await until { await requests(server) == 2 } }
            await letOthersRun()
            #expect(await requests(server) == (memberCount == 1000 ? 2 : 1))
            await chat.disconnect()
        }
    }

    @Test("SB-02 receipts are requested again if the channel became small enough before the refusal for its size arrived")
    func smallBeforeRefusal() async throws {
        let refusal = RoostError(.featureDisabled, "It is too large.", limit: 1000)
        let (gate, opening) = AsyncStream.makeStream(of: Void.self)
        let server = server { $0 == 0 ? .held(until: gate, .error(refusal)) : Self.page(4) }
        let chat = try await server.connectedInGeneral(clock)
        let receipts = chat.channel("general").receipts()
        try await until { await requests(server) == 1 }
        try await server.send(joined(memberCount: 1000))
        let store = try await chat.driver.files().store
        try await until { try await store.read { try $0.cursor(of: "general") } == 4 }
        try await until { clock.isSpreading }
        #expect(receipts.phase == .loading)
        opening.finish()
        try await until { receipts.phase == .refused(refusal) }
        clock.advance(by: .seconds(6))
        try await until { receipts.positions["bob"]?.readSeq == 4 }
        #expect(await requests(server) == 2)
        await chat.disconnect()
    }

    @Test(
        "SB-02 R08 after an incomplete signal, receipts are requested again within seconds, once, and not at the moment of all others"
    )
    func incomplete() async throws {
        let server = server { Self.page($0 == 0 ? 2 : 4) }
        let chat = try await server.connectedInGeneral(clock)
        let receipts = chat.channel("general").receipts()
        try await receipts.loaded()
        #expect(receipts.positions["bob"]?.readSeq == 2)
        for seq in [nil, 3] as [Seq?] { try await server.send(read(seq, isWhole: false)) }
        // A signal that is handled after the request is another reason to ask.
        try await until { receipts.positions["bob"]?.readSeq == 3 && clock.isSpreading }
        clock.advance(by: .milliseconds(499))
        await letOthersRun()
        #expect(await requests(server) == 1)
        clock.advance(by: .seconds(5))
        try await until { receipts.positions["bob"]?.readSeq == 4 }
        clock.advance(by: .seconds(5))
        await letOthersRun()
        #expect(await requests(server) == 2)
        await chat.disconnect()
    }

    @Test("SB-02 receipts that the channel doesn't have aren't requested again because of signals, but when a watch begins")
    func disabled() async throws {
        let refusal = RoostError(.featureDisabled, "It is too large.")
        let server = server { _ in .error(refusal) }
        let chat = try await server.connectedInGeneral(clock)
        let receipts = chat.channel("general").receipts()
        // One that arrives with the first request doesn't cause another either.
        try await server.send(read(1, isWhole: false))
        try await until { receipts.phase == .refused(refusal) }
        for _ in 0..<3 { try await server.send(read(2, isWhole: false)) }
        for seq in 3...150 { chat.driver.signals.send(.signal(read(Seq(seq), isWhole: true))) }
        await letOthersRun()
        clock.advance(by: .seconds(6))
        await letOthersRun()
        #expect(await requests(server) == 1)
        chat.driver.signals.send(.watching("general"))
        let end = Duration(clock.timestamp) + .milliseconds(250)
        try await until { clock.ends.contains(end) }
        clock.advance(by: .milliseconds(250))
        try await until { await requests(server) == 2 }
        await chat.disconnect()
    }

    @Test("SB-02 R08 a position that arrives while the server is asked isn't taken back by the older answer")
    func olderAnswer() async throws {
        let (gate, opening) = AsyncStream.makeStream(of: Void.self)
        let older = Page(items: [ReadPosition(userId: "bob", readSeq: 3), ReadPosition(userId: "cid", readSeq: 3)])
        let server = server { $0 == 0 ? Self.page(2) : .held(until: gate, .result(older)) }
        let chat = try await server.connectedInGeneral(clock)
        let receipts = chat.channel("general").receipts()
        try await receipts.loaded()
        chat.driver.signals.send(.watching("general"))
        try await until { clock.ends.contains(.milliseconds(250)) }
        clock.advance(by: .milliseconds(250))
        try await until { await requests(server) == 2 }
        try await server.send(read(5, isWhole: true))
        try await until { receipts.positions["bob"]?.readSeq == 5 }
        opening.finish()
        // Cid is only in the answer.
        try await until { receipts.positions["cid"]?.readSeq == 3 }
        #expect(receipts.positions["bob"]?.readSeq == 5)
        await chat.disconnect()
    }

    @Test("SB-02 R08 positions that arrived faster than they could be shown are requested")
    func missed() async throws {
        let server = server { Self.page($0 == 0 ? 2 : 500) }
        let chat = try await server.connectedInGeneral(clock)
        let receipts = chat.channel("general").receipts()
        try await receipts.loaded()
        // The main actor is busy meanwhile.
        for seq in 3...150 { chat.driver.signals.send(.signal(read(Seq(seq), isWhole: true))) }
        try await until { clock.ends.contains(.milliseconds(250)) }
        #expect(receipts.positions["bob"]?.readSeq == 150)
        clock.advance(by: .milliseconds(250))
        try await until { receipts.positions["bob"]?.readSeq == 500 }
        await chat.disconnect()
    }
}

extension ManualClock {
    /// Whether a task waits for a random moment, 0.5 to 5 seconds from now.
    var isSpreading: Bool {
        let now = Duration(timestamp)
        return ends.contains { (now + .milliseconds(500)..<now + .seconds(5)).contains($0) }
    }
}

extension Duration {
    /// The time since a clock's start.
    init(_ timestamp: Timestamp) { self = .milliseconds(timestamp.milliseconds) }
}
