import ArgumentParser
import Foundation
import RoostServer

/// Measures a server on this machine, and beside each figure the floor that the machine itself sets.
struct Bench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Measure a server on this machine, each figure beside its floor.",
        discussion: """
            Every benchmark starts a server process on a directory of its own, loads it over 127.0.0.1 from another process, and removes the \
            directory. docs/performance.md says how each figure is measured.
            """,
        subcommands: [
            BenchFanout.self, BenchSend.self, BenchIdle.self, BenchStart.self, BenchHistory.self, BenchResume.self,
            BenchChannels.self, BenchHostile.self, BenchBackup.self, BenchCluster.self, BenchAll.self, FloorSockets.self,
        ],
        defaultSubcommand: BenchAll.self)
}

/// The options of every benchmark.
struct BenchOptions: ParsableArguments {
    @Flag(help: "Print one JSON object instead of a table.") var json = false
    @Flag(help: "Measure for a shorter time, and on less. The figures then vary more.") var quick = false
    @Flag(help: "Only see that every part works, in about a second each. The figures then say nothing.") var smoke = false
    @Option(
        help:
            "Another build of roost: costs are measured of both by turns, five times each, and compared. Of sends, fanout and idle connections."
    ) var against: String?
    @Option(help: "A directory on the disk to measure. The default is the current one.") var on = "."

    var scale: BenchScale { smoke ? .smoke : quick ? .quick : .full }

    func validate() throws {
        if quick, smoke { throw ValidationError("--quick and --smoke exclude one another.") }
        guard let against else { return }
        guard FileManager.default.isExecutableFile(atPath: against) else {
            throw ValidationError("--against names a program, and \(against) can't be run.")
        }
    }

    /// Runs benchmarks one after another and prints what they found.
    func report(_ benchmarks: [any Benchmark]) async throws {
        if let against { return try await compare(benchmarks.compactMap { $0 as? any ComparableBenchmark }, with: against) }
        OpenFiles.raiseLimit()
        let parent = URL(filePath: on)
        var sections: [Section] = []
        for benchmark in benchmarks {
            let name = type(of: benchmark).name
            if !json { FileHandle.standardError.write(Data("measuring \(name) …\n".utf8)) }
            let directory = try RunDirectory(in: parent)
            sections.append(Section(bench: name, figures: try await benchmark.figures(in: directory.url, scale: scale)))
        }
        let directory = try RunDirectory(in: parent)
        let report = Report(
            version: RoostVersion.current, machine: try Machine(directory: directory.url, probeSeconds: scale.probeSeconds),
            sections: sections)
        if json { try Output.json(report) } else { Output.line(report.table()) }
    }
}

/// How long and on how much a benchmark measures.
enum BenchScale: Sendable {
    /// As the figures of the documentation are measured.
    case full
    case quick
    /// To see that it works, not how fast.
    case smoke

    func pick<T>(_ full: T, quick: T, smoke: T) -> T {
        switch self {
        case .full: full
        case .quick: quick
        case .smoke: smoke
        }
    }

    /// Of the disk alone.
    var probeSeconds: Double { pick(1, quick: 1, smoke: 0.1) }
    /// Of load before what is measured.
    var warmUpSeconds: Double { pick(0.5, quick: 0.5, smoke: 0.1) }
}

/// The limit on open files.
enum OpenFiles {
    #if os(Linux)
    private static let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
    private static let resource = RLIMIT_NOFILE
    #endif

    /// Allows this process, and the child processes that inherit it, as many as the system does.
    static func raiseLimit() {
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        _ = setrlimit(resource, &limit)
    }

    /// Throws when there aren't enough for some sockets and a little more.
    static func require(sockets: Int) throws {
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0, UInt64(limit.rlim_cur) < UInt64(sockets + 100) else { return }
        throw BenchFailure("\(sockets) sockets need \(sockets + 100) open files, and the limit is \(limit.rlim_cur) (ulimit -Hn)")
    }
}

/// One benchmark: it fills a directory, measures a server on it, and measures the floor.
protocol Benchmark {
    static var name: String { get }
    func figures(in directory: URL, scale: BenchScale) async throws -> [Figure]
}

struct BenchAll: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "all", abstract: "All benchmarks, one after another.")
    @OptionGroup var options: BenchOptions

    func run() async throws {
        try await options.report([
            FanoutBenchmark(), SendBenchmark(), IdleBenchmark(), StartBenchmark(), HistoryBenchmark(), ResumeBenchmark(),
            LargeChannelBenchmark(), ChannelListBenchmark(), ClientListBenchmark(),
        ])
    }
}
