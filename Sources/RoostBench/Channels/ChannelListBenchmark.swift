import Foundation
import RoostAPI
import RoostCore

/// Measures the server's list of a user's channels: its first page, and the sum of the unread counts, both while nothing happens and after messages
/// in some channels, which then have to be read again. Once for the most channels that a user may have by default, once for very many.
struct ChannelListBenchmark: Benchmark {
    static let name = "channel list"
    private let user = UserID("reader")
    private let writer = UserID("writer")
    /// The channels that get a new message each time.
    private let movedCount = 20

    private struct Size {
        let channels: Int
        /// The upper limits, in milliseconds.
        let page, total: Double
        /// Whether other orders are measured too.
        var hasOrders = false
    }

    func figures(in directory: URL, scale: BenchScale) async throws -> [Figure] {
        let common = Size(channels: scale.pick(2000, quick: 2000, smoke: 40), page: 0.6, total: 0.2)
        let large = Size(channels: scale.pick(10_000, quick: 10_000, smoke: 60), page: 3, total: 1, hasOrders: true)
        var figures: [Figure] = []
        for size in scale.pick([common, large], quick: [common], smoke: [common, large]) {
            figures += try await self.figures(of: size, in: directory.appending(path: "\(size.channels)"), scale)
        }
        return figures
    }

    private func figures(of size: Size, in directory: URL, _ scale: BenchScale) async throws -> [Figure] {
        let channels = try ChannelListWorld.fill(directory, user: user, writer: writer, count: size.channels)
        let tokens = try await BenchTokens(directory: directory).tokens(for: [user, writer])
        let server = try BenchServer(directory: directory, settings: ChannelListWorld.settings)
        defer { server.end() }
        let loop = LoadLoop()
        defer { loop.closeAll() }
        try loop.connect(port: server.port, tokens: tokens)
        let load = CallLoad(loop: loop, server: server, socket: 0)
        let rounds = scale.pick(500, quick: 200, smoke: 10)

        /// Milliseconds of CPU time.
        func quiet(_ operation: some RoostAPI.Operation) throws -> Double {
            _ = try load.repeating(operation, 20)
            return try load.repeating(operation, rounds).cpuPerCall / 1000
        }
        func moving(_ operation: some RoostAPI.Operation) throws -> Double {
            var cpu = 0.0
            for round in 0..<rounds {
                try send(to: (0..<movedCount).map { channels[(round * movedCount + $0) * 37 % channels.count] }, loop)
                cpu += try load.repeating(operation, 1).cpuMicroseconds
            }
            return cpu / Double(rounds) / 1000
        }
        let page = QueryChannels(limit: 20)
        let name = "\(size.channels) channels"
        let moved = "after \(movedCount) messages in as many channels"
        var figures = [
            Figure("\(name): server CPU per first page", try quiet(page), "ms", goals: [.atMost(size.page)]),
            Figure("\(name): the same, \(moved)", try moving(page), "ms", goals: [.atMost(size.page)]),
        ]
        if size.hasOrders {
            figures += [
                Figure("\(name): the same, unread first", try quiet(QueryChannels(sort: .unreadFirst, limit: 20)), "ms"),
                Figure("\(name): the same, by name", try quiet(QueryChannels(sort: .name, limit: 20)), "ms"),
            ]
        }
        return figures + [
            Figure(
                "\(name): server CPU per total unread count", try quiet(GetTotalUnread()), "ms", goals: [.atMost(size.total)]),
            Figure("\(name): the total, \(moved)", try moving(GetTotalUnread()), "ms", goals: [.atMost(size.total)]),
        ]
    }

    /// Makes the writer send a message to each of some channels, and waits until both users have received them and the server is idle.
    private func send(to channels: [ChannelID], _ loop: LoadLoop) throws {
        var answered = 0
        for socket in loop.sockets { socket.eventCount = 0 }
        loop.onFrame = { _, frame, _ in if case .reply = frame { answered += 1 } }
        defer { loop.onFrame = { _, _, _ in } }
        for channel in channels { _ = loop.sockets[1].sendMessage(to: channel.rawValue, text: SampleText.message) }
        try loop.run(timeout: 30) { answered == channels.count && loop.sockets.allSatisfy { $0.eventCount >= channels.count } }
        try loop.run(for: 0.002)
    }
}
