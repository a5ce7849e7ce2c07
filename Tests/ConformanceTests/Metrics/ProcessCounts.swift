import CoreMetrics
import RoostTestSupport

@testable import RoostServer

/// What the servers of this process have counted, all tests together: a process has one registry.
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
