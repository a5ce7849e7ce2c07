import Foundation
import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Synchronization
import Testing

@testable import RoostServer

/// How much of a batch one user's answers may take. They are held until the commit.
@Suite("Answers of a batch")
struct BatchAnswersTests {
    @Test("I18 a user's large answers use up that user's budget, and no other user's operation is refused because of them")
    func share() throws {
        let directory = TemporaryPlace.make()
        defer { try? FileManager.default.removeItem(at: directory) }
        let database = try SimulatedDatabase(directory: directory)
        var settings = BatchSettings(access: try AccessGate(database), presence: PresenceBoard())
        settings.memory = ByteLedger(sizeBytesMax: 4 << 20)
        let memory = ByteLedger(sizeBytesMax: 1 << 20)
        func job(_ user: UserID, _ sizeBytes: Int, _ memory: ByteLedger?) -> Job {
            Job(
                .init(scope: .channel("general")), caller: Caller(user: user), callerMemory: memory,
                run: { _ in [UInt8](repeating: 7, count: sizeBytes) }, destination: .waiting { _ in })
        }
        // Answers to a sender are small, and still fit.
        let batch = (0..<64).map { _ in job("ann", 100_000, memory) } + [job("ben", 100, ByteLedger(sizeBytesMax: 1 << 20))]
        var ids: IDGenerator?
        var refusals: [RoostError?] = []
        var users = 0
        _ = WriteBatch.run(batch, in: database, lane: 0, &ids, settings) { action in
            switch action {
            case .committed(let entries): refusals = entries.map(\.outcome.refusal)
            case .exceededMemory(_, let isUsers): users += isUsers ? 1 : 0
            default: break
            }
        }
        #expect(refusals.count == 65 && refusals.last == .some(nil))
        #expect(refusals.filter { $0 == nil }.count == 12 && users == 53)
        #expect(refusals.compactMap { $0 }.allSatisfy { $0.code == .overloaded && $0.retryAfterMilliseconds != nil })
    }

    /// A database of its own for each batch that runs at the same time.
    private final class Lane: Sendable {
        let database: SimulatedDatabase
        let settings: BatchSettings
        private let directory: URL

        init(_ memory: ByteLedger?) throws {
            directory = TemporaryPlace.make()
            database = try SimulatedDatabase(directory: directory)
            var settings = BatchSettings(access: try AccessGate(database), presence: PresenceBoard())
            settings.memory = memory
            self.settings = settings
        }

        deinit { try? FileManager.default.removeItem(at: directory) }

        /// Runs a batch as the engine does: what is committed is answered.
        ///
        /// - Parameter answered: Called when all of it is answered, while the batch is still kept.
        func run(_ batch: [Job], _ look: (BatchAction) -> Void = { _ in }, answered: () -> Void = {}) {
            var ids: IDGenerator?
            _ = WriteBatch.run(batch, in: database, lane: 0, &ids, settings) { action in
                look(action)
                guard case .committed(let entries) = action else { return }
                for (job, outcome) in entries {
                    if case .waiting(let resume) = Committed(outcome, of: job).answer { resume() }
                }
                answered()
            }
        }
    }

    /// The answers that requests have, and their refusals.
    private final class Requests: Sendable {
        private let results = Mutex<[Result<HeldAnswer, RoostError>]>([])
        var answerCount: Int { results.withLock { $0.count { $0.refusal == nil } } }
        var refusals: [String] { results.withLock { $0.compactMap(\.refusal?.message) } }
        func letGo() { results.withLock { $0 = [] } }

        func job(
            _ memory: ByteLedger?, ownSizeBytes: Int = 0, run: @escaping @Sendable (inout Context) throws -> [UInt8]
        ) -> Job {
            Job(
                .init(scope: .channel("general")), caller: Caller(user: "ann"), callerMemory: memory,
                found: Job.Found(requestSizeBytes: ownSizeBytes), run: run,
                destination: .request { [self] result in results.withLock { $0.append(result) } })
        }
    }

    private static let large = [UInt8](repeating: 7, count: 100_000)

