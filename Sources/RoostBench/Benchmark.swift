import Foundation

/// One benchmark: it fills a directory, measures a server on it, and measures the floor.
protocol Benchmark {
    static var name: String { get }
    func figures(in directory: URL, scale: BenchScale) async throws -> [Figure]
}

/// How long a benchmark measures, and on how much data.
package enum BenchScale: Sendable {
    /// For the figures of the documentation.
    case full
    case quick
    /// Checks that it works, not how fast.
    case smoke

    func pick<T>(_ full: T, quick: T, smoke: T) -> T {
        switch self {
        case .full: full
        case .quick: quick
        case .smoke: smoke
        }
    }

    /// How long the disk alone is probed.
    var probeSeconds: Double { pick(1, quick: 1, smoke: 0.1) }
    /// How long the load runs before the measurement.
    var warmUpSeconds: Double { pick(0.5, quick: 0.5, smoke: 0.1) }
}
