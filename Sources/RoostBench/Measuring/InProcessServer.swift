import CoreMetrics
import Foundation
import Logging
import RoostAPI
import RoostCore
import RoostServer

/// A server in this process, which takes work without a socket: this measures the engine and the parts it drives.
///
/// Its CPU time is this process's, so as little else as possible should happen in it.
final class InProcessServer: Sendable {
    let port: UInt16
    /// The counts of all servers of this process.
    private static let metrics: PrometheusRegistry = {
        let metrics = PrometheusRegistry()
        MetricsSystem.bootstrap(metrics)
        return metrics
    }()

    private let server: RoostServer
    private let running: Task<Void, any Error>

    /// - Parameter database: The URL of a PostgreSQL database; nil for SQLite in the directory.
    init(directory: URL, database: String? = nil, effects: EffectSettings) async throws {
        var configuration = RoostServer.Configuration(dataDirectory: directory)
        configuration.database = database
        configuration.port = 0
        configuration.drainWindow = .zero
        configuration.eventLoopCount = 1
        configuration.effects = effects
        var logger = Logger(label: "bench")
        logger.logLevel = .critical
        let (ports, onPort) = AsyncStream.makeStream(of: Int.self)
        let server = try await RoostServer(configuration: configuration, metrics: Self.metrics, logger: logger) { port in
            onPort.yield(port)
        }
        self.server = server
        running = Task {
            defer { onPort.finish() }
            try await server.run()
        }
        guard let port = await ports.first(where: { _ in true }) else {
            try await running.value
            throw BenchFailure("a server ended before it listened")
        }
        self.port = UInt16(clamping: port)
    }

    /// Runs a body in a transaction, as the engine runs an operation.
    func perform(
        as caller: Caller = .server, scope: Scope = Scope(), _ run: @escaping @Sendable (inout Context) throws -> Void
    ) async throws {
        try await server.perform(as: caller, scope: scope, run)
    }

    func end() async throws {
        running.cancel()
        try await running.value
    }
}
