/// Writes samples as Prometheus reads them (text exposition format 0.0.4).
///
/// Each metric has its help text, type and series in one block. A metric of the catalog without labels is present from the start, at 0, which gives
/// a rate over it a beginning.
struct PrometheusPage {
    private let samples: [String: [MetricSample]]

    init(_ samples: [MetricSample]) { self.samples = Dictionary(grouping: samples, by: \.series.name) }

    /// The metrics of the catalog in its order, then all others by name.
    var text: String {
        var text = ""
        for description in MetricCatalog.all {
            text += Self.header(description.name, description.kind.word, help: description.help)
            for sample in Self.ordered(samples[description.name] ?? Self.initial(description)) { Self.write(sample, to: &text) }
        }
        for (name, samples) in samples.sorted(by: { $0.key < $1.key }) where MetricCatalog.byName[name] == nil {
            guard let first = samples.first else { continue }
            text += Self.header(Self.sanitized(name), first.value.word, help: "Not described.")
            for sample in Self.ordered(samples) { Self.write(sample, to: &text) }
        }
        return text
    }

    /// Returns the samples of a metric before anything is counted.
    private static func initial(_ description: MetricDescription) -> [MetricSample] {
        guard description.labels.isEmpty else { return [] }
        let series = MetricSeries(name: description.name, labels: [])
        return switch description.kind {
        case .counter: [MetricSample(series, .counter(0))]
        case .histogram(let bounds): [MetricSample(series, .histogram(.init(bounds: bounds)))]
        // A gauge whose value isn't available isn't 0.
        case .gauge: []
        }
    }

    private static func ordered(_ samples: [MetricSample]) -> [MetricSample] {
        samples.sorted { $0.series.labels.map(\.value).lexicographicallyPrecedes($1.series.labels.map(\.value)) }
    }

    private static func header(_ name: String, _ type: String, help: String) -> String {
        let help = help.replacing("\\", with: "\\\\").replacing("\n", with: "\\n")
        return "# HELP \(name) \(help)\n# TYPE \(name) \(type)\n"
    }

    private static func write(_ sample: MetricSample, to text: inout String) {
        let name = sanitized(sample.series.name)
        let labels = sample.series.labels
        switch sample.value {
        case .counter(let value), .gauge(let value): text += "\(name)\(Self.labels(labels)) \(number(value))\n"
        case .histogram(let histogram):
            var total: Int64 = 0
            for (bound, count) in zip(histogram.bounds + [.infinity], histogram.counts) {
                total += count
                text += "\(name)_bucket\(Self.labels(labels, bound: number(bound))) \(total)\n"
            }
            text += "\(name)_sum\(Self.labels(labels)) \(number(histogram.sum))\n\(name)_count\(Self.labels(labels)) \(total)\n"
        }
    }

    private static func labels(_ labels: [MetricSeries.Label], bound: String? = nil) -> String {
        var parts = labels.map { "\(sanitized($0.name))=\"\(escaped($0.value))\"" }
        if let bound { parts.append("le=\"\(bound)\"") }
        return parts.isEmpty ? "" : "{\(parts.joined(separator: ","))}"
    }

    private static func number(_ value: Double) -> String {
        if value == .infinity { return "+Inf" }
        if value == -.infinity { return "-Inf" }
        if value.isNaN { return "NaN" }
        return value == value.rounded() && abs(value) < 1e15 ? String(Int64(value)) : "\(value)"
    }

    /// Returns a name that the format allows, whatever a library calls its metric.
    private static func sanitized(_ name: String) -> String {
        let name = String(name.map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" })
        return name.first?.isNumber != false ? "_" + name : name
    }

    private static func escaped(_ value: String) -> String {
        value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
    }
}

extension MetricSample.Value {
    fileprivate var word: String {
        switch self {
        case .counter: "counter"
        case .gauge: "gauge"
        case .histogram: "histogram"
        }
    }
}
