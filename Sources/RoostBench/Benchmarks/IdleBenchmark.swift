import Foundation
import RoostAPI
import RoostCore

/// Measures the memory of an idle connection. Each has its own user, who is a member of one channel of a hundred.
struct IdleBenchmark: Benchmark {
    static let name = "idle"
    var socketCount = 10_000

    func figures(in directory: URL, scale: BenchScale) async throws -> [Figure] {
        let socketCount = scale.pick(socketCount, quick: socketCount, smoke: 100)
        try OpenFiles.require(sockets: socketCount)
        let users = (0..<socketCount).map { UserID("user-\($0)") }
        try Seed.channelsOfHundred(users, in: directory)
        let tokens = try await BenchTokens(directory: directory).tokens(for: users)
        let server = try BenchServer(directory: directory)
        defer { server.end() }
        let loop = LoadLoop()
        let empty = server.usage
        let start = Clock.now()
        try loop.connect(port: server.port, tokens: tokens)
        let connectSeconds = Double(Clock.now() - start) / 1e9
        let connected = server.usage
        try loop.run(for: scale.pick(2, quick: 2, smoke: 0.2))

        let before = server.usage
        let seconds = scale.pick(30.0, quick: 5, smoke: 0.3)
        try loop.run(for: seconds)
        let after = server.usage
        let held = server.metric("roost_sockets") ?? 0
        loop.closeAll()
        return [
            Figure("connections held", held, "", goals: [.atLeast(Double(socketCount))]),
            Figure(
                "RSS per connection", (after.residentBytes - empty.residentBytes) / Double(socketCount) / 1000, "KB",
                goals: [.atMost(7)]),
            Figure("RSS of the server without connections", empty.residentBytes / 1e6, "MB"),
            Figure("authenticated connections", Double(socketCount) / connectSeconds, "1/s"),
            Figure("server CPU per connection made", connected.cpuMicroseconds(since: empty) / Double(socketCount), "µs"),
            Figure("server CPU while idle, of one core", after.cpuMicroseconds(since: before) / seconds / 1e4, "%"),
        ]
    }
}
