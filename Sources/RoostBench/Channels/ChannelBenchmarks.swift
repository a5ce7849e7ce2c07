import Foundation
import RoostAPI
import RoostCore

/// Measures a very large channel against one of ten members: the floor of each figure is the small channel in the same run.
struct LargeChannelBenchmark: Benchmark {
    static let name = "large channel"
    private let big = ChannelID("big")
    private let small = ChannelID("small")
    private let owner = UserID("owner")
    /// Joins and leaves during the measurement.
    private let mover = UserID("mover")
    private let onlineCount = 10

    func figures(in directory: URL, scale: BenchScale) async throws -> [Figure] {
        let users = (0..<scale.pick(299_000, quick: 30_000, smoke: 600)).map { UserID("user-\($0)") }
        let online = Array(users.prefix(onlineCount - 1))
        try Seed.fill(directory) { seed in
            try seed.addUsers([owner, mover] + users)
            try seed.forEach([big, small]) { try $0.perform(CreateChannel(channel: $1, users: online), as: owner) }
        }
        let tokens = try await BenchTokens(directory: directory).tokens(for: [owner, mover] + online)
        let server = try BenchServer(directory: directory)
        defer { server.end() }
        let loop = LoadLoop()
        try loop.connect(port: server.port, tokens: tokens)

        let memoryBefore = server.usage.residentBytes
        let added = try add(Array(users.dropFirst(online.count)), loop, server)
        let memoryAfter = server.usage.residentBytes
        let rounds = scale.pick(4000, quick: 1000, smoke: 20)
        let messages = try [big, small].map { try sends(to: $0, loop, server, seconds: scale.pick(5, quick: 2, smoke: 0.2)) }
        let moves = try [big, small].map { try joinsAndLeaves(in: $0, loop, server, rounds: rounds) }
        let pages = try [big, small].map { channel in
            try CallLoad(loop: loop, server: server, socket: 0).repeating(ListMembers(channel: channel, limit: 10), rounds)
                .cpuPerCall
        }
        let searches = try [big, small].map { channel in
            try CallLoad(loop: loop, server: server, socket: 0)
                .repeating(SearchMembers(channel: channel, text: "user-7", limit: 10), rounds).cpuPerCall
        }
        loop.closeAll()
        let count = Double(users.count - online.count)
        return [
            Figure("members added in bulk", count / added.seconds, "1/s", goals: [.atLeast(20_000)]),
            Figure("server CPU per member added", added.cpuMicroseconds / count, "µs", goals: [.atMost(45)]),
            Figure("memory for each of them", (memoryAfter - memoryBefore) / count, "B"),
            Figure("server CPU per message, 10 online", messages[0], "µs", floor: messages[1], goals: [.ratioAtMost(1.2)]),
            Figure("server CPU per join and leave", moves[0], "µs", floor: moves[1], goals: [.ratioAtMost(2)]),
            Figure("server CPU per page of 10 members", pages[0], "µs", floor: pages[1], goals: [.ratioAtMost(2)]),
            Figure("server CPU per search by id", searches[0], "µs", floor: searches[1]),
        ]
    }

    private func add(_ users: [UserID], _ loop: LoadLoop, _ server: BenchServer) throws -> CallLoad.Result {
        let calls = stride(from: 0, to: users.count, by: Limits.membersPerCall).map {
            Array(users[$0..<min($0 + Limits.membersPerCall, users.count)])
        }
        return try CallLoad(loop: loop, server: server, socket: 0).run(calls.count, window: 8) { socket, number in
            _ = try socket.call(AddMembers(channel: big, users: calls[number]))
        }
    }

    private func sends(to channel: ChannelID, _ loop: LoadLoop, _ server: BenchServer, seconds: Double) throws -> Double {
        let sender = SendLoad.Sender(socket: 0, channel: channel.rawValue, receivers: onlineCount)
        let load = SendLoad(senders: [sender], window: 1)
        _ = try load.run(loop, seconds: 0.5)
        let before = server.usage
        let result = try load.run(loop, seconds: seconds)
        return server.usage.cpuMicroseconds(since: before) / Double(result.sent)
    }

    private func joinsAndLeaves(in channel: ChannelID, _ loop: LoadLoop, _ server: BenchServer, rounds: Int) throws -> Double {
        try CallLoad(loop: loop, server: server, socket: 1).run(rounds) { socket, number in
            if number.isMultiple(of: 2) {
                _ = try socket.call(JoinChannel(channel: channel))
            } else {
                _ = try socket.call(LeaveChannel(channel: channel))
            }
        }.cpuPerCall
    }
}
