public import CoreMetrics
import Synchronization

/// A swift-metrics backend that keeps everything in memory, for `/metrics` to show.
///
/// ``MetricCatalog`` describes the metrics: a timer or a recorder becomes a histogram with its buckets, and a label value that isn't listed there
/// becomes `other`. This bounds the number of series.
public final class PrometheusRegistry: MetricsFactory, Sendable {
    private let cells = Mutex<[MetricSeries: Cell]>([:])

    /// The most series of metrics that aren't in the catalog.
    private static let seriesMax = 5000

    /// A registry without values.
    public init() {}

    fileprivate enum Cell {
        case counter(CounterCell)
        case gauge(GaugeCell)
        case histogram(HistogramCell)
    }

    private func cell(_ label: String, _ dimensions: [(String, String)], _ new: (MetricDescription?) -> Cell) -> Cell {
        let description = MetricCatalog.byName[label]
        let series = MetricSeries(name: label, labels: dimensions, as: description)
        return cells.withLock { cells in
            if let cell = cells[series] { return cell }
            let cell = new(description)
            if cells.count < Self.seriesMax { cells[series] = cell }
            return cell
        }
    }

    public func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        if case .counter(let cell) = cell(label, dimensions, { _ in .counter(CounterCell()) }) { return cell }
        return CounterCell()
    }

    public func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        guard aggregate else {
            if case .gauge(let cell) = cell(label, dimensions, { _ in .gauge(GaugeCell()) }) { return cell }
            return GaugeCell()
        }
        return histogram(label, dimensions)
    }

    public func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler { histogram(label, dimensions) }

    private func histogram(_ label: String, _ dimensions: [(String, String)]) -> HistogramCell {
        let found = cell(label, dimensions) { description in
            if case .histogram(let bounds)? = description?.kind { return .histogram(HistogramCell(bounds: bounds)) }
            return .histogram(HistogramCell(bounds: MetricCatalog.secondsBuckets))
        }
        if case .histogram(let cell) = found { return cell }
        return HistogramCell(bounds: MetricCatalog.secondsBuckets)
    }

    public func destroyCounter(_ handler: any CounterHandler) {}
    public func destroyRecorder(_ handler: any RecorderHandler) {}
    public func destroyTimer(_ handler: any TimerHandler) {}

    /// The current values of everything.
    var samples: [MetricSample] {
        cells.withLock { $0 }.map { series, cell in
            switch cell {
            case .counter(let counter): MetricSample(series, .counter(Double(counter.total)))
            case .gauge(let gauge): MetricSample(series, .gauge(gauge.current))
            case .histogram(let histogram): MetricSample(series, .histogram(histogram.current))
            }
        }
    }
}

/// A count that only grows. Adding takes one atomic instruction, from any thread.
private final class CounterCell: CounterHandler {
    private let value = Atomic<Int64>(0)
    var total: Int64 { value.load(ordering: .relaxed) }
    func increment(by amount: Int64) { value.wrappingAdd(amount, ordering: .relaxed) }
    func reset() { value.store(0, ordering: .relaxed) }
}

/// The newest value.
private final class GaugeCell: RecorderHandler {
    private let bits = Atomic<UInt64>(0)
    var current: Double { Double(bitPattern: bits.load(ordering: .relaxed)) }
    func record(_ value: Int64) { record(Double(value)) }
    func record(_ value: Double) { bits.store(value.bitPattern, ordering: .relaxed) }
}

/// The distribution of values over buckets.
private final class HistogramCell: RecorderHandler, TimerHandler {
    private let bounds: [Double]
    private let values: Mutex<MetricSample.Histogram>

    init(bounds: [Double]) {
        self.bounds = bounds
        values = Mutex(.init(bounds: bounds))
    }

    var current: MetricSample.Histogram { values.withLock { $0 } }
    func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1e9) }
    func record(_ value: Int64) { record(Double(value)) }
    func record(_ value: Double) {
        let bucket = bounds.firstIndex { value <= $0 } ?? bounds.count
        values.withLock { $0.record(value, bucket: bucket) }
    }
}
