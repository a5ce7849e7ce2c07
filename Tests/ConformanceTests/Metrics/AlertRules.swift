import Foundation
import RoostTestSupport

/// The rules of `docs/operations/alerts.yml`, evaluated on two pages of `/metrics`.
///
/// It understands as much of YAML and PromQL as the file uses: comparisons of one quotient, `rate`, `sum without`, `histogram_quantile`. A rule that
/// uses more is an error.
struct AlertRules {
    struct Rule {
        let name: String
        let expression: AlertExpression
        let severity: String
        let summary: String
        let description: String
    }

    let rules: [Rule]

    init(_ text: String) throws {
        var fields: [[String: String]] = []
        for (number, line) in text.split(separator: "\n").enumerated() {
            let code = line.replacing(#/(^|\s)#.*$/#, with: "")
            guard !code.allSatisfy(\.isWhitespace) else { continue }
            guard let match = code.wholeMatch(of: #/\s*(- )?([a-z]+):(?: (.*\S))?\s*/#) else {
                throw Missed("a key in line \(number + 1): \(line)")
            }
            let key = String(match.2)
            if key == "alert" { fields.append([:]) }
            var value = match.3.map(String.init) ?? ""
            if value.hasPrefix("\"") { value = value.trimmingCharacters(in: ["\""]) }
            if !fields.isEmpty { fields[fields.count - 1][key] = value }
        }
        rules = try fields.map { fields in
            func field(_ name: String) throws -> String {
                guard let value = fields[name], !value.isEmpty else { throw Missed("\(name) of \(fields)") }
                return value
            }
            if let time = fields["for"] {
                guard time.wholeMatch(of: #/[0-9]+[smh]/#) != nil else { throw Missed("a time: \(time)") }
            }
            return Rule(
                name: try field("alert"), expression: try AlertExpression(try field("expr")), severity: try field("severity"),
                summary: try field("summary"), description: try field("description"))
        }
    }

    /// The alerts that fire on the second page, read some seconds after the first.
    func firing(_ before: MetricsText, _ after: MetricsText, seconds: Double = 60) throws -> [String] {
        try rules.filter { try !$0.expression.value(before, after, seconds: seconds).isEmpty }.map(\.name)
    }
}

/// One expression of PromQL, parsed.
indirect enum AlertExpression {
    case number(Double)
    case selector(name: String, matchers: [Matcher])
    case rate(AlertExpression)
    case sum(without: Set<String>, AlertExpression)
    case quantile(Double, AlertExpression)
    case quotient(AlertExpression, AlertExpression)
    case comparison(AlertExpression, String, Double)

    struct Matcher {
        let label: String
        let comparison: String
        let value: String

        func holds(for labels: [String: String]) throws -> Bool {
            let actual = labels[label] ?? ""
            return switch comparison {
            case "=": actual == value
            case "!=": actual != value
            case "=~": try actual.wholeMatch(of: Regex(value)) != nil
            default: throw Missed("a comparison: \(comparison)")
            }
        }
    }

    typealias Vector = [[String: String]: Double]

    /// The series for which the expression holds, or their values.
    func value(_ before: MetricsText, _ after: MetricsText, seconds: Double) throws -> Vector {
        func value(of inner: AlertExpression) throws -> Vector { try inner.value(before, after, seconds: seconds) }
        switch self {
        case .number(let number): return [[:]: number]
        case .selector: return try selected(from: after)
        case .rate(let inner):
            let earlier = try inner.selected(from: before)
            return try inner.selected(from: after).reduce(into: [:]) { rates, sample in
                // As in Prometheus, a new series has no rate yet.
                if let start = earlier[sample.key] { rates[sample.key] = max(0, sample.value - start) / seconds }
            }
        case .sum(let removed, let inner):
            return try value(of: inner).reduce(into: [:]) { sums, sample in
                sums[sample.key.filter { !removed.contains($0.key) }, default: 0] += sample.value
            }
        case .quantile(let quantile, let inner): return Self.quantiles(quantile, try value(of: inner))
        case .quotient(let left, let right):
            let divisors = try value(of: right)
            return try value(of: left).reduce(into: [:]) { quotients, sample in
                if let divisor = divisors[sample.key] { quotients[sample.key] = sample.value / divisor }
            }
        case .comparison(let inner, let comparison, let limit):
            return try value(of: inner).filter { sample in
                switch comparison {
                case ">": sample.value > limit
                case "<": sample.value < limit
                case "==": sample.value == limit
                default: throw Missed("a comparison: \(comparison)")
                }
            }
        }
    }

    private func selected(from page: MetricsText) throws -> Vector {
        guard case .selector(let name, let matchers) = self else { throw Missed("a selector") }
        var vector: Vector = [:]
        for sample in page.samples where sample.name == name {
            if try matchers.allSatisfy({ try $0.holds(for: sample.labels) }) { vector[sample.labels] = sample.value }
        }
        return vector
    }

    /// The quantile of each histogram, interpolated between the bounds of its bucket.
    private static func quantiles(_ quantile: Double, _ buckets: Vector) -> Vector {
        var histograms: [[String: String]: [(bound: Double, count: Double)]] = [:]
        for (labels, count) in buckets {
            guard let le = labels["le"], let bound = le == "+Inf" ? .infinity : Double(le) else { continue }
            histograms[labels.filter { $0.key != "le" }, default: []].append((bound, count))
        }
        return histograms.compactMapValues { buckets in
            let buckets = buckets.sorted { $0.bound < $1.bound }
            guard let total = buckets.last?.count, total > 0 else { return nil }
            let rank = quantile * total
            var below = (bound: 0.0, count: 0.0)
            for bucket in buckets {
                if bucket.count >= rank {
                    if bucket.bound == .infinity { return below.bound }
                    let share = bucket.count == below.count ? 1 : (rank - below.count) / (bucket.count - below.count)
                    return below.bound + (bucket.bound - below.bound) * share
                }
                below = bucket
            }
            return nil
        }
    }

    /// Names of the metrics in the expression.
    var metrics: [String] {
        switch self {
        case .number: []
        case .selector(let name, _): [name]
        case .rate(let inner), .sum(_, let inner), .quantile(_, let inner), .comparison(let inner, _, _): inner.metrics
        case .quotient(let left, let right): left.metrics + right.metrics
        }
    }

    /// The expression's metrics and labels, to be compared with the catalog.
    var matchers: [(metric: String, matcher: Matcher)] {
        switch self {
        case .number: []
        case .selector(let name, let matchers): matchers.map { (name, $0) }
        case .rate(let inner), .sum(_, let inner), .quantile(_, let inner), .comparison(let inner, _, _): inner.matchers
        case .quotient(let left, let right): left.matchers + right.matchers
        }
    }
}

extension AlertExpression {
    init(_ text: String) throws {
        var parser = Parser(text: text[...])
        self = try parser.comparison()
        guard parser.text.isEmpty else { throw Missed("the end of \(text) before \(parser.text)") }
    }

    private struct Parser {
        var text: Substring

        private mutating func take(_ word: String) -> Bool {
            text = text.drop(while: \.isWhitespace)
            guard text.hasPrefix(word) else { return false }
            text = text.dropFirst(word.count)
            return true
        }

        private mutating func require(_ word: String) throws {
            guard take(word) else { throw Missed("\(word) before \(text)") }
        }

        private mutating func match<Output>(_ pattern: Regex<Output>) -> Output? {
            text = text.drop(while: \.isWhitespace)
            guard let match = text.prefixMatch(of: pattern) else { return nil }
            text = text[match.range.upperBound...]
            return match.output
        }

        private mutating func number() throws -> Double {
            guard let number = match(#/[0-9.]+(e[0-9]+)?/#).flatMap({ Double($0.0) }) else {
                throw Missed("a number before \(text)")
            }
            return number
        }

        mutating func comparison() throws -> AlertExpression {
            let left = try quotient()
            guard let comparison = match(#/>|<|==/#) else { throw Missed("a comparison before \(text)") }
            return .comparison(left, String(comparison), try number())
        }

        private mutating func quotient() throws -> AlertExpression {
            let left = try term()
            return take("/") ? .quotient(left, try term()) : left
        }

        private mutating func term() throws -> AlertExpression {
            if take("sum without (") {
                guard let labels = match(#/[a-z_]+(, [a-z_]+)*/#) else { throw Missed("labels before \(text)") }
                try require(")")
                try require("(")
                let inner = try quotient()
                try require(")")
                return .sum(without: Set(labels.0.split(separator: ", ").map(String.init)), inner)
            }
            if take("rate(") {
                let inner = try selector()
                guard match(#/\[[0-9]+[smh]\]\)/#) != nil else { throw Missed("a range before \(text)") }
                return .rate(inner)
            }
            if take("histogram_quantile(") {
                let quantile = try number()
                try require(",")
                let inner = try term()
                try require(")")
                return .quantile(quantile, inner)
            }
            return try selector()
        }

        private mutating func selector() throws -> AlertExpression {
            guard let name = match(#/[a-z_]+/#) else { throw Missed("a metric before \(text)") }
            var matchers: [Matcher] = []
            if take("{") {
                repeat {
                    guard let parts = match(#/([a-z_]+)(=~|!=|=)"([^"]*)"/#) else { throw Missed("a label before \(text)") }
                    matchers.append(Matcher(label: String(parts.1), comparison: String(parts.2), value: String(parts.3)))
                } while take(",")
                try require("}")
            }
            return .selector(name: String(name), matchers: matchers)
        }
    }
}
