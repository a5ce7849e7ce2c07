import Foundation
import RoostTestSupport
import Testing

@testable import RoostServer

/// The catalog, the metrics in the sources and the operator's page agree.
@Suite struct MetricCatalogTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    /// Quoted names of metrics in the sources, by file.
    private static func named() throws -> [String: Set<String>] {
        var names: [String: Set<String>] = [:]
        let sources = root.appending(path: "Sources")
        for case let file as String in FileManager.default.enumerator(atPath: sources.path) ?? .init()
        where file.hasSuffix(".swift") && !file.hasPrefix("RoostBench/") && !file.hasSuffix("MetricCatalog.swift") {
            let text = try String(contentsOf: sources.appending(path: file), encoding: .utf8)
            for match in text.matches(of: #/"((?:roost|process)_[a-z0-9_]+)"/#) { names[String(match.1), default: []].insert(file) }
            // A name built at run time couldn't be compared.
            let computed = text.matches(of: #/(?:^|[^a-zA-Z])(?:Counter|Gauge|Recorder|Meter|Timer)\(label: (?!"[a-z0-9_]+")/#)
            if !computed.isEmpty { names["a label that isn't a literal", default: []].insert(file) }
        }
        return names
    }

    @Test("every metric in the sources is in the catalog, and the catalog has no others")
    func complete() throws {
        let named = try Self.named()
        let known = Set(MetricCatalog.all.map(\.name))
        #expect(named.filter { !known.contains($0.key) } == [:])
        #expect(known.subtracting(named.keys) == [])
        #expect(known.count == MetricCatalog.all.count)
    }

    @Test("names follow the conventions: base units, _total for counters, a sentence of help, few values in a label")
    func conventions() {
        for metric in MetricCatalog.all {
            #expect(metric.name.wholeMatch(of: #/(roost|process)_[a-z_]+/#) != nil, "\(metric.name)")
            #expect(metric.name.hasSuffix("_total") == (metric.kind == .counter), "\(metric.name)")
            #expect(metric.name.firstMatch(of: #/milli|micro|kilo|mega|minutes|hours/#) == nil, "\(metric.name)")
            #expect(metric.help.hasSuffix(".") && !metric.help.contains("|") && metric.help.count > 15, "\(metric.name)")
            let series = metric.labels.map { $0.values.count + 1 }.reduce(1, *)
            #expect(series < 5000, "\(metric.name)")
            if case .histogram(let bounds) = metric.kind {
                #expect(bounds == bounds.sorted() && Set(bounds).count == bounds.count && bounds.last?.isFinite == true)
            }
        }
    }

    @Test("docs/operations/monitoring.md has each metric with its kind, labels and help text")
    func documented() throws {
        let rows = MetricCatalog.all.map { metric in
            let labels = metric.labels.map { "`\($0.name)`" }.joined(separator: ", ")
            return "| `\(metric.name)` | \(metric.kind.word) | \(labels) | \(metric.help) |"
        }
        let page = try String(contentsOf: Self.root.appending(path: "docs/operations/monitoring.md"), encoding: .utf8)
        let written = page.split(separator: "\n").map(String.init).filter {
            $0.hasPrefix("| `roost_") || $0.hasPrefix("| `process_")
        }
        #expect(written == rows, "The table should be:\n\(rows.joined(separator: "\n"))")
    }
}
