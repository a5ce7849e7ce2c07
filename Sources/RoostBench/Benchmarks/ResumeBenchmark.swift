import Foundation
import RoostAPI
import RoostCore

/// Measures a resume: a member of 1,000 channels missed 500 messages, one in every other channel.
struct ResumeBenchmark: Benchmark {
    static let name = "resume"

    func figures(in directory: URL, scale: BenchScale) async throws -> [Figure] {
        let (channelCount, missedCount) = scale.pick((1000, 500), quick: (1000, 500), smoke: (40, 20))
        let ann = UserID("ann")
        let bob = UserID("bob")
        let channels = (0..<channelCount).map { ChannelID("channel-\($0)") }
        let held = try fill(directory, channels, missed: missedCount, reader: ann, writer: bob)
        let tokens = try await BenchTokens(directory: directory).tokens(for: [ann])
        let server = try BenchServer(directory: directory)
        defer { server.end() }
        let loop = LoadLoop()
        try loop.connect(port: server.port, tokens: tokens)

        var answered = 0
        var answer: [UInt8] = []
        var answeredAt: UInt64 = 0
        loop.onFrame = { _, frame, payload in
            guard case .reply = frame else { return }
            answered += 1
            answeredAt = loop.now
            if answer.isEmpty { answer = Array(payload) }
        }
        defer { loop.onFrame = { _, _, _ in } }
        var times = Histogram()
        loop.receivedBytes = 0
        let rounds = scale.pick(300, quick: 50, smoke: 5)
        let before = server.usage
        for round in 1...rounds {
            let start = Clock.now()
            // An offline client keeps its positions, so every round requests the same events.
            try loop.sockets[0].call(Resume(after: held.user, channels: held.channels))
            try loop.run(timeout: 30) { answered == round }
            times.record(answeredAt - start)
        }
        let cpu = server.usage.cpuMicroseconds(since: before) / Double(rounds)
        let resumption = try Self.decode(answer)
        let missed = resumption.channels.reduce(0) { $0 + ($1.rows.messages?.count ?? 0) }
        guard missed <= missedCount, missed == missedCount || resumption.hasMore else {
            throw BenchFailure("the server reported \(missed) missed messages, not \(missedCount)")
        }
        return [
            Figure("round trips", resumption.hasMore ? 2 : 1, "", goals: [.atMost(1)]),
            Figure("resume p50", times.median / 1000, "ms", goals: [.atMost(50)]),
            Figure("resume p99", times.p99 / 1000, "ms"),
            Figure("server CPU per resume", cpu / 1000, "ms"),
            Figure("bytes of the answer", Double(loop.receivedBytes) / Double(rounds) / 1000, "KB"),
        ]
    }

    /// Makes the channels, stores the reader's positions, and lets the writer continue.
    private func fill(
        _ directory: URL, _ channels: [ChannelID], missed: Int, reader: UserID, writer: UserID
    ) throws -> (
        user: Seq, channels: [String: Seq]
    ) {
        var held: [String: Seq] = [:]
        var user: Seq = 0
        try Seed.fill(directory) { seed in
            try seed.addUsers([reader, writer])
            try seed.forEach(channels) { batch, channel in
                try batch.perform(CreateChannel(channel: channel, users: [reader]), as: writer)
                for number in 0..<3 {
                    let text = SampleText.message
                    let sent = try batch.perform(
                        SendMessage(channel: channel, clientId: ClientID("old-\(number)"), text: text), as: writer)
                    held[channel.rawValue] = sent.seq
                }
            }
            try seed.forEach([reader]) { batch, reader in
                user = try batch.perform(Resume(after: 0, channels: held), as: reader).user.seq
            }
            try seed.forEach(0..<missed) { batch, number in
                let channel = channels[number * 2 % channels.count]
                try batch.perform(
                    SendMessage(channel: channel, clientId: ClientID("new-\(number)"), text: SampleText.message), as: writer)
            }
        }
        return (user, held)
    }

    private static func decode(_ answer: [UInt8]) throws -> Resumption {
        struct Reply: Decodable { let result: Resumption }
        return try JSONDecoder().decode(Reply.self, from: Data(answer)).result
    }
}
