import Foundation
import RoostAPI
import RoostCore

/// How long a server takes until it is ready: on an empty directory, and on one that has been used. The median of several starts.
struct StartBenchmark: Benchmark {
    static let name = "start"
    var messageCount = 1_000_000

    func figures(in directory: URL, scale: BenchScale) async throws -> [Figure] {
        let count = scale.pick(messageCount, quick: messageCount / 10, smoke: 500)
        let starts = scale.pick(7, quick: 3, smoke: 1)
        let empty = try (0..<starts).map { number in
            try start(directory.appending(path: "empty-\(number)"))
        }
        let used = directory.appending(path: "used")
        let user = UserID("ann")
        let begin = Clock.now()
        try Seed.fill(used) { seed in
            try seed.addUsers([user])
            try seed.forEach(0..<100) { try $0.perform(CreateChannel(channel: ChannelID("channel-\($1)")), as: user) }
            try seed.forEach(0..<count) { batch, number in
                let send = SendMessage(
                    channel: ChannelID("channel-\(number % 100)"), clientId: ClientID("\(number)"), text: SampleText.message)
                try batch.perform(send, as: user)
            }
        }
        let seedSeconds = Double(Clock.now() - begin) / 1e9
        let full = try (0..<starts).map { _ in try start(used) }
        return [
            Figure("ready on an empty directory", median(empty), "ms", goals: [.atMost(150)]),
            Figure("ready on \(count) messages", median(full), "ms", goals: [.atMost(1000)]),
            Figure("messages a second through the rules alone", Double(count) / seedSeconds, "1/s"),
        ]
    }

    private func start(_ directory: URL) throws -> Double {
        let server = try BenchServer(directory: directory)
        server.end()
        return server.startMilliseconds
    }

    private func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }
}
