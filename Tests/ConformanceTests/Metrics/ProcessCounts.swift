import CoreMetrics
import RoostTestSupport

@testable import RoostServer

/// The metrics of all servers in this process, of all tests together: a process has one registry.
enum ProcessCounts {
    private static let registry: PrometheusRegistry = {
        let registry = PrometheusRegistry()
        MetricsSystem.bootstrap(registry)
        return registry
    }()

    /// Nothing is counted before.
    static func begin() { _ = registry }

    static func page() throws -> MetricsText { try MetricsText(PrometheusPage(registry.samples).text) }
}
