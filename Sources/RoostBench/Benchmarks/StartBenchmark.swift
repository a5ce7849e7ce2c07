import Foundation
import RoostAPI
import RoostCore
import RoostDatabase

/// How long a server takes to become ready: on an empty directory, on a used one, and on one whose server was killed when its log was nearly full.
/// The median of several starts.
struct StartBenchmark: Benchmark {
    static let name = "start"
    var messageCount = 1_000_000

    private let channelCount = 100
    /// Sends under way while the log is filled.
    private let window = 32

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
            try seed.forEach(0..<channelCount) {
                try $0.perform(CreateChannel(channel: ChannelID("channel-\($1)")), as: user)
            }
            try seed.forEach(0..<count) { batch, number in
                let send = SendMessage(
                    channel: ChannelID("channel-\(number % channelCount)"), clientId: ClientID("\(number)"),
                    text: SampleText.message)
                try batch.perform(send, as: user)
            }
        }
        let seedSeconds = Double(Clock.now() - begin) / 1e9
        let full = try (0..<starts).map { _ in try start(used) }
        let tokens = try await BenchTokens(directory: used).tokens(for: [user])
        // A little less than the size at which a checkpoint is due, so that none begins before the kill.
        let logBytes = scale.pick(
            DataFiles.logSizeBytesDue - 2_000_000, quick: DataFiles.logSizeBytesDue - 2_000_000, smoke: 300_000)
        let killed = try (0..<starts).map { _ -> (milliseconds: Double, logBytes: Double) in
            let size = try kill(on: used, tokens: tokens, logBytes: logBytes)
            return (milliseconds: try start(used), logBytes: size)
        }
        return [
            Figure("ready on an empty directory", median(empty), "ms", goals: [.atMost(150)]),
            Figure("ready on \(count) messages", median(full), "ms", goals: [.atMost(1000)]),
            Figure(
                "ready after kill -9 with a full log", median(killed.map { $0.milliseconds }), "ms", goals: [.atMost(1000)]),
            Figure("the log of the server that was killed", median(killed.map { $0.logBytes }) / 1e6, "MB"),
            Figure("messages a second through the rules alone", Double(count) / seedSeconds, "1/s"),
        ]
    }

    private func start(_ directory: URL) throws -> Double {
        let server = try BenchServer(directory: directory)
        server.end()
        return server.startMilliseconds
    }

    /// Makes a server store messages until its log has a given size, then kills it as a crash would.
    ///
    /// A start leaves an empty log, so the size of the file tells how much of it has to be read.
    /// - Returns: The bytes of the log.
    private func kill(on directory: URL, tokens: [String], logBytes: Int64) throws -> Double {
        let server = try BenchServer(directory: directory, name: "server-killed")
        let loop = LoadLoop()
        defer { loop.closeAll() }
        try loop.connect(port: server.port, tokens: tokens)
        let log = DataFiles(directory: directory).log
        try send(loop) { DataFiles.size(of: log) ?? 0 >= logBytes }
        server.kill()
        return Double(DataFiles.size(of: log) ?? 0)
    }

    /// Sends until a condition holds, over all channels and with client ids like an app's: most pages of the log are then different ones, which a
    /// start after a kill has to write into the database.
    private func send(_ loop: LoadLoop, until isDone: () -> Bool) throws {
        let caller = loop.sockets[0]
        var sent = 0
        func sendNext() throws {
            let channel = ChannelID("channel-\(sent % channelCount)")
            try caller.call(SendMessage(channel: channel, clientId: ClientID.random(), text: SampleText.message))
            sent += 1
        }
        loop.onFrame = { _, frame, _ in
            if case .reply = frame { try sendNext() }
        }
        defer { loop.onFrame = { _, _, _ in } }
        for _ in 0..<window { try sendNext() }
        try loop.run(timeout: 120, until: isDone)
    }

    private func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }
}
