#if Cluster
import Foundation
import RoostAPI
import RoostDatabase

/// The same sends over few and over many channels of a database with messages in it: each channel has its own rows, which have to be found, locked
/// and written.
///
/// The floor is what a node does over the fewest of these channels, so the ratio is the cost of more channels.
extension ClusterRun {
    func spread(_ scale: BenchScale) throws -> [Figure] {
        let fewest = ClusterWorld.channelCount
        let channelCounts = scale.pick([fewest, 1000, 10_000], quick: [fewest, 1000, 10_000], smoke: [fewest, 100])
        try fillSpread(
            channelCount: channelCounts.max() ?? fewest, messageCount: scale.pick(100_000, quick: 20_000, smoke: 400))
        var figures: [Figure] = []
        var floor: Sends?
        for count in channelCounts {
            let sends = try withNodes(1) { try spread(over: count, $0) }
            figures += self.figures(channelCount: count, sends, floor: floor)
            floor = floor ?? sends
        }
        return figures
    }

    /// The channels alternate, so that a channel's messages aren't adjacent.
    private func fillSpread(channelCount: Int, messageCount: Int) throws {
        try Seed.fill(try PostgreSQLDatabase(url: services.databaseURL, laneCount: 1, readerCount: 1)) { seed in
            try seed.forEach(0..<channelCount) { batch, number in
                try batch.perform(CreateChannel(channel: ChannelID(world.spread(number))), as: world.ownerOfSpread(number))
            }
            try seed.forEach(0..<messageCount) { batch, number in
                let channel = number % channelCount
                let send = SendMessage(
                    channel: ChannelID(world.spread(channel)), clientId: ClientID("seed-\(number)"), text: SampleText.message)
                try batch.perform(send, as: world.ownerOfSpread(channel))
            }
        }
    }

    private func spread(over channelCount: Int, _ meter: ClusterMeter) throws -> Sends {
        let loop = LoadLoop()
        defer { loop.closeAll() }
        let senderCount = ClusterWorld.channelCount
        try connect(loop, to: meter.nodes[0], users: 0..<senderCount)
        let senders = (0..<senderCount).map { sender in
            SendLoad.Sender(
                socket: sender, channels: stride(from: sender, to: channelCount, by: senderCount).map { world.spread($0) })
        }
        return try measure(SendLoad(senders: senders, window: 32), loop, meter)
    }

    private func figures(channelCount: Int, _ sends: Sends, floor: Sends?) -> [Figure] {
        let name = "PostgreSQL, spread over \(channelCount) channels"
        var figures = [
            Figure("\(name): acknowledged sends", sends.load.sendsPerSecond, "1/s", floor: floor?.load.sendsPerSecond)
        ]
        if let batchSize = sends.batchSize { figures.append(Figure("\(name): sends in one commit", batchSize, "")) }
        figures.append(
            Figure("\(name): node's CPU per send", sends.nodeMicroseconds, "µs", floor: floor?.nodeMicroseconds))
        if let database = sends.databaseMicroseconds {
            figures.append(
                Figure("\(name): PostgreSQL's CPU per send", database, "µs", floor: floor?.databaseMicroseconds))
        }
        figures.append(Figure("\(name): acknowledgement p99", sends.load.acknowledgements.p99 / 1000, "ms"))
        return figures
    }
}

extension ClusterRun.Sends {
    fileprivate var nodeMicroseconds: Double { usage.allNodes / Double(load.sent) }
    /// Nil for an external server.
    fileprivate var databaseMicroseconds: Double? { usage.database.map { $0 / Double(load.sent) } }
}
#endif
