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

    @Test(
        "I18 the answer to a request counts once, from its commit until the request lets go of it, even if nobody waits any longer")
    func counted() throws {
        let (server, user) = (ByteLedger(sizeBytesMax: 1 << 20), ByteLedger(sizeBytesMax: 1 << 20))
        let answers = Mutex<[HeldAnswer]>([])
        let take: @Sendable (Result<HeldAnswer, RoostError>) -> Void = { result in
            if case .success(let answer) = result { answers.withLock { $0.append(answer) } }
        }
        func commit(_ result: Result<[UInt8], RoostError>, _ memory: ByteLedger?) -> Committed {
            let job = Job(caller: Caller(user: "ann"), callerMemory: memory, run: { _ in [] }, destination: .request(take))
            return Committed(JobOutcome(result: result), of: job, countedIn: server)
        }
        func held() -> [Int] { [server.heldBytes, user.heldBytes] }
        let large = Result<[UInt8], RoostError>.success([UInt8](repeating: 7, count: 100_000))
        // Admins and services have no ledger, and count for the server.
        for memory in [user, nil] {
            let counted = [100_000, memory == nil ? 0 : 100_000]
            do {
                let committed = commit(large, memory)
                #expect(held() == counted)
                if case .waiting(let resume) = committed.answer { resume() }
                #expect(held() == counted)
            }
            let kept = answers.withLock { $0.map(\.bytes.count) }
            #expect(held() == counted && kept == [100_000])
            answers.withLock { $0 = [] }
            #expect(held() == [0, 0])
            _ = commit(large, memory)
            #expect(held() == [0, 0])
        }
        let refused = commit(.failure(.overloadedMemory), user)
        #expect(held() == [0, 0])
        withExtendedLifetime(refused) {}
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
