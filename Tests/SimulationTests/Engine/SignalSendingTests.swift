import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Synchronization
import Testing

@testable import RoostServer

/// What happens to signals when some can't be sent.
@Suite("Sending signals")
struct SignalSendingTests {
    /// Runs the queued jobs, as the engine's thread for them does. Returns their notices.
    private func run(_ queue: WorkQueue, in database: any RoostDatabase.Database) throws -> [Notice] {
        let settings = BatchSettings(access: try AccessGate(database), presence: PresenceBoard())
        func answer(_ job: Job, _ result: Result<[UInt8], RoostError>) {
            if case .waiting(let done) = job.destination { done(result) }
        }
        var sent: [Notice] = []
        while let batch = queue.next(within: .zero), !batch.isEmpty {
            ReadBatch.run(batch, in: database, settings) { action in
                switch action {
                case .answered(let job, let outcome):
                    sent += outcome.notices
                    answer(job, outcome.result)
                case .lost(let jobs, _, let refusal): for job in jobs { answer(job, .failure(refusal)) }
                default: break
                }
            }
        }
        return sent
    }

    @Test("R26 signals of a channel with unreadable rows are dropped, and no others")
    func damaged() throws {
        let world = try CoreWorld()
        for channel in ["broken", "first", "last"] as [ChannelID] { try world.channel(channel, owner: "ann") }
        try world.execute("UPDATE channels SET type = 'nothing of the kind' WHERE channel_id = 'broken'")
        let queue = WorkQueue(sizeMax: 100, batchSizeMax: 16)
        let failed = Mutex<[ChannelID]>([])
        let signals = (["first", "broken", "last"] as [ChannelID]).map {
            Signal(kind: .typingChanged, channel: $0, typing: TypingUsers(users: ["ann"], hasMore: false))
        }
        Engine.send(signals, through: queue) { again in failed.withLock { $0 += again.map(\.channel) } }
        let sent: [ChannelID] = try run(queue, in: world.database).compactMap { notice in
            if case .signal(let signal, _) = notice { signal.channel } else { nil }
        }
        #expect(Set(sent) == ["first", "last"])
        #expect(failed.withLock { $0 } == [])

        // If the server is overloaded, all of them are to be sent again.
        Engine.send(signals, through: WorkQueue(sizeMax: 0, batchSizeMax: 16)) { again in
            failed.withLock { $0 += again.map(\.channel) }
        }
        #expect(failed.withLock { $0 } == ["first", "broken", "last"])
    }

    @Test("SB-61 R26 a user with unreadable rows doesn't hold back the others' new names, and isn't looked up again")
    func damagedUser() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["broken", "cid"])
        let queue = WorkQueue(sizeMax: 100, batchSizeMax: 16)
        let counts = Mutex<[Int]>([])
        Engine.findViewers(of: ["ann", "broken", "cid"], through: queue) { count in counts.withLock { $0.append(count) } }
        let sent: [UserID] = try run(queue, in: Damaged(base: world.database, id: "broken")).compactMap { notice in
            if case .profileShown(let user, _) = notice { user.userId } else { nil }
        }
        #expect(sent == ["ann", "cid"])
        #expect(counts.withLock { $0 } == [3])

        // If the server is overloaded, all of them are looked up again.
        let full = WorkQueue(sizeMax: 0, batchSizeMax: 16)
        Engine.findViewers(of: ["ann", "cid"], through: full) { count in counts.withLock { $0.append(count) } }
        #expect(counts.withLock { $0 } == [3, 0])
    }
}

/// A database with a damaged page that every query for one id needs.
private struct Damaged: RoostDatabase.Database {
    let base: any RoostDatabase.Database
    let id: String

    private final class Reading: Transaction {
        private let base: any Transaction
        private let id: String

        init(_ base: any Transaction, id: String) { (self.base, self.id) = (base, id) }

        var dialect: Dialect { base.dialect }
        func execute(_ sql: SQL) throws -> Int { try base.execute(sql) }
        func perform(_ sql: SQL) throws { try base.perform(sql) }
        func each(_ sql: SQL, _ body: (inout RowReader) throws -> Void) throws {
            guard !sql.values.contains(.text(id)) else { throw DatabaseFailure(message: "A page is damaged.", kind: .damage) }
            try base.each(sql, body)
        }
    }

    var laneCount: Int { base.laneCount }
    var readerCount: Int { base.readerCount }
    func write<T>(lane: Int, _ body: (any WriteTransaction) throws -> T) throws -> T { try base.write(lane: lane, body) }
    func read<T>(_ body: (any Transaction) throws -> T) throws -> T { try base.read { try body(Reading($0, id: id)) } }
    func now() -> Timestamp { base.now() }
}
