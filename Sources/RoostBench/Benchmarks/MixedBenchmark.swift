import Foundation
import RoostAPI
import RoostCore

/// An app's mixed load: 2,000 connected users in 200 channels of 50 send, mark as read and open channels. The cost of a message includes everything
/// that goes with it, 50 deliveries among them.
struct MixedBenchmark: Benchmark {
    static let name = "mixed"
    private let memberCount = 50

    func figures(in directory: URL, scale: BenchScale) async throws -> [Figure] {
        let userCount = scale.pick(2000, quick: 2000, smoke: 100)
        let channelCount = userCount / 10
        try OpenFiles.require(sockets: userCount)
        let users = (0..<userCount).map { UserID("user-\($0)") }
        // Each channel has other members, and each user is in about five channels.
        let channels = (0..<channelCount).map { channel in
            (id: ChannelID("channel-\(channel)"), members: (0..<memberCount).map { (channel * 37 + $0) % userCount })
        }
        try Seed.fill(directory) { seed in
            try seed.addUsers(users)
            try seed.forEach(channels) { batch, channel in
                try batch.perform(CreateChannel(channel: channel.id), as: users[channel.members[0]])
                for member in channel.members.dropFirst() { try batch.perform(JoinChannel(channel: channel.id), as: users[member]) }
            }
        }
        let tokens = try await BenchTokens(directory: directory).tokens(for: users)
        let server = try BenchServer(directory: directory)
        defer { server.end() }
        let loop = LoadLoop()
        defer { loop.closeAll() }
        try loop.connect(port: server.port, tokens: tokens)

        var figures: [Figure] = []
        for pace in scale.pick([333, 1000], quick: [333, 1000], smoke: [50, 100]) {
            let load = MixedLoad(channels: channels, messagesPerSecond: pace)
            _ = try load.run(loop, server, seconds: scale.warmUpSeconds)
            let result = try load.run(loop, server, seconds: scale.pick(20, quick: 5, smoke: 0.2))
            let count = Double(result.messages)
            figures += [
                Figure(
                    "\(pace)/s: server CPU per message, all in", result.cpuMicroseconds / count, "µs",
                    goals: pace == 1000 ? [.atMost(500)] : []),
                Figure("\(pace)/s: deliveries of a message", Double(result.deliveries) / count, ""),
                Figure("\(pace)/s: acknowledgement p50", result.sends.median / 1000, "ms"),
                Figure("\(pace)/s: acknowledgement p99", result.sends.p99 / 1000, "ms"),
                Figure("\(pace)/s: read mark p99", result.marks.p99 / 1000, "ms"),
                Figure("\(pace)/s: page p99", result.pages.p99 / 1000, "ms"),
            ]
        }
        return figures
    }
}
