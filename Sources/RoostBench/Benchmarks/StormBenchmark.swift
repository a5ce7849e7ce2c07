import Foundation
import RoostAPI

/// A server that is killed with 10,000 connected clients, which all come back at once: how long until the last one is welcomed and has resumed, and
/// the server's cost per client.
///
/// Clients of a real app wait for random times first (docs/protocol.md): this is the worst case without that wait.
struct StormBenchmark: Benchmark {
    static let name = "storm"
    var clientCount = 10_000
    /// The connections being made at the same time, each until it is welcomed.
    private let connectingCount = 1000

    func figures(in directory: URL, scale: BenchScale) async throws -> [Figure] {
        let clientCount = scale.pick(clientCount, quick: clientCount, smoke: 100)
        try OpenFiles.require(sockets: clientCount)
        let users = (0..<clientCount).map { UserID("user-\($0)") }
        try Seed.channelsOfHundred(users, in: directory)
        let tokens = try await BenchTokens(directory: directory).tokens(for: users)
        let loop = LoadLoop()
        defer { loop.closeAll() }
        let first = try BenchServer(directory: directory)
        try loop.connect(port: first.port, tokens: tokens, atOnce: connectingCount)
        let positions = try positions(loop)
        let killed = Clock.now()
        first.kill()
        loop.closeAll()

        let server = try BenchServer(directory: directory, name: "server-again")
        defer { server.end() }
        let ready = Clock.now()
        let before = server.usage
        try loop.connect(port: server.port, tokens: tokens, atOnce: connectingCount)
        let welcomed = Clock.now()
        let connected = server.usage
        _ = try resume(loop) { Resume(after: positions[$0].user, channels: positions[$0].channels) }
        let resumed = Clock.now()
        let after = server.usage

        func seconds(_ end: UInt64) -> Double { Double(end - killed) / 1e9 }
        let count = Double(clientCount)
        return [
            Figure("ready after kill -9", Double(ready - killed) / 1e6, "ms"),
            Figure("all welcomed after kill -9", seconds(welcomed), "s", goals: [.atMost(3)]),
            Figure("all resumed after kill -9", seconds(resumed), "s"),
            Figure("server CPU per client welcomed", connected.cpuMicroseconds(since: before) / count, "µs", goals: [.atMost(160)]),
            Figure("server CPU per client resumed", after.cpuMicroseconds(since: connected) / count, "µs"),
        ]
    }

    private struct Positions {
        var user: Seq
        var channels: [String: Seq]
    }

    /// The positions of each client, as a new one gets them.
    private func positions(_ loop: LoadLoop) throws -> [Positions] {
        try resume(loop) { _ in Resume(after: 0, channels: [:]) }.map { answer in
            let channels = answer.channels.map { (String($0.stream.description.dropFirst("channel:".count)), $0.seq) }
            return Positions(user: answer.user.seq, channels: Dictionary(uniqueKeysWithValues: channels))
        }
    }

    /// Makes every client resume, and waits for the answers.
    private func resume(_ loop: LoadLoop, _ operation: (Int) -> Resume) throws -> [Resumption] {
        struct Reply: Decodable { let result: Resumption }
        var answers = [Data?](repeating: nil, count: loop.sockets.count)
        var answered = 0
        loop.onFrame = { socket, frame, payload in
            guard case .reply = frame else { return }
            answers[socket.number] = Data(payload)
            answered += 1
        }
        defer { loop.onFrame = { _, _, _ in } }
        for (number, socket) in loop.sockets.enumerated() { _ = try socket.call(operation(number)) }
        try loop.run(timeout: 60) { answered == answers.count }
        return try answers.compactMap { try $0.map { try JSONDecoder().decode(Reply.self, from: $0).result } }
    }
}
