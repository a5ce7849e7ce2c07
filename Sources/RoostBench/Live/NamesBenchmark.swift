import Foundation
import RoostAPI
import RoostCore

/// Measures name changes of users who are in many channels, and a client's request for all the users it shows.
struct NamesBenchmark: Benchmark {
    static let name = "names"
    private let viewer = UserID("viewer")

    func figures(in directory: URL, scale: BenchScale) async throws -> [Figure] {
        let movers = (0..<scale.pick(20, quick: 20, smoke: 3)).map { UserID("mover-\($0)") }
        let people = (0..<Limits.changedUsersPerCall).map { UserID("user-\($0)") }
        let channels = (0..<scale.pick(2000, quick: 2000, smoke: 40)).map { ChannelID("channel-\($0)") }
        try Seed.fill(directory) { seed in
            try seed.addUsers([viewer, "settled"] + movers + people)
            try seed.forEach(channels) { try $0.perform(CreateChannel(channel: $1, users: movers), as: viewer) }
            try seed.forEach([0]) { batch, _ in
                try batch.perform(CreateChannel(channel: "home"), as: "settled")
            }
        }
        let tokens = try await BenchTokens(directory: directory).tokens(for: [viewer, "settled"] + movers)
        let server = try BenchServer(directory: directory)
        defer { server.end() }
        let loop = LoadLoop()
        try loop.connect(port: server.port, tokens: tokens)
        _ = try loop.sockets[0].call(WatchChannel(channel: channels[0], limit: 0))
        try loop.run(for: 0.3)

        let count = scale.pick(500, quick: 200, smoke: 5)
        let settled = try rename(loop, server, socket: 1, count)
        let mover = try rename(loop, server, socket: 2, count)
        // The pending signals about these users have been sent by then.
        try loop.run(for: scale == .smoke ? 0.3 : 3)
        let delivered = try deliverNames(loop, server, of: movers.count)
        let versions = Dictionary(uniqueKeysWithValues: people.map { ($0.rawValue, Int64(1)) })
        let request = try CallLoad(loop: loop, server: server, socket: 0)
            .repeating(ListChangedUsers(versions: versions), scale.pick(200, quick: 100, smoke: 3))
        loop.closeAll()
        let channelCount = channels.count
        return [
            Figure(
                "acknowledgement of a new name by a member of \(channelCount) channels, p50", mover.p50, "ms", floor: settled.p50,
                goals: [.atMost(1)]),
            Figure("the same, p99", mover.p99, "ms", floor: settled.p99),
            Figure("server CPU per new name, by a member of one channel", settled.cpu, "µs"),
            Figure("server CPU per new name that is told in \(channelCount) channels, all in", delivered / 1000, "ms"),
            Figure(
                "server CPU per question about \(people.count) users of whom nobody has changed", request.cpuPerCall / 1000, "ms"),
        ]
    }

    private struct Renames {
        var p50: Double
        var p99: Double
        var cpu: Double
    }

    /// Changes a user's name repeatedly.
    private func rename(_ loop: LoadLoop, _ server: BenchServer, socket: Int, _ count: Int) throws -> Renames {
        var times = Histogram()
        var last = Clock.now()
        let result = try CallLoad(loop: loop, server: server, socket: socket).run(count) { socket, number in
            if number > 0 { times.record(Clock.now() - last) }
            last = Clock.now()
            _ = try socket.call(UpdateMe(displayName: "name \(number)"))
        }
        return Renames(p50: times.microseconds(0.5) / 1000, p99: times.microseconds(0.99) / 1000, cpu: result.cpuPerCall)
    }

    /// Makes each of the movers change their name once, and waits until the viewer has received the changes.
    ///
    /// - Returns: Microseconds of CPU time for each.
    private func deliverNames(_ loop: LoadLoop, _ server: BenchServer, of count: Int) throws -> Double {
        let viewer = loop.sockets[0]
        viewer.signalCount = 0
        let before = server.usage
        for socket in loop.sockets.dropFirst(2) { _ = try socket.call(UpdateMe(displayName: "told")) }
        try loop.run(timeout: 30) { viewer.signalCount > 0 }
        // Includes the signals that follow a moment later.
        try loop.run(for: 1)
        return server.usage.cpuMicroseconds(since: before) / Double(count)
    }
}
