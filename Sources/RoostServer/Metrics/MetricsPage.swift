import Dispatch
import Foundation
import RoostCore

/// The page `/metrics`: counted values, and values looked up on request.
struct MetricsPage: Sendable {
    let registry: PrometheusRegistry?
    let metrics: ServerMetrics
    let engine: Engine
    let hub: Hub
    let effects: EffectRunner
    let cluster: ClusterNode?
    let readiness: Readiness
    let configuration: RoostServer.Configuration
    let connections: Connections
    let process = ProcessSamples()
    let unread = UnreadPages()

    /// The page as it is now. Requests at the same moment share one, and so do all while too many clients leave earlier ones unread.
    func page() async throws -> UnreadPages.Page {
        try await unread.page { try await text() }
    }

    private func text() async throws -> String {
        let counts = try await hub.counts()
        return await withCheckedContinuation { continuation in
            // This reads files, which must block neither an event loop nor the runtime's few threads.
            DispatchQueue.global().async { continuation.resume(returning: PrometheusPage(samples(counts)).text) }
        }
    }

    private func samples(_ counts: Hub.Counts) -> [MetricSample] {
        let queues = engine.queueLengths
        let samples: [MetricSample] = [
            MetricSample("roost_build_info", 1, labels: ("version", RoostVersion.current)),
            MetricSample("roost_ready", readiness.reason == nil ? 1 : 0),
            MetricSample("roost_connections", metrics.openHTTPCount, labels: ("state", "http")),
            MetricSample("roost_connections", counts.sockets - counts.authenticated, labels: ("state", "unauthenticated")),
            MetricSample("roost_connections", counts.authenticated, labels: ("state", "authenticated")),
            MetricSample("roost_connections_max", configuration.connectionsMax),
            MetricSample("roost_held_bytes", connections.memory.heldBytes),
            MetricSample("roost_memory_budget_bytes", configuration.memoryBudgetBytes),
            MetricSample("roost_held_bytes_max", connections.memory.sizeBytesMax),
            MetricSample("roost_sockets", counts.sockets),
            MetricSample("roost_queue_length", queues.writes, labels: ("queue", "write")),
            MetricSample("roost_queue_length", queues.reads, labels: ("queue", "read")),
            MetricSample("roost_deliveries_total", counts.deliveries),
            MetricSample("roost_sent_bytes_total", counts.sentBytes),
            MetricSample("roost_socket_writes_total", counts.writes),
        ]
        return samples + files() + effectSamples() + process.samples + (cluster?.samples ?? []) + (registry?.samples ?? [])
    }

    /// The last values read: the page doesn't wait for the database, and frequent requests for it cause no load there.
    private func effectSamples() -> [MetricSample] {
        var samples: [MetricSample] = []
        if let state = effects.state {
            samples.append(MetricSample("roost_effects_dead", state.deadCount))
            samples.append(MetricSample("roost_effects_unknown_kinds", state.unknownKinds.count))
        }
        if let late = effects.lateMilliseconds {
            samples.append(MetricSample("roost_effects_late_seconds", seconds: Double(late) / 1000))
        }
        return samples
    }

    private func files() -> [MetricSample] {
        guard configuration.database == nil else { return [] }
        return [("roost_database_bytes", "roost.sqlite"), ("roost_database_log_bytes", "roost.sqlite-wal")].compactMap {
            name, file in
            let path = configuration.dataDirectory.appending(path: file).path
            let size = (try? FileManager.default.attributesOfItem(atPath: path))?[.size] as? NSNumber
            return size.map { MetricSample(name, $0.int64Value) }
        }
    }
}
