import Foundation
import RoostAPI
import RoostCore
import RoostDatabase
import Synchronization

/// A real database on a simulation's clock, whose next commit can be made to fail.
final class SimulatedDatabase: RoostDatabase.Database {
    /// Everything is written, and the process ends before the commit.
    struct ProcessEnded: Error {}

    private let base: SQLiteDatabase
    private let clock: Clock
    private let failure = Mutex<(any Error)?>(nil)

    /// The time of the server's machine.
    private final class Clock: Sendable {
        let milliseconds = Atomic<Int64>(0)
        var now: Timestamp { Timestamp(milliseconds: milliseconds.load(ordering: .relaxed)) }
    }

    init(directory: URL) throws {
        let clock = Clock()
        self.clock = clock
        base = try SQLiteDatabase(directory: directory, acceptsDataLoss: false, base: nil, checksMemory: true, clock: { clock.now })
    }

    func setClock(_ time: Timestamp) { clock.milliseconds.store(time.milliseconds, ordering: .relaxed) }

    /// The next transaction that writes fails after its last statement.
    func failNext(_ error: any Error) { failure.withLock { $0 = error } }

    var laneCount: Int { base.laneCount }
    var readerCount: Int { base.readerCount }

    func write<T>(lane: Int, _ body: (any WriteTransaction) throws -> T) throws -> T {
        try base.write(lane: lane) { transaction in
            let result = try body(transaction)
            if let error = failure.withLock({ $0.take() }) { throw error }
            return result
        }
    }

    func read<T>(_ body: (any Transaction) throws -> T) throws -> T { try base.read(body) }
    func now() -> Timestamp { base.now() }
}
