#if Cluster
import Foundation

/// Measures delivery: to many sockets of one node, and on nodes that share the members of each channel.
extension ClusterRun {
    // MARK: To many sockets

    func fanout() throws -> [Figure] {
        let onCluster = try withNodes(1) { try fanout($0, name: "PostgreSQL", isAlone: false) }
        let alone = try withServer { try fanout($0, name: "SQLite", isAlone: true) }
        return onCluster + alone
    }

    private func fanout(_ meter: ClusterMeter, name: String, isAlone: Bool) throws -> [Figure] {
        let loop = LoadLoop()
        let node = meter.nodes[0]
        try connect(loop, to: node, users: 0..<world.userCount, isAlone: isAlone)
        defer { loop.closeAll() }
        let load = FanoutLoad(channel: world.wide)
        _ = try load.run(loop, node, window: 1, seconds: 0.5)
        let saturated = try load.run(loop, node, window: 64, seconds: seconds)
        let single = try load.run(loop, node, window: 1, seconds: min(5, seconds))
        let title = "\(name), \(world.userCount) sockets"
        return [
            Figure("\(title): deliveries, saturated", saturated.deliveriesPerSecond, "1/s"),
            Figure("\(title): messages in one write, saturated", saturated.messagesPerWrite, ""),
            Figure("\(title): node's CPU per delivery, saturated", saturated.cpuMicroseconds, "µs"),
            Figure("\(title): node's CPU per delivery, single message", single.cpuMicroseconds, "µs"),
            Figure("\(title): delivery p50, single message", single.deliveries.median / 1000, "ms"),
        ]
    }

    // MARK: On one node, two and three

    func nodes() throws -> [Figure] { try (1...3).flatMap { count in try withNodes(count) { try nodes(count, $0) } } }

    /// Each channel has three members, spread over the nodes, and one of them sends.
    private func nodes(_ count: Int, _ meter: ClusterMeter) throws -> [Figure] {
        let loop = LoadLoop()
        defer { loop.closeAll() }
        var socketOfUser: [Int: Int] = [:]
        for (number, node) in meter.nodes.enumerated() {
            let users = (0..<ClusterWorld.channelCount).flatMap { channel in
                (0..<ClusterWorld.membersOfShared).filter { (channel + $0) % count == number }.map {
                    world.memberOfShared(channel, $0)
                }
            }
            for user in users { socketOfUser[user] = socketOfUser.count }
            try connect(loop, to: node, users: users)
        }
        let senders = (0..<ClusterWorld.channelCount).map { channel in
            SendLoad.Sender(
                socket: socketOfUser[world.memberOfShared(channel, 0)] ?? 0, channel: world.shared(channel, nodeCount: count),
                receivers: ClusterWorld.membersOfShared)
        }
        let load = SendLoad(senders: senders, window: 32)
        _ = try load.run(loop, seconds: 1)
        let batches = meter.nodes.map { BatchCounter(port: $0.port) }
        let gaps = meter.nodes.map { $0.metric("roost_cluster_gaps_fetched_total") ?? 0 }.reduce(0, +)
        let busBefore = services.busMessages()
        let (result, usage) = try meter.measure { try load.run(loop, seconds: seconds) }
        let busAfter = services.busMessages()
        let gapsAfter = meter.nodes.map { $0.metric("roost_cluster_gaps_fetched_total") ?? 0 }.reduce(0, +)
        let sizes = zip(meter.nodes, batches).compactMap { BatchCounter(port: $0.port)?.averageSize(since: $1) }

        let title = count == 1 ? "1 node" : "\(count) nodes"
        var figures = [
            Figure("\(title): acknowledged sends, all together", result.sendsPerSecond, "1/s"),
            Figure("\(title): deliveries, all together", result.deliveriesPerSecond, "1/s"),
            Figure("\(title): sends in one commit", sizes.reduce(0, +) / Double(max(1, sizes.count)), ""),
            Figure("\(title): all nodes' CPU per send", usage.allNodes / Double(result.sent), "µs"),
        ]
        figures += usage.figures(title, per: "send, of all", count: result.sent)
        if let busBefore, let busAfter {
            let sent = Double(result.sent)
            figures.append(Figure("\(title): packets that NATS delivers, per send", (busAfter.sent - busBefore.sent) / sent, ""))
        }
        figures.append(Figure("\(title): gaps that nodes filled from PostgreSQL", gapsAfter - gaps, ""))
        return figures
    }
}
#endif
