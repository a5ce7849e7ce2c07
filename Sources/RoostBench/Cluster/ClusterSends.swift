#if Cluster
import Foundation

/// Sends from one node: into many channels and into one.
extension ClusterRun {
    private enum Kind: CaseIterable {
        case many
        case one

        var name: String { self == .many ? "\(ClusterWorld.channelCount) channels" : "1 channel" }
        /// The lanes with work, and the channels of each: a channel's sends go to one lane.
        var lanes: Int { self == .many ? 4 : 1 }
        var channelsPerLane: Int { self == .many ? ClusterWorld.channelCount / 4 : 1 }
        var leastPerSecond: Double { self == .many ? 3000 : 2000 }
        var nodeGoals: [Figure.Goal] { self == .many ? [.atMost(45)] : [] }
        var databaseGoals: [Figure.Goal] { self == .many ? [.atMost(70)] : [] }
    }

    /// The result of a load of sends.
    struct Sends {
        let load: SendLoad.Result
        let usage: ClusterMeter.Usage
        let batchSize: Double?
    }

    func sends(in directory: URL) throws -> [Figure] {
        let loop = LoadLoop()
        let lone = SendLoad(senders: [.init(socket: 0, channel: world.own(0))], window: 1)
        let (cluster, low) = try withNodes(1) { meter in
            try connect(loop, to: meter.nodes[0], users: 0..<ClusterWorld.channelCount)
            defer { loop.closeAll() }
            let sends = try Kind.allCases.map { try measure($0, loop, meter) }
            return (sends, try lone.run(loop, seconds: min(3, seconds)))
        }
        let alone = try withServer { meter in
            try connect(loop, to: meter.nodes[0], users: 0..<ClusterWorld.channelCount, isAlone: true)
            defer { loop.closeAll() }
            return try Kind.allCases.map { try measure($0, loop, meter) }
        }
        var figures: [Figure] = []
        for (index, kind) in Kind.allCases.enumerated() {
            let peer = try PeerSends(
                services: services, batchSize: max(1, Int((cluster[index].batchSize ?? 100).rounded())), connections: kind.lanes,
                channelsPerConnection: kind.channelsPerLane
            ).run(in: directory, seconds: seconds)
            figures += self.figures(kind, cluster[index], peer: peer) + self.figures(kind, alone: alone[index])
        }
        figures += [
            Figure("PostgreSQL, one send at a time: acknowledgement p50", low.acknowledgements.median / 1000, "ms"),
            Figure("PostgreSQL, one send at a time: acknowledgement p99", low.acknowledgements.p99 / 1000, "ms"),
        ]
        return figures
    }

    private func measure(_ kind: Kind, _ loop: LoadLoop, _ meter: ClusterMeter) throws -> Sends {
        let senders =
            switch kind {
            case .many: (0..<ClusterWorld.channelCount).map { SendLoad.Sender(socket: $0, channel: world.own($0)) }
            case .one: (0..<ClusterWorld.hotSenderCount).map { SendLoad.Sender(socket: $0, channel: world.hot) }
            }
        // Enough of them under way to queue whole batches while one is being committed.
        return try measure(SendLoad(senders: senders, window: kind == .many ? 32 : 64), loop, meter)
    }

    /// Measures a load on one node, after a second of warming up.
    func measure(_ load: SendLoad, _ loop: LoadLoop, _ meter: ClusterMeter) throws -> Sends {
        // Plans are made, tables reach some size, processors leave their idle states.
        _ = try load.run(loop, seconds: 1)
        let batches = BatchCounter(port: meter.nodes[0].port)
        let (result, usage) = try meter.measure { try load.run(loop, seconds: seconds) }
        return Sends(load: result, usage: usage, batchSize: BatchCounter(port: meter.nodes[0].port)?.averageSize(since: batches))
    }

    private func figures(_ kind: Kind, _ sends: Sends, peer: PeerSends.Result) -> [Figure] {
        let name = "PostgreSQL, \(kind.name)"
        var figures = [
            Figure(
                "\(name): acknowledged sends", sends.load.sendsPerSecond, "1/s", floor: peer.messagesPerSecond,
                goals: [.atLeast(kind.leastPerSecond), .ratioAtLeast(0.5)])
        ]
        if let batchSize = sends.batchSize { figures.append(Figure("\(name): sends in one commit", batchSize, "")) }
        figures += sends.usage.figures(
            name, per: "send", count: sends.load.sent, peer: peer, nodeGoals: kind.nodeGoals, databaseGoals: kind.databaseGoals)
        figures += [
            Figure("\(name): acknowledgement p50", sends.load.acknowledgements.median / 1000, "ms"),
            Figure("\(name): acknowledgement p99", sends.load.acknowledgements.p99 / 1000, "ms"),
        ]
        return figures
    }

    private func figures(_ kind: Kind, alone sends: Sends) -> [Figure] {
        let name = "SQLite, \(kind.name)"
        var figures = [Figure("\(name): acknowledged sends", sends.load.sendsPerSecond, "1/s")]
        if let batchSize = sends.batchSize { figures.append(Figure("\(name): sends in one commit", batchSize, "")) }
        figures += [
            Figure("\(name): node's CPU per send", sends.usage.allNodes / Double(sends.load.sent), "µs"),
            Figure("\(name): acknowledgement p50", sends.load.acknowledgements.median / 1000, "ms"),
        ]
        return figures
    }
}
#endif
