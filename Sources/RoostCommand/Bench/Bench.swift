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
            BenchChannels.self, BenchCluster.self, BenchAll.self, FloorSockets.self,
        ],
        defaultSubcommand: BenchAll.self)
}

/// The options of every benchmark.
struct BenchOptions: ParsableArguments {
    @Flag(help: "Print one JSON object instead of a table.") var json = false
    @Flag(help: "Measure for a shorter time, and on less. The figures then vary more.") var quick = false
    @Option(help: "A directory on the disk to measure. The default is the current one.") var on = "."

    /// Runs benchmarks one after another and prints what they found.
    func report(_ benchmarks: [any Benchmark]) async throws {
        OpenFiles.raiseLimit()
        let parent = URL(filePath: on)
        var sections: [Section] = []
        for benchmark in benchmarks {
            let name = type(of: benchmark).name
            if !json { FileHandle.standardError.write(Data("measuring \(name) …\n".utf8)) }
            let directory = try RunDirectory(in: parent)
            sections.append(Section(bench: name, figures: try await benchmark.figures(in: directory.url, isQuick: quick)))
        }
        let directory = try RunDirectory(in: parent)
        let report = Report(version: RoostVersion.current, machine: try Machine(directory: directory.url), sections: sections)
        print(json ? try report.json() : report.table())
    }
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
    func figures(in directory: URL, isQuick: Bool) async throws -> [Figure]
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
