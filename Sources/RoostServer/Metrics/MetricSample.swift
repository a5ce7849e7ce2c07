/// One line of a metric: its name and the values of its labels.
struct MetricSeries: Hashable, Sendable {
    struct Label: Hashable, Sendable {
        let name: String
        let value: String
    }

    let name: String
    let labels: [Label]

    /// - Parameter description: The catalog's entry, which defines the order of the labels and their possible values.
    init(name: String, labels: [(String, String)], as description: MetricDescription? = nil) {
        self.name = name
        guard let description else {
            self.labels = labels.map(Label.init)
            return
        }
        self.labels = description.labels.map { label in
            let value = labels.first { $0.0 == label.name }?.1 ?? ""
            return Label(name: label.name, value: label.values.contains(value) ? value : MetricDescription.Label.otherValue)
        }
    }
}

/// The value of a series.
struct MetricSample: Sendable {
    enum Value: Sendable {
        case counter(Double)
        case gauge(Double)
        case histogram(Histogram)
    }

    struct Histogram: Sendable {
        let bounds: [Double]
        /// The number of values in each single bucket; the last one counts those above every bound.
        private(set) var counts: [Int64]
        private(set) var sum = 0.0

        init(bounds: [Double]) {
            self.bounds = bounds
            counts = Array(repeating: 0, count: bounds.count + 1)
        }

        mutating func record(_ value: Double, bucket: Int) {
            guard counts.indices.contains(bucket) else { return }
            counts[bucket] += 1
            sum += value
        }
    }

    let series: MetricSeries
    let value: Value

    init(_ series: MetricSeries, _ value: Value) {
        self.series = series
        self.value = value
    }

    /// A value looked up when the page is read. Its metric is in the catalog.
    init(_ name: String, _ value: some BinaryInteger, labels: (String, String)...) {
        self.init(name, Double(value), labels: labels)
    }

    init(_ name: String, seconds: Double) { self.init(name, seconds, labels: []) }

    private init(_ name: String, _ value: Double, labels: [(String, String)]) {
        let description = MetricCatalog.byName[name]
        series = MetricSeries(name: name, labels: labels, as: description)
        self.value = description?.kind == .counter ? .counter(value) : .gauge(value)
    }
}
