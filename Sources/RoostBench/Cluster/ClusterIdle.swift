#if Cluster
import Foundation
import RoostAPI
import RoostDatabase

/// Measures the memory of idle connections: in the node, and in NATS, where the node subscribes to each user and each channel.
///
/// Each connection has its own user, who is a member of one channel of a hundred. So most channels have all their members on one node, which gives
/// the fewest subscriptions; each further channel that a node needs is one more.
extension ClusterRun {
    func idle(connections: Int) async throws -> [Figure] {
        try OpenFiles.require(sockets: connections)
        try fillIdle(connections)
        let tokens = try await nodeTokens(of: (0..<connections).map(world.idleUser))
        return try withNodes(1) { meter in
            let loop = LoadLoop()
            defer { loop.closeAll() }
            let node = meter.nodes[0]
            let empty = (node: node.usage.residentBytes, bus: services.busResidentBytes, subscriptions: services.busSubscriptions)
            let start = Clock.now()
            let (_, connecting) = try meter.measure { try loop.connect(port: node.port, tokens: tokens) }
            let connectSeconds = Double(Clock.now() - start) / 1e9
            // Lets the work of connecting end.
            try loop.run(for: 5)
            let (_, resting) = try meter.measure { try loop.run(for: seconds) }
            let count = Double(connections)
            let title = "\(connections) idle connections"
            var figures = [
                Figure("\(title): held", node.metric("roost_sockets") ?? 0, "", goals: [.atLeast(count)]),
                Figure("\(title): node's RSS per connection", (node.usage.residentBytes - empty.node) / count / 1000, "KB"),
                Figure("\(title): made per second, one node", count / connectSeconds, "1/s"),
            ]
            figures += connecting.figures(title, per: "connection made", count: connections)
            figures.append(Figure("\(title): node's CPU, of one core", resting.allNodes / seconds / 1e4, "%"))
            if let database = resting.database {
                // The node keeps comparing the positions of its streams with the database.
                figures.append(Figure("\(title): PostgreSQL's CPU, of one core", database / seconds / 1e4, "%"))
            }
            if let before = empty.subscriptions, let after = services.busSubscriptions {
                figures.append(Figure("\(title): subscriptions at NATS per connection", (after - before) / count, ""))
            }
            if let before = empty.bus, let after = services.busResidentBytes {
                figures.append(Figure("\(title): NATS's RSS per connection", (after - before) / count / 1000, "KB"))
            }
            return figures
        }
    }

    private func fillIdle(_ connections: Int) throws {
        let users = (0..<connections).map(world.idleUser)
        try Seed.fill(try PostgreSQLDatabase(url: services.databaseURL, laneCount: 1, readerCount: 1)) { seed in
            try seed.addUsers(users)
            try seed.forEach(Array(users.enumerated())) { batch, entry in
                let channel = ChannelID(world.idleChannel(ofUser: entry.offset))
                if entry.offset % 100 == 0 {
                    try batch.perform(CreateChannel(channel: channel), as: entry.element)
                } else {
                    try batch.perform(JoinChannel(channel: channel), as: entry.element)
                }
            }
        }
    }
}
#endif
