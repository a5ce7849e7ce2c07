import Foundation
import RoostFuzzing
import Testing

/// A few thousand inputs of each kind, from a new seed each time: `make fuzz` makes millions.
@Suite struct FuzzTests {
    /// `ROOST_SEED` repeats a run.
    private static let seed =
        UInt64(ProcessInfo.processInfo.environment["ROOST_SEED"] ?? "") ?? UInt64.random(in: 1...UInt64(Int.max))

    @Test("I21 inputs that once did harm, and inputs around each change of protocol, do none")
    func corpus() throws {
        #expect(try FuzzRun.replayCorpus() > 0)
    }

    @Test(
        "I21 no input ends the process or is answered with internal_error",
        arguments: [
            (FuzzKind.json, 3000), (.message, 1500), (.connection, 1500), (.packet, 3000), (.presence, 3000), (.news, 3000),
            (.operation, 300),
        ])
    func holds(_ kind: FuzzKind, _ count: Int) throws {
        do {
            try FuzzRun(seed: Self.seed).run(kind, 0..<count)
        } catch let finding as FuzzFinding {
            Issue.record("ROOST_SEED=\(Self.seed), \(kind.rawValue): \(finding)")
        }
    }

    @Test("I21 a server survives any input")
    func wire() async throws {
        do {
            try await FuzzRun(seed: Self.seed).runWire(0..<512)
        } catch let finding as FuzzFinding {
            Issue.record("ROOST_SEED=\(Self.seed), wire: \(finding)")
        }
    }
}
