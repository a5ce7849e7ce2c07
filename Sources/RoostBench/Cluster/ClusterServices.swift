#if Cluster
import Foundation

/// A PostgreSQL server and a NATS server: the benchmark's own, in its directory and on free ports, or external ones.
///
/// CPU time and message counts are known for its own servers only.
final class ClusterServices {
    let databaseURL: String
    let busURL: String
    private let database: DatabaseService?
    private let bus: ChildProcess?
    private let monitorPort: UInt16

    init(directory: URL, databaseURL: String?, busURL: String?) throws {
        if let databaseURL {
            database = nil
            self.databaseURL = databaseURL
        } else {
            let database = try DatabaseService(directory: directory)
            self.database = database
            self.databaseURL = database.url
        }
        monitorPort = try LoopbackSocket.freePort()
        if let busURL {
            bus = nil
            self.busURL = busURL
        } else {
            let port = try LoopbackSocket.freePort()
            bus = try Self.startBus(in: directory, port: port, monitorPort: monitorPort)
            self.busURL = "nats://127.0.0.1:\(port)"
        }
    }

    func end() {
        bus?.end()
        database?.end()
    }

    /// Nil for an external server.
    var databaseCPUSeconds: Double? { database?.cpuSeconds }

    // MARK: NATS

    private static func startBus(in directory: URL, port: UInt16, monitorPort: UInt16) throws -> ChildProcess {
        try ChildProcess.startServer(
            try ServerPrograms.nats(), ["-a", "127.0.0.1", "-p", "\(port)", "-m", "\(monitorPort)"],
            log: directory.appending(path: "nats.log"), port: port)
    }

    var busCPUSeconds: Double? { bus?.usage.cpuSeconds }

    struct BusMessages {
        /// From nodes to the server, and from the server to nodes.
        let received: Double
        let sent: Double
    }

    /// Returns the server's own counts. Nil for an external server.
    func busMessages() -> BusMessages? {
        guard let counts = busCounts, let received = counts["in_msgs"] as? Double, let sent = counts["out_msgs"] as? Double else {
            return nil
        }
        return BusMessages(received: received, sent: sent)
    }

    var busSubscriptions: Double? { busCounts?["subscriptions"] as? Double }
    var busResidentBytes: Double? { bus?.usage.residentBytes }

    private var busCounts: [String: Any]? {
        guard bus != nil, let answer = LoopbackSocket.get("/varz", port: monitorPort), let head = answer.range(of: "\r\n\r\n")
        else { return nil }
        return try? JSONSerialization.jsonObject(with: Data(answer[head.upperBound...].utf8)) as? [String: Any]
    }
}
#endif
