import ArgumentParser
import Testing

@testable import RoostCommand

/// The parts that `roost bench` has, beside those that ``BenchTests`` runs.
@Suite struct BenchPartTests {
    /// Several parts at once; what has a test of its own, where there is PostgreSQL; and a process that a floor is measured of.
    private static let others: Set<String> = ["all", "cluster", "floor-sockets"]

    @Test("no part of the benchmark is without a test that runs it")
    func parts() {
        let names = Bench.configuration.subcommands.map { RoostCommand.name(of: $0) }
        #expect(Self.others.isSubset(of: names))
        #expect(names.filter { !Self.others.contains($0) }.sorted() == BenchTests.figureCounts.map { $0.0 }.sorted())
    }
}
