import Foundation
import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Synchronization
import Testing

@testable import RoostServer

/// The number that makes a lane's ids unique goes with its connection.
@Suite("Numbers of generators")
struct GeneratorNumberTests {
    /// A transaction of a connection with a number.
    private final class Numbered: WriteTransaction {
        private let base: any WriteTransaction
        let idGenerator: Int64

        init(_ base: any WriteTransaction, number: Int64) { (self.base, idGenerator) = (base, number) }

        var dialect: Dialect { base.dialect }
        var batchMemory: BatchMemory? { base.batchMemory }
        func each(_ sql: SQL, _ body: (inout RowReader) throws -> Void) throws { try base.each(sql, body) }
        func execute(_ sql: SQL) throws -> Int { try base.execute(sql) }
        func perform(_ sql: SQL) throws { try base.perform(sql) }
        func now() throws -> Timestamp { try base.now() }
        func attempt<T>(_ body: () throws -> T) throws -> T { try base.attempt(body) }
    }

    /// A database whose lane may have another connection with the next transaction, which nobody is told of.
    private final class Reconnecting: RoostDatabase.Database {
        private let base: SimulatedDatabase
        private let number = Atomic<Int64>(0)

        init(directory: URL) throws { base = try SimulatedDatabase(directory: directory) }

        func reconnect(as number: Int64) { self.number.store(number, ordering: .relaxed) }

        var laneCount: Int { base.laneCount }
        var readerCount: Int { base.readerCount }
        func write<T>(lane: Int, _ body: (any WriteTransaction) throws -> T) throws -> T {
            try base.write(lane: lane) { try body(Numbered($0, number: number.load(ordering: .relaxed))) }
        }
        func read<T>(_ body: (any Transaction) throws -> T) throws -> T { try base.read(body) }
        func now() -> Timestamp { base.now() }
    }

    @Test("I3 a lane with another connection makes its ids with that one's number, and goes on behind all that were made with it")
    func reconnected() throws {
        let directory = TemporaryPlace.make()
        defer { try? FileManager.default.removeItem(at: directory) }
        let database = try Reconnecting(directory: directory)
        let settings = BatchSettings(access: try AccessGate(database), presence: PresenceBoard())
        let made = Mutex<[Int64]>([])
        var ids: IDGenerator?
        for number in [3, 3, 47, 3] as [Int64] {
            database.reconnect(as: number)
            let job = Job(
                caller: Caller(user: "ann"), scope: .channel("general"),
                run: { context in
                    let id = context.ids.next(at: Timestamp(milliseconds: 1_800_000_000_000))
                    made.withLock { $0.append(id.rawValue) }
                    return []
                }, destination: .waiting { _ in })
            _ = WriteBatch.run([job], in: database, lane: 0, &ids, settings) { _ in }
        }
        let found = made.withLock { $0 }
        #expect(found.map { ($0 >> 12) & 1023 } == [3, 3, 47, 3])
        #expect(Set(found).count == 4 && found[1] > found[0] && found[3] > found[1])
    }
}
