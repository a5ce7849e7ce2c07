#if Cluster
import Foundation

/// The CPU time of all participants during a measurement.
struct ClusterMeter {
    let nodes: [BenchServer]
    let services: ClusterServices

    struct Usage {
        /// Microseconds; nil for external servers.
        fileprivate(set) var nodes: [Double]
        fileprivate(set) var database: Double?
        fileprivate(set) var bus: Double?
        fileprivate(set) var load: Double

        var allNodes: Double { nodes.reduce(0, +) }
    }

    func measure<T>(_ body: () throws -> T) throws -> (T, Usage) {
        let before = current
        let result = try body()
        let after = current
        let usage = Usage(
            nodes: zip(after.nodes, before.nodes).map { $0 - $1 }, database: difference(after.database, before.database),
            bus: difference(after.bus, before.bus), load: after.load - before.load)
        return (result, usage)
    }

    private func difference(_ after: Double?, _ before: Double?) -> Double? {
        guard let after, let before else { return nil }
        return after - before
    }

    private var current: Usage {
        Usage(
            nodes: nodes.map { $0.usage.cpuSeconds * 1e6 }, database: services.databaseCPUSeconds.map { $0 * 1e6 },
            bus: services.busCPUSeconds.map { $0 * 1e6 }, load: ProcessUsage(of: getpid()).cpuSeconds * 1e6)
    }
}

extension ClusterMeter.Usage {
    /// The cost of one operation for each process.
    ///
    /// - Parameters:
    ///   - name: The subject of the operations, before the colon.
    ///   - count: How many there were.
    ///   - peer: The cost of one of them without Roost.
    ///   - nodeGoals: The goals for each node.
    ///   - databaseGoals: The goals for PostgreSQL.
    func figures(
        _ name: String, per operation: String, count: Int, peer: PeerSends.Result? = nil, nodeGoals: [Figure.Goal] = [],
        databaseGoals: [Figure.Goal] = []
    ) -> [Figure] {
        let count = Double(max(1, count))
        var figures: [Figure] = []
        for (number, microseconds) in nodes.enumerated() {
            let node = nodes.count == 1 ? "node's CPU" : "CPU of node \(number + 1)"
            let floor = peer?.clientMicroseconds
            figures.append(Figure("\(name): \(node) per \(operation)", microseconds / count, "µs", floor: floor, goals: nodeGoals))
        }
        if let database {
            let floor = peer?.databaseMicroseconds
            figures.append(
                Figure("\(name): PostgreSQL's CPU per \(operation)", database / count, "µs", floor: floor, goals: databaseGoals))
        }
        if let bus { figures.append(Figure("\(name): NATS's CPU per \(operation)", bus / count, "µs")) }
        figures.append(Figure("\(name): load generator's CPU per \(operation)", load / count, "µs"))
        return figures
    }
}
#endif
