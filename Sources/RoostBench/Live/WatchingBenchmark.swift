import Foundation
import RoostAPI
import RoostCore

/// Measures sockets that start and stop watching channels, and pages of a channel's watchers.
struct WatchingBenchmark: Benchmark {
    static let name = "watching"
    let socketCount: Int

    func figures(in directory: URL, scale: BenchScale) async throws -> [Figure] {
        try OpenFiles.require(sockets: socketCount)
        let count = scale.pick(socketCount, quick: min(2000, socketCount), smoke: 40)
        let users = (0..<count).map { UserID("user-\($0)") }
        let channels = (0..<100).map { ChannelID("channel-\($0)") }
        try Seed.fill(directory) { seed in
            try seed.addUsers(users)
            // Non-members may watch.
            try seed.forEach(channels) { try $0.perform(CreateChannel(channel: $1, type: .livestream), as: users[0]) }
        }
        let tokens = try await BenchTokens(directory: directory).tokens(for: users)
        let server = try BenchServer(directory: directory)
        defer { server.end() }
        let loop = LoadLoop()
        try loop.connect(port: server.port, tokens: tokens)

        let rounds = scale.pick(channels.count, quick: 20, smoke: 4)
        let before = server.usage
        let start = Clock.now()
        for channel in channels.prefix(rounds) {
            try all(loop) { try $0.call(WatchChannel(channel: channel, limit: 0)) }
            try all(loop) { try $0.call(UnwatchChannel(channel: channel)) }
        }
        let pairs = Double(rounds * count)
        let perPair = server.usage.cpuMicroseconds(since: before) / pairs
        let seconds = Double(Clock.now() - start) / 1e9

        try all(loop) { try $0.call(WatchChannel(channel: channels[0], limit: 0)) }
        // By then no more signals are sent about it.
        try loop.run(for: scale == .smoke ? 0.2 : 6)
        func page(_ offset: Int) throws -> Double {
            let load = CallLoad(loop: loop, server: server, socket: 0)
            let list = ListWatchers(channel: channels[0], limit: Limits.watcherPage.max, offset: offset)
            return try load.repeating(list, scale.pick(500, quick: 200, smoke: 10)).cpuPerCall / 1000
        }
        let first = try page(0)
        let last = try page(min(Limits.watcherOffset, max(0, count - Limits.watcherPage.max)))
        loop.closeAll()
        return [
            Figure("server CPU per start and stop of watching, \(count) sockets", perPair, "µs", goals: [.atMost(100)]),
            Figure("starts and stops a second", pairs / seconds, "/s"),
            Figure("server CPU per page of 300 of \(count) watchers, the first", first, "ms"),
            Figure("the same, the last", last, "ms", floor: first, goals: [.atMost(1)]),
        ]
    }

    /// Makes every socket call, and waits for the answers.
    private func all(_ loop: LoadLoop, _ call: (LoadSocket) throws -> Int) throws {
        var answered = 0
        loop.onFrame = { _, frame, _ in if case .reply = frame { answered += 1 } }
        defer { loop.onFrame = { _, _, _ in } }
        // Some at a time, as the server's queue is bounded.
        for start in stride(from: 0, to: loop.sockets.count, by: 1000) {
            let part = loop.sockets[start..<min(start + 1000, loop.sockets.count)]
            for socket in part { _ = try call(socket) }
            try loop.run(timeout: 60) { answered >= start + part.count }
        }
    }
}
