import ArgumentParser
import Foundation
import RoostBench

/// Measures a server on this machine, and next to each figure the floor set by the machine itself.
struct Bench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Measure a server on this machine, each figure next to its floor.",
        discussion: """
            Every benchmark starts a server process on its own directory, loads it over 127.0.0.1 from another process, and removes the \
            directory. docs/performance.md says how each figure is measured.
            """,
        subcommands: [
            BenchFanout.self, BenchSend.self, BenchLatency.self, BenchSpread.self, BenchMixed.self, BenchStorm.self, BenchIdle.self,
            BenchStart.self, BenchHistory.self, BenchMessages.self, BenchLive.self, BenchResume.self, BenchChannels.self,
            BenchSDK.self,
            BenchEffects.self,
            BenchHostile.self, BenchBackup.self, BenchCluster.self, BenchAll.self, FloorSocketsCommand.self,
        ],
        defaultSubcommand: BenchAll.self)
}

/// The options of every benchmark.
struct BenchOptions: ParsableArguments {
    @Flag(help: "Print one JSON object instead of a table.") var json = false
    @Flag(help: "Measure for a shorter time, on less data. The figures then vary more.") var quick = false
    @Flag(help: "Only check that every part works, in about a second each. The figures are then meaningless.") var smoke = false
    @Option(
        help:
            "Another build of roost: both are measured alternately, five times each, and compared. For fanout, send, idle, history, resume and channels."
    ) var against: String?
    @Option(help: "A directory on the disk to measure. The default is the current one.") var on = "."

    func validate() throws {
        if quick, smoke { throw ValidationError("--quick and --smoke can't be combined.") }
        var isDirectory: ObjCBool = false
        guard FileManager.default.fileExists(atPath: on, isDirectory: &isDirectory), isDirectory.boolValue else {
            throw ValidationError("--on must be a directory; there is none at \(on).")
        }
        guard let against else { return }
        guard FileManager.default.isExecutableFile(atPath: against) else {
            throw ValidationError("--against must be a program; \(against) can't be run.")
        }
    }

    /// Measures some parts of this build, or of this and another one, and prints the results.
    func report(_ parts: BenchPart...) async throws {
        let isQuiet = json
        let run = BenchRun(in: on, scale: smoke ? .smoke : quick ? .quick : .full) { if !isQuiet { Output.note($0) } }
        if let against {
            let report = try await run.compare(parts, with: against)
            if json {
                try Output.json(report)
            } else {
                try Output.lines(Output.table(report.rows) + ["", report.machineDescription])
            }
        } else {
            let report = try await run.report(on: parts)
            if json { try Output.json(report) } else { try Output.line(report.table()) }
        }
    }
}

/// The counts that a benchmark can have.
enum BenchCount {
    /// Clients on one machine: each has a descriptor in this process and one in the server.
    static let sockets = 1...100_000
    static let messages = 1...100_000_000
    static let waitingEffects = 0...100_000_000

    /// Throws unless the value of an option is in its range.
    static func require(_ value: Int, of option: String, in range: ClosedRange<Int>) throws {
        guard range.contains(value) else {
            throw ValidationError("\(option) must be a number from \(range.lowerBound) to \(range.upperBound).")
        }
    }
}
