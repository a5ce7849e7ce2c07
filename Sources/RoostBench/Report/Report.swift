import Foundation

/// One measured number, with the floor of the same run and its goals.
struct Figure: Encodable {
    /// The goal of a figure.
    enum Goal {
        case atMost(Double)
        case atLeast(Double)
        case ratioAtMost(Double)
        case ratioAtLeast(Double)
    }

    let name: String
    let value: Double
    let unit: String
    /// The same work done with minimal means, in the same run.
    let floor: Double?
    let goals: [Goal]

    init(_ name: String, _ value: Double, _ unit: String, floor: Double? = nil, goals: [Goal] = []) {
        self.name = name
        self.value = value
        self.unit = unit
        self.floor = floor
        self.goals = goals
    }

    /// The value divided by the floor.
    var ratio: Double? { floor.flatMap { $0 > 0 ? value / $0 : nil } }

    /// Whether every goal is met; nil if there is none.
    var isMet: Bool? {
        goals.isEmpty
            ? nil
            : goals.allSatisfy { goal in
                switch goal {
                case .atMost(let most): value <= most
                case .atLeast(let least): value >= least
                case .ratioAtMost(let most): (ratio ?? .infinity) <= most
                case .ratioAtLeast(let least): (ratio ?? 0) >= least
                }
            }
    }

    var target: String? {
        goals.isEmpty
            ? nil
            : goals.map { goal in
                switch goal {
                case .atMost(let most): "≤ \(Report.number(most))"
                case .atLeast(let least): "≥ \(Report.number(least))"
                case .ratioAtMost(let most): "≤ \(Report.number(most)) × floor"
                case .ratioAtLeast(let least): "≥ \(Report.number(least)) × floor"
                }
            }.joined(separator: ", ")
    }

    private enum CodingKeys: String, CodingKey { case name, value, unit, floor, ratio, target, isMet }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(name, forKey: .name)
        try container.encode(value, forKey: .value)
        try container.encode(unit, forKey: .unit)
        try container.encodeIfPresent(floor, forKey: .floor)
        try container.encodeIfPresent(ratio, forKey: .ratio)
        try container.encodeIfPresent(target, forKey: .target)
        try container.encodeIfPresent(isMet, forKey: .isMet)
    }
}

/// The figures of one benchmark.
struct Section: Encodable {
    let bench: String
    var figures: [Figure]
}

/// Everything that one call of `roost bench` measured, and on which machine.
package struct Report: Encodable {
    let version: String
    let machine: Machine
    let sections: [Section]

    /// A table whose columns line up.
    package func table() -> String {
        var rows = [["", "measured", "unit", "floor", "ratio", "target", "met"]]
        for section in sections {
            for figure in section.figures {
                rows.append([
                    "\(section.bench): \(figure.name)", Self.number(figure.value), figure.unit,
                    figure.floor.map(Self.number) ?? "", figure.ratio.map(Self.number) ?? "", figure.target ?? "",
                    figure.isMet.map { $0 ? "yes" : "no" } ?? "",
                ])
            }
        }
        let widths = rows[0].indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        /// Numbers are aligned right, words left.
        let numeric: Set = [1, 3, 4]
        let lines = rows.map { row in
            let cells = row.indices.map { column in
                let padding = String(repeating: " ", count: widths[column] - row[column].count)
                return numeric.contains(column) ? padding + row[column] : row[column] + padding
            }
            return cells.joined(separator: "  ").trimmingSuffix { $0 == " " }
        }
        return lines.joined(separator: "\n") + "\n\n" + machine.description
    }

    /// Formats a number with three significant digits.
    static func number(_ value: Double) -> String {
        let places = abs(value) >= 100 || value == value.rounded() ? 0 : abs(value) >= 10 ? 1 : 2
        return String(format: "%.\(places)f", value)
    }
}

extension String {
    fileprivate func trimmingSuffix(while isRemoved: (Character) -> Bool) -> String {
        var text = self[...]
        while let last = text.last, isRemoved(last) { text.removeLast() }
        return String(text)
    }
}
