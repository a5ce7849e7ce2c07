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
        say("seed \(seed), \(minutes) min; \(replayed) inputs of the corpus pass")

        let tally = Tally(seed: seed)
        let deadline = Date(timeIntervalSinceNow: minutes * 60)
        let progress = Task {
            while (try? await Task.sleep(for: .seconds(60))) != nil { say(tally.describe()) }
        }
        defer { progress.cancel() }
        await withTaskGroup(of: Void.self) { group in
            for kind in kinds {
                group.addTask {
                    if kind == .wire {
                        await fuzzWire(until: deadline, tally)
                    } else {
                        await fuzzOnThread(kind, until: deadline, tally)
                    }
                }
            }
        }
        exit(tally.finish(kinds) == 0 ? 0 : 1)
    }

    /// A kind that never waits has its own thread: on the few threads for tasks it would keep the server of the kind `wire` from
    /// answering, and be kept waiting by it.
    private static func fuzzOnThread(_ kind: FuzzKind, until deadline: Date, _ tally: Tally) async {
        await withCheckedContinuation { continuation in
            let thread = Thread {
                let run = FuzzRun(seed: tally.seed) { tally.willRun($0, $1) }
                var next = 0
                while Date() < deadline {
                    let cases = next..<next + batchSize(kind)
                    next = cases.upperBound
                    do {
                        try run.run(kind, cases)
                        tally.didRun(kind, cases.count)
                    } catch {
                        tally.found(error, kind, cases)
                    }
                }
                continuation.resume()
            }
            // JSON of the greatest depth, in a debug build, needs more than a thread's default.
            thread.stackSize = 8 << 20
            thread.start()
        }
    }

    private static func fuzzWire(until deadline: Date, _ tally: Tally) async {
        let run = FuzzRun(seed: tally.seed) { tally.willRun($0, $1) }
        let next = Atomic<Int>(0)
        while Date() < deadline {
            do {
                try await run.runWire {
                    tally.didRun(.wire, $0.count)
                } next: {
                    guard Date() < deadline else { return nil }
                    let size = FuzzRun.wireBatchSize
                    let start = next.wrappingAdd(size, ordering: .relaxed).oldValue
                    return start..<start + size
                }
            } catch {
                let end = next.load(ordering: .relaxed)
                tally.found(error, .wire, end - FuzzRun.wireBatchSize..<end)
            }
        }
    }

    /// The number of cases of a kind in a batch of about a second.
    private static func batchSize(_ kind: FuzzKind) -> Int {
        switch kind {
        case .json, .packet, .presence, .news, .message: 20_000
        case .connection: 5000
        case .operation, .wire: 1000
        }
    }

    static func say(_ text: String) { FileHandle.standardOutput.write(Data((text + "\n").utf8)) }
}

/// The runs, the findings and the position of each kind, in a file that outlives a crash.
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

    /// Returns the runs so far, for the progress output.
    func describe() -> String {
        state.withLock { state in
            FuzzKind.allCases.compactMap { kind in state.counts[kind].map { "\(kind.rawValue) \($0)" } }.joined(separator: ", ")
        }
    }

    /// - Returns: The number of findings.
    func finish(_ kinds: [FuzzKind]) -> Int {
        let state = state.withLock { $0 }
        for kind in kinds { FuzzCommand.say("\(kind.rawValue): \(state.counts[kind, default: 0])") }
        FuzzCommand.say("\(state.counts.values.reduce(0, +)) inputs, seed \(seed), \(state.findings) found")
        try? FileManager.default.removeItem(at: place)
        return state.findings
    }
}
