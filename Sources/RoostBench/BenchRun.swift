import Foundation
import RoostDatabase
import RoostServer

/// One call of `roost bench`: where and how long it measures, and where it reports progress.
package struct BenchRun {
    /// How often each of two builds is measured, alternating.
    private static let rounds = 5

    private let parent: URL
    private let scale: BenchScale
    private let progress: (String) -> Void

    /// - Parameters:
    ///   - directory: On the disk to measure. Each benchmark makes a directory in it and removes it again.
    ///   - progress: Called with a line for the user.
    package init(in directory: String, scale: BenchScale, progress: @escaping (String) -> Void) {
        parent = URL(filePath: directory)
        self.scale = scale
        // As in a server: the floors use the same SQLite.
        ProcessMemory.leaveSQLiteUncounted()
        self.progress = progress
    }

    /// Measures parts one after another.
    package func report(on parts: [BenchPart]) async throws -> Report {
        OpenFiles.raiseLimit()
        var sections: [Section] = []
        for benchmark in parts.flatMap(\.benchmarks) {
            let name = type(of: benchmark).name
            progress("measuring \(name) …")
            let directory = try RunDirectory(in: parent)
            sections.append(Section(bench: name, figures: try await benchmark.figures(in: directory.url, scale: scale)))
        }
        return Report(version: RoostVersion.current, machine: try machine(), sections: sections)
    }

    /// Measures this build and another, alternating, so that other activity of the machine affects both.
    ///
    /// Throws if none of the parts can be compared.
    package func compare(_ parts: [BenchPart], with program: String) async throws -> ComparisonReport {
        let benchmarks = parts.flatMap(\.benchmarks).compactMap { $0 as? any ComparableBenchmark }
        guard !benchmarks.isEmpty else {
            throw BenchFailure("--against compares fanout, send, idle, history, resume and channels only")
        }
        OpenFiles.raiseLimit()
        let programs: [URL?] = [nil, URL(filePath: program)]
        var costs: [ComparedCost] = []
        for benchmark in benchmarks {
            var values: [[[Double]]] = [[], []]
            let rounds = scale == .smoke ? 1 : Self.rounds
            for round in 1...rounds {
                // The order changes from round to round.
                for index in round.isMultiple(of: 2) ? [1, 0] : [0, 1] {
                    progress("round \(round) of \(rounds), \(index == 0 ? "this build" : "the other") …")
                    let directory = try RunDirectory(in: parent)
                    values[index].append(try await benchmark.measure(programs[index], in: directory.url, scale: scale))
                }
            }
            for (number, cost) in type(of: benchmark).costs(scale).enumerated() {
                let runs = values.map { $0.map { $0.indices.contains(number) ? $0[number] : .nan } }
                costs.append(ComparedCost(name: cost.name, unit: cost.unit, runs: runs[0], otherRuns: runs[1]))
            }
        }
        return ComparisonReport(against: program, machine: try machine(), costs: costs)
    }

    private func machine() throws -> Machine {
        let directory = try RunDirectory(in: parent)
        return try Machine(directory: directory.url, probeSeconds: scale.probeSeconds)
    }
}
