#if Cluster
import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

@testable import RoostServer

/// Batches with one operation that needs a damaged page, or takes too long. Always on a real PostgreSQL server, whose answer
/// distinguishes these from other failures.
@Suite("Damaged pages of PostgreSQL, and statements that take too long")
struct DamagedPageTests {
    private let database: PostgreSQLDatabase
    private let settings: BatchSettings

    init() throws {
        database = try PostgreSQLDatabase(url: try PostgreSQLServer.shared.makeDatabase(), laneCount: 1)
        settings = BatchSettings(access: try AccessGate(database), presence: PresenceBoard())
    }

    /// Fails like a statement that meets a damaged page.
    private static let damage: SQL = """
        DO $$ BEGIN RAISE EXCEPTION 'invalid page in block 7' USING ERRCODE = 'data_corrupted'; END $$
        """

    /// Fails like a statement that takes longer than `statement_timeout`.
    private static let timeout: SQL = """
        DO $$ BEGIN RAISE EXCEPTION 'canceling statement due to statement timeout' USING ERRCODE = 'query_canceled'; END $$
        """

    /// Three operations that answer with their numbers. The second one, or those with the given numbers, runs the statement.
    private static func batch(
        writes: Bool, failing statement: SQL = Self.damage, in numbers: Set<Int> = [2], of count: Int = 3
    ) -> [Job] {
        (1...count).map { number in
            Job(
                .init(scope: .channel("general")), caller: Caller(user: "ann"),
                run: { context in
                    let name = "operation \(number)"
                    if writes { _ = try context.transaction.execute("INSERT INTO settings (name, value) VALUES (\(name), '')") }
                    if numbers.contains(number) { _ = try context.transaction.execute(statement) }
                    return Array("\(number)".utf8)
                }, destination: .waiting { _ in })
        }
    }

    /// The outcomes of operations: an answer, or the code of a refusal.
    private static func outcomes(of action: BatchAction) -> [String] {
        func name(_ outcome: JobOutcome) -> String {
            switch outcome.result {
            case .success(let answer): String(decoding: answer, as: UTF8.self)
            case .failure(let refusal): refusal.code.rawValue
            }
        }
        return switch action {
        case .committed(let entries): entries.map { name($0.outcome) }
        case .answered(_, let outcome): [name(outcome)]
        case .lost(let jobs, _, let refusal): jobs.map { _ in refusal.code.rawValue }
        default: []
        }
    }

    @Test("I1 I23 of a batch that writes, only the operation that needs the damaged page is refused; the others are stored")
    func writing() throws {
        var ids: IDGenerator?
        var outcomes: [String] = []
        _ = WriteBatch.run(Self.batch(writes: true), in: database, lane: 0, &ids, settings) { outcomes += Self.outcomes(of: $0) }
        #expect(outcomes == ["1", "internal_error", "3"])
        let sql: SQL = "SELECT name FROM settings WHERE name LIKE 'operation %' ORDER BY name"
        #expect(try database.read { try $0.rows(sql) { $0.string() } } == ["operation 1", "operation 3"])
    }

    @Test("I23 of a batch that reads, only the operation that needs the damaged page is refused; the others are answered")
    func reading() {
        var outcomes: [String] = []
        ReadBatch.run(Self.batch(writes: false), in: database, settings) { outcomes += Self.outcomes(of: $0) }
        #expect(outcomes == ["1", "internal_error", "3"])
    }

    @Test("I1 I23 of a batch that writes, only the operation that takes too long is refused; the others are stored")
    func writingTooLong() throws {
        var ids: IDGenerator?
        var outcomes: [String] = []
        let batch = Self.batch(writes: true, failing: Self.timeout)
        _ = WriteBatch.run(batch, in: database, lane: 0, &ids, settings) { outcomes += Self.outcomes(of: $0) }
        #expect(outcomes == ["1", "unavailable", "3"])
        let sql: SQL = "SELECT name FROM settings WHERE name LIKE 'operation %' ORDER BY name"
        #expect(try database.read { try $0.rows(sql) { $0.string() } } == ["operation 1", "operation 3"])
    }

    @Test(
        "I23 of a batch that reads, only the operation that takes too long is refused; from the third such one on, so is the rest")
    func readingTooLong() {
        func outcomes(_ numbers: Set<Int>) -> [String] {
            var outcomes: [String] = []
            let batch = Self.batch(writes: false, failing: Self.timeout, in: numbers, of: 6)
            ReadBatch.run(batch, in: database, settings) { outcomes += Self.outcomes(of: $0) }
            return outcomes
        }
        #expect(outcomes([2]) == ["1", "unavailable", "3", "4", "5", "6"])
        #expect(outcomes([1, 3, 5]) == ["unavailable", "2", "unavailable", "4", "unavailable", "unavailable"])
    }
}
#endif
