public import CoreMetrics
import Synchronization

/// A backend of swift-metrics that keeps everything in memory and writes it as Prometheus text (exposition format 0.0.4).
///
/// Counters and gauges are kept as they are; timers and recorders as a count and a sum, which is what a rate and a mean need.
public final class PrometheusRegistry: MetricsFactory, Sendable {
    private let counters = Mutex<[Series: Cell]>([:])
    private let recorders = Mutex<[Series: Cell]>([:])
    private let timers = Mutex<[Series: Cell]>([:])

    /// Series at most, so that no label can grow the memory without bound.
    private static let seriesMax = 2000

    public init() {}

    private struct Series: Hashable {
        let label: String
        let dimensions: [String]
    }

    fileprivate final class Cell: Sendable {
        private let values = Mutex<(count: Int64, sum: Double)>((0, 0))
        func add(_ value: Double) { values.withLock { $0 = ($0.count + 1, $0.sum + value) } }
        func set(_ value: Double) { values.withLock { $0 = ($0.count + 1, value) } }
        var current: (count: Int64, sum: Double) { values.withLock { $0 } }
    }

    private func cell(_ table: borrowing Mutex<[Series: Cell]>, _ label: String, _ dimensions: [(String, String)]) -> Cell {
        let series = Series(label: label, dimensions: dimensions.map { "\(Self.name($0))=\"\(Self.escaped($1))\"" })
        return table.withLock { cells in
            if let cell = cells[series] { return cell }
            let cell = Cell()
            if cells.count < Self.seriesMax { cells[series] = cell }
            return cell
        }
    }

    public func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        Handler(cell: cell(counters, label, dimensions))
    }
    public func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        Handler(cell: cell(recorders, label, dimensions), isGauge: !aggregate)
    }
    public func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        Handler(cell: cell(timers, label, dimensions))
    }
    public func destroyCounter(_ handler: any CounterHandler) {}
    public func destroyRecorder(_ handler: any RecorderHandler) {}
    public func destroyTimer(_ handler: any TimerHandler) {}

    private final class Handler: CounterHandler, RecorderHandler, TimerHandler {
        let cell: Cell
        let isGauge: Bool
        init(cell: Cell, isGauge: Bool = false) {
            self.cell = cell
            self.isGauge = isGauge
        }
        func increment(by amount: Int64) { cell.add(Double(amount)) }
        func reset() { cell.set(0) }
        func record(_ value: Int64) { record(Double(value)) }
        func record(_ value: Double) { if isGauge { cell.set(value) } else { cell.add(value) } }
        func recordNanoseconds(_ duration: Int64) { cell.add(Double(duration) / 1e9) }
    }

    /// Everything as Prometheus reads it, in the order of the names.
    public func text() -> String {
        var lines: [String] = []
        func write(_ table: borrowing Mutex<[Series: Cell]>, type: String, _ body: (String, String, Cell) -> [String]) {
            let cells = table.withLock { $0 }.sorted {
                ($0.key.label, $0.key.dimensions.description) < ($1.key.label, $1.key.dimensions.description)
            }
            var last = ""
            for (series, cell) in cells {
                let name = Self.name(series.label)
                if name != last { lines.append("# TYPE \(name) \(type)") }
                last = name
                let labels = series.dimensions.isEmpty ? "" : "{\(series.dimensions.joined(separator: ","))}"
                lines += body(name, labels, cell)
            }
        }
        write(counters, type: "counter") { name, labels, cell in ["\(name)\(labels) \(cell.current.sum)"] }
        write(recorders, type: "gauge") { name, labels, cell in ["\(name)\(labels) \(cell.current.sum)"] }
        write(timers, type: "summary") { name, labels, cell in
            let (count, sum) = cell.current
            return ["\(name)_count\(labels) \(count)", "\(name)_sum\(labels) \(sum)"]
        }
        return lines.map { $0 + "\n" }.joined()
    }

    private static func name(_ label: String) -> String {
        String(label.map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" })
    }
    private static func escaped(_ value: String) -> String {
        value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
    }
}
