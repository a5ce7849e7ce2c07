import ArgumentParser
import Testing

@testable import RoostCommand

/// The parts of `roost bench`, compared with those that ``BenchTests`` runs.
@Suite struct BenchPartTests {
    /// Several parts at once; a part with its own test, which needs PostgreSQL; and a process for measuring a floor.
    private static let others: Set<String> = ["all", "cluster", "floor-sockets"]

    @Test("every part of the benchmark has a test that runs it")
    func parts() {
        let names = Bench.configuration.subcommands.map { RoostCommand.name(of: $0) }
        #expect(Self.others.isSubset(of: names))
        #expect(names.filter { !Self.others.contains($0) }.sorted() == BenchTests.figureCounts.map { $0.0 }.sorted())
    }
}
