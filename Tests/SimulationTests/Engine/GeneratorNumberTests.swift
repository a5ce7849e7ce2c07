import Foundation
import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Synchronization
import Testing

@testable import RoostServer

/// The number that makes a lane's ids unique belongs to its connection.
@Suite("Numbers of generators")
struct GeneratorNumberTests {
    /// A transaction of a connection with a number.
    private final class Numbered: WriteTransaction {
        private let base: any WriteTransaction
        let idGenerator: IDGenerator.Number

        init(_ base: any WriteTransaction, number: IDGenerator.Number) { (self.base, idGenerator) = (base, number) }

        var dialect: Dialect { base.dialect }
        var batchMemory: BatchMemory? { base.batchMemory }
        func each(_ sql: SQL, _ body: (inout RowReader) throws -> Void) throws { try base.each(sql, body) }
        func execute(_ sql: SQL) throws -> Int { try base.execute(sql) }
        func perform(_ sql: SQL) throws { try base.perform(sql) }
        func now() throws -> Timestamp { try base.now() }
        func attempt<T>(_ body: () throws -> T) throws -> T { try base.attempt(body) }
    }

    /// A database whose lane may have another connection in the next transaction, without notice.
    private final class Reconnecting: RoostDatabase.Database {
        private let base: SimulatedDatabase
        private let number = Mutex(IDGenerator.Number(0))

        init(directory: URL) throws { base = try SimulatedDatabase(directory: directory) }

        func reconnect(as number: IDGenerator.Number) { self.number.withLock { $0 = number } }

        var laneCount: Int { base.laneCount }
        var readerCount: Int { base.readerCount }
        func write<T>(lane: Int, _ body: (any WriteTransaction) throws -> T) throws -> T {
            try base.write(lane: lane) { try body(Numbered($0, number: number.withLock { $0 })) }
        }
        func read<T>(_ body: (any Transaction) throws -> T) throws -> T { try base.read(body) }
        func now() -> Timestamp { base.now() }
    }

    /// A database, and lanes that make ids in it.
    private final class Lanes {
        let database: Reconnecting
        private let settings: BatchSettings
        private let directory = TemporaryPlace.make()

        init() throws {
            database = try Reconnecting(directory: directory)
            settings = BatchSettings(access: try AccessGate(database), presence: PresenceBoard())
        }

        deinit { try? FileManager.default.removeItem(at: directory) }

        /// Makes an id over a lane's connection.
        func makeID(_ ids: inout IDGenerator?, as number: IDGenerator.Number) throws -> Int64 {
            let made = Mutex<Int64?>(nil)
            database.reconnect(as: number)
            let job = Job(
                .init(scope: .channel("general")), caller: Caller(user: "ann"),
                run: { context in
                    let id = context.ids.next(at: Timestamp(milliseconds: 1_800_000_000_000))
                    made.withLock { $0 = id.rawValue }
                    return []
                }, destination: .waiting { _ in })
            _ = WriteBatch.run([job], in: database, lane: 0, &ids, settings) { _ in }
            return try #require(made.withLock { $0 })
        }
    }

    @Test("I3 a lane with another connection makes its ids with that one's number, after all that were made with it")
    func reconnected() throws {
        let lanes = try Lanes()
        var ids: IDGenerator?
        let numbers = [(3, 1), (3, 1), (47, 2), (3, 3)] as [(Int64, Int64)]
        let found = try numbers.map { try lanes.makeID(&ids, as: IDGenerator.Number($0.0, session: $0.1)) }
        #expect(found.map { ($0 >> 12) & 1023 } == [3, 3, 47, 3])
        #expect(Set(found).count == 4 && found[1] > found[0] && found[3] > found[1])
    }

    @Test("I3 a lane whose next connection has the same number continues after the ids that others made with it in between")
    func reconnectedAlike() throws {
        let lanes = try Lanes()
        var (mine, others): (IDGenerator?, IDGenerator?)
        let before = try lanes.makeID(&mine, as: IDGenerator.Number(3, session: 1))
        let between = try (0..<5).map { _ in try lanes.makeID(&others, as: IDGenerator.Number(3, session: 2)) }
        let after = try (0..<5).map { _ in try lanes.makeID(&mine, as: IDGenerator.Number(3, session: 3)) }
        let all = [before] + between + after
        #expect(Set(all).count == all.count && all == all.sorted())
    }
}
