import Foundation
import RoostAPI
import RoostCore

/// Measures a page anywhere in a long history, and a call that reads next to nothing, which shows the cost common to all calls. The floor of a page
/// is SQLite alone, stepping through the same rows and reading their columns.
struct HistoryBenchmark: Benchmark {
    static let name = "history"
    private let pageSize = 50
    let channel = ChannelID("history")

    func figures(in directory: URL, scale: BenchScale) async throws -> [Figure] {
        let user = UserID("ann")
        let messageCount = scale.pick(1_000_000, quick: 100_000, smoke: 1000)
        try Seed.fill(directory) { seed in
            try seed.addUsers([user])
            try seed.forEach([channel]) { try $0.perform(CreateChannel(channel: $1), as: user) }
            try seed.forEach(0..<messageCount) { batch, number in
                try batch.perform(
                    SendMessage(channel: channel, clientId: ClientID("\(number)"), text: SampleText.message), as: user)
            }
        }
        let tokens = try await BenchTokens(directory: directory).tokens(for: [user])
        let server = try BenchServer(directory: directory)
        defer { server.end() }
        let loop = LoadLoop()
        try loop.connect(port: server.port, tokens: tokens)
        _ = try measure(loop, server, newest: messageCount, window: 1, seconds: scale.warmUpSeconds)
        let alone = try measure(loop, server, newest: messageCount, window: 1, seconds: scale.pick(5, quick: 2, smoke: 0.2))
        let eight = try measure(loop, server, newest: messageCount, window: 8, seconds: scale.pick(5, quick: 2, smoke: 0.2))
        let calls = CallLoad(loop: loop, server: server, socket: 0)
        _ = try calls.repeating(GetMe(), scale.pick(1000, quick: 1000, smoke: 20))
        let call = try calls.repeating(GetMe(), scale.pick(20_000, quick: 5000, smoke: 100)).cpuPerCall
        loop.closeAll()
        server.end()
        let floor = try FloorPages.measure(
            in: directory, channel: channel.rawValue, pageSize: pageSize, positions: 100...messageCount,
            seconds: scale.pick(2, quick: 2, smoke: 0.2))
        return [
            Figure("server CPU per page of \(pageSize)", alone.cpuMicroseconds, "µs", floor: floor, goals: [.atMost(110)]),
            Figure("page p50", alone.pages.median / 1000, "ms"),
            Figure("page p99", alone.pages.p99 / 1000, "ms"),
            Figure("bytes of a page", alone.bytesPerPage / 1000, "KB"),
            Figure("server CPU per page, 8 under way", eight.cpuMicroseconds, "µs", floor: floor, goals: [.atMost(80)]),
            Figure("pages, 8 under way", eight.pagesPerSecond, "1/s"),
            Figure("page p50, 8 under way", eight.pages.median / 1000, "ms"),
            Figure("page p99, 8 under way", eight.pages.p99 / 1000, "ms"),
            Figure("server CPU per call that reads next to nothing", call, "µs", goals: [.atMost(40)]),
        ]
    }

    struct Measurement {
        var pagesPerSecond: Double
        var cpuMicroseconds: Double
        var bytesPerPage: Double
        var pages: Histogram
    }

    /// Requests pages of 50 before random places for some seconds, over the first socket.
    func measure(_ loop: LoadLoop, _ server: BenchServer, newest: Int, window: Int, seconds: Double) throws -> Measurement {
        let socket = loop.sockets[0]
        var askedAt: [Int: UInt64] = [:]
        var asked = 0
        var answered = 0
        var times = Histogram()
        let end = Clock.now() + UInt64(seconds * 1e9)

        func ask() throws {
            let start = Clock.now()
            let before = Seq.random(in: Seq(pageSize + 10)...Seq(newest))
            askedAt[try socket.call(ListMessages(channel: channel, before: before, limit: pageSize))] = start
            asked += 1
        }
        loop.onFrame = { _, frame, _ in
            guard case .reply(let call, _) = frame else { return }
            if let start = askedAt.removeValue(forKey: call) { times.record(loop.now - start) }
            answered += 1
            if loop.now < end { try ask() }
        }
        defer { loop.onFrame = { _, _, _ in } }

        loop.receivedBytes = 0
        let before = server.usage
        let start = Clock.now()
        for _ in 0..<window { try ask() }
        try loop.run(timeout: seconds + 30) { answered == asked }
        let elapsed = Double(Clock.now() - start) / 1e9
        let count = Double(answered)
        return Measurement(
            pagesPerSecond: count / elapsed, cpuMicroseconds: server.usage.cpuMicroseconds(since: before) / count,
            bytesPerPage: Double(loop.receivedBytes) / count, pages: times)
    }
}
