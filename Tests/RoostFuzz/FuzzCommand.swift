import Foundation
import RoostFuzzing
import Synchronization

/// Fuzzes for some minutes: `roost-fuzz MINUTES [KIND…]`, as `make fuzz` does. `ROOST_SEED` repeats a run.
@main
struct FuzzCommand {
    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst()
        guard let minutes = Double(arguments.first ?? "1"), minutes > 0 else {
            say("usage: roost-fuzz MINUTES [\(FuzzKind.allCases.map(\.rawValue).joined(separator: "|"))…]")
            exit(64)
        }
        let chosen = arguments.dropFirst().compactMap(FuzzKind.init(rawValue:))
        let kinds = chosen.isEmpty ? FuzzKind.allCases : chosen
        let given = ProcessInfo.processInfo.environment["ROOST_SEED"].flatMap { UInt64($0) }
        let seed = given ?? UInt64.random(in: 1...UInt64(Int.max))
        let replayed = try FuzzRun.replayCorpus()
        say("seed \(seed), \(minutes) min; \(replayed) inputs of the corpus hold")

        let tally = Tally(seed: seed)
        let deadline = Date(timeIntervalSinceNow: minutes * 60)
        await withTaskGroup(of: Void.self) { group in
            for kind in kinds {
                group.addTask { await fuzz(kind, until: deadline, tally) }
            }
        }
        exit(tally.finish(kinds) == 0 ? 0 : 1)
    }

    private static func fuzz(_ kind: FuzzKind, until deadline: Date, _ tally: Tally) async {
        let run = FuzzRun(seed: tally.seed) { tally.willRun($0, $1) }
        var next = 0
        while Date() < deadline {
            let cases = next..<next + batchSize(kind)
            next = cases.upperBound
            do {
                if kind == .wire { try await run.runWire(cases) } else { try run.run(kind, cases) }
            } catch {
                tally.found(error, kind, cases)
            }
            tally.didRun(kind, cases.count)
            await Task.yield()
        }
    }

    /// How many cases of a kind make a batch of about a second.
    private static func batchSize(_ kind: FuzzKind) -> Int {
        switch kind {
        case .json, .packet, .message: 20_000
        case .connection: 5000
        case .operation: 1000
        case .wire: 2560
        }
    }

    static func say(_ text: String) { FileHandle.standardOutput.write(Data((text + "\n").utf8)) }
}

/// What was run and found, and where each kind is: in a file that outlives a crash.
final class Tally: Sendable {
    private struct State {
        var counts: [FuzzKind: Int] = [:]
        var current: [FuzzKind: Range<Int>] = [:]
        var findings = 0
    }

    let seed: UInt64
    private let state = Mutex(State())
    private let place = URL(filePath: ".build/roost-fuzz.place")

    init(seed: UInt64) {
        self.seed = seed
    }

    func willRun(_ kind: FuzzKind, _ cases: Range<Int>) {
        let lines = state.withLock { state in
            state.current[kind] = cases
            return state.current.map { "\($0.key.rawValue) \($0.value)\n" }.sorted()
        }
        try? Data("seed \(seed)\n\(lines.joined())".utf8).write(to: place)
    }

    func didRun(_ kind: FuzzKind, _ count: Int) { state.withLock { $0.counts[kind, default: 0] += count } }

    func found(_ error: any Error, _ kind: FuzzKind, _ cases: Range<Int>) {
        FuzzCommand.say("FOUND by \(kind.rawValue), seed \(seed), \(cases): \(error)")
        if let finding = error as? FuzzFinding { FuzzCommand.say("for Corpus/\(kind.rawValue).hex: \(finding.hex)") }
        state.withLock { $0.findings += 1 }
    }

    /// - Returns: how many were found.
    func finish(_ kinds: [FuzzKind]) -> Int {
        let state = state.withLock { $0 }
        for kind in kinds { FuzzCommand.say("\(kind.rawValue): \(state.counts[kind, default: 0])") }
        FuzzCommand.say("\(state.counts.values.reduce(0, +)) inputs, seed \(seed), \(state.findings) found")
        try? FileManager.default.removeItem(at: place)
        return state.findings
    }
}