    @Test(
        "I18 the answer to a request counts once, from when it is made until the request lets go of it, even if nobody waits any longer"
    )
    func counted() throws {
        let (server, user) = (ByteLedger(sizeBytesMax: 1 << 20), ByteLedger(sizeBytesMax: 1 << 20))
        let (lane, requests) = (try Lane(server), Requests())
        func held() -> [Int] { [server.heldBytes, user.heldBytes] }
        // Admins and services have no ledger, and count for the server.
        for memory in [user, nil] {
            let counted = [100_000, memory == nil ? 0 : 100_000]
            let look: @Sendable (inout Context) throws -> [UInt8] = { _ in
                #expect([server.heldBytes, user.heldBytes] == counted)
                return []
            }
            // It counts before its commit, and after it.
            lane.run([requests.job(memory) { _ in Self.large }, requests.job(memory, run: look)]) { action in
                if case .committed = action { #expect(held() == counted) }
            }
            #expect(held() == counted && requests.answerCount == 2)
            requests.letGo()
            #expect(held() == [0, 0])
        }
    }

    @Test("I18 an answer no longer counts once its request has let go of it, even while its batch is still being delivered")
    func letGo() throws {
        let (server, user) = (ByteLedger(sizeBytesMax: 1 << 20), ByteLedger(sizeBytesMax: 1 << 20))
        let (lane, requests) = (try Lane(server), Requests())
        var held: [Int] = []
        let batch = (0..<2).map { _ in requests.job(user) { _ in Self.large } }
        lane.run(
            batch,
            answered: {
                held += [server.heldBytes, user.heldBytes]
                requests.letGo()
                held += [server.heldBytes, user.heldBytes]
            })
        #expect(held == [200_000, 200_000, 0, 0])
    }

    @Test("I18 the answer to a request that isn't stored after all no longer counts")
    func rolledBack() throws {
        let (server, user) = (ByteLedger(sizeBytesMax: 1 << 20), ByteLedger(sizeBytesMax: 1 << 20))
        let (lane, requests) = (try Lane(server), Requests())
        var lost = 0
        lane.database.failNext(DatabaseFailure(message: "The disk is full.", kind: .transaction))
        lane.run([requests.job(user) { _ in Self.large }]) { action in
            if case .lost(let jobs, _, _) = action { lost += jobs.count }
        }
        #expect(lost == 1 && server.heldBytes == 0 && user.heldBytes == 0)
        // The others of a batch run again alone, and count once.
        lane.run([
            requests.job(user) { _ in Self.large },
            requests.job(user) { _ in throw DatabaseFailure(message: "It took too long.", kind: .cancelled) },
        ])
        #expect(requests.answerCount == 1 && server.heldBytes == 100_000 && user.heldBytes == 100_000)
    }

    @Test(
        "I18 a request isn't run while its user's budget is used up, even as the first of its batch, but not by what it holds itself"
    )
    func usedUp() throws {
        let user = ByteLedger(sizeBytesMax: 1 << 20)
        let (lane, requests) = (try Lane(ByteLedger(sizeBytesMax: 4 << 20)), Requests())
        let others = HeldBytes(1 << 20, in: [user])
        var users = 0
        lane.run([requests.job(user) { _ in Self.large }]) { action in
            if case .exceededMemory(_, let isUsers) = action { users += isUsers ? 1 : 0 }
        }
        #expect(requests.refusals == [RoostError.overloadedMemoryOfUser.message])
        #expect(requests.answerCount == 0 && users == 1 && RoostError.overloadedMemoryOfUser.code == .overloaded)
        lane.run([requests.job(user, ownSizeBytes: 1 << 20) { _ in Self.large }])
        #expect(requests.answerCount == 1)
        withExtendedLifetime(others) {}
    }

    @Test(
        "I18 batches that run at the same time have together no more answers to a user's requests than fit into that user's budget")
    func lanes() throws {
        let (server, user) = (ByteLedger(sizeBytesMax: 4 << 20), ByteLedger(sizeBytesMax: 1 << 20))
        let (first, second, requests) = (try Lane(server), try Lane(server), Requests())
        func batch(_ count: Int) -> [Job] { (0..<count).map { _ in requests.job(user) { _ in Self.large } } }
        let inner = batch(10)
        let during = requests.job(user) { _ in
            second.run(inner)
            return []
        }
        first.run(batch(4) + [during] + batch(6))
        // The one in between has an empty answer.
        #expect(requests.answerCount == 11 + 1 && requests.refusals.count == 9)
        #expect(user.heldBytes == 1_100_000 && server.heldBytes == 1_100_000)
        requests.letGo()
        #expect(user.heldBytes == 0 && server.heldBytes == 0)
    }

    @Test("a failure is noted once, though the engine rolls back what was written before it and runs the batch again")
    func noted() throws {
        struct Fault: Error {}
        let directory = TemporaryPlace.make()
        defer { try? FileManager.default.removeItem(at: directory) }
        let database = try SimulatedDatabase(directory: directory)
        let settings = BatchSettings(access: try AccessGate(database), presence: PresenceBoard())
        var runs = 0
        let counts = Mutex(0)
        let batch = [true, false].map { fails in
            Job(
                .init(scope: .channel("general")), caller: Caller(user: "ann"),
                run: { context in
                    counts.withLock { $0 += 1 }
                    _ = try context.transaction.execute("INSERT INTO settings (name, value) VALUES (\("\(fails)"), '')")
                    if fails { throw Fault() }
                    return []
                }, destination: .waiting { _ in })
        }
        var ids: IDGenerator?
        var failures = 0
        _ = WriteBatch.run(batch, in: database, lane: 0, &ids, settings) { action in
            if case .failed = action { failures += 1 }
        }
        runs = counts.withLock { $0 }
        #expect(failures == 1 && runs > 2, "\(failures) of \(runs)")
        #expect(
            try database.read { try $0.rows("SELECT name FROM settings WHERE name IN ('true', 'false')") { $0.string() } } == [
                "false"
            ])
    }
}

extension Result where Failure == RoostError {
    fileprivate var refusal: RoostError? { if case .failure(let refusal) = self { refusal } else { nil } }
}
