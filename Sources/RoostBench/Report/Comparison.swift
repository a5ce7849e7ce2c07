import Foundation
import RoostAPI

/// A benchmark whose costs can be measured of any build of Roost: everything it needs, it does as a client.
protocol ComparableBenchmark {
    /// The names of the costs, each with its unit. They include the amount of data if that depends on the scale.
    static func costs(_ scale: BenchScale) -> [(name: String, unit: String)]

    /// Starts a server on an empty directory and measures it once.
    ///
    /// - Returns: One value for each of ``costs(_:)``.
    func measure(_ program: URL?, in directory: URL, scale: BenchScale) async throws -> [Double]
}

/// One cost of two builds: the medians of several runs, and their ratio.
struct ComparedCost: Encodable {
    let name: String
    let unit: String
    /// The values of this build, in the order of the runs.
    let runs: [Double]
    /// The values of the other build.
    let otherRuns: [Double]

    var median: Double { Self.median(of: runs) }
    var otherMedian: Double { Self.median(of: otherRuns) }
    /// How much more this build costs: 1.05 is five per cent. Nil if the other one's cost was too small to be measured.
    var ratio: Double? { otherMedian > 0 ? median / otherMedian : nil }

    private static func median(of values: [Double]) -> Double {
        let sorted = values.sorted()
        guard !sorted.isEmpty else { return .nan }
        let middle = sorted.count / 2
        return sorted.count.isMultiple(of: 2) ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
    }

    private enum CodingKeys: String, CodingKey { case name, unit, runs, otherRuns, median, otherMedian, ratio }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(name, forKey: .name)
        try container.encode(unit, forKey: .unit)
        try container.encode(runs, forKey: .runs)
        try container.encode(otherRuns, forKey: .otherRuns)
        try container.encode(median, forKey: .median)
        try container.encode(otherMedian, forKey: .otherMedian)
        try container.encodeIfPresent(ratio, forKey: .ratio)
    }
}

/// Two builds compared on one machine.
package struct ComparisonReport: Encodable {
    let against: String
    let machine: Machine
    let costs: [ComparedCost]

    /// The machine on which the figures were measured.
    package var machineDescription: String { machine.description }

    /// The rows of a table, starting with its head.
    package var rows: [[String]] {
        let rows = costs.map { cost in
            let spread = { (values: [Double]) in
                "\(Report.number(values.min() ?? .nan)) to \(Report.number(values.max() ?? .nan))"
            }
            return [
                cost.name, Report.number(cost.median), spread(cost.runs), Report.number(cost.otherMedian), spread(cost.otherRuns),
                cost.unit,
                cost.ratio.map { String(format: "%.3f", $0) } ?? "",
            ]
        }
        return [["", "this build", "runs", "the other", "runs", "unit", "ratio"]] + rows
    }
}
