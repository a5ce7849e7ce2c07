import Foundation
import RoostAPI
import RoostCore

/// Measures one channel whose members all type, or all read: the cost, the signals to its watchers, and the effect on messages.
struct LiveBenchmark: Benchmark {
    static let name = "live"
    private let crowd = ChannelID("crowd")

    func figures(in directory: URL, scale: BenchScale) async throws -> [Figure] {
        let users = (0..<scale.pick(1000, quick: 1000, smoke: 40)).map { UserID("user-\($0)") }
        let seconds = scale.pick(10, quick: 4, smoke: 1)
        try Seed.fill(directory) { seed in
            try seed.addUsers(users)
            try seed.forEach([0]) { batch, _ in try batch.perform(CreateChannel(channel: crowd), as: users[0]) }
            try seed.forEach(Array(stride(from: 1, to: users.count, by: Limits.membersPerCall))) { batch, start in
                let members = Array(users[start..<min(start + Limits.membersPerCall, users.count)])
                try batch.perform(AddMembers(channel: crowd, users: members), as: users[0])
            }
        }
        let tokens = try await BenchTokens(directory: directory).tokens(for: users)
        let server = try BenchServer(directory: directory)
        defer { server.end() }
        let loop = LoadLoop()
        try loop.connect(port: server.port, tokens: tokens)
        _ = try loop.sockets[0].call(WatchChannel(channel: crowd, limit: 1))

        let quiet = try run(loop, server, seconds: Double(seconds)) { _, _ in }
        let typing = try run(loop, server, seconds: Double(seconds)) { socket, _ in
            _ = try socket.call(StartTyping(channel: crowd))
        }
        let marks = try marks(loop, server, rounds: scale.pick(10, quick: 4, smoke: 2))
        loop.closeAll()
        let count = users.count
        return [
            Figure("signals a second to each of \(count) who type once a second", typing.signalsPerSecond, "", goals: [.atMost(2)]),
            Figure(
                "message to the last of them meanwhile, p99", typing.p99, "ms", floor: quiet.p99,
                goals: [.atMost(quiet.p99 + 5)]),
            Figure("server CPU per call of typing.start, all in", typing.cpuPerCall, "µs"),
            Figure("server CPU per mark of \(count) members", marks.cpu, "µs", goals: [.atMost(30)]),
            Figure("signals to each of them per \(count) marks", marks.signals, ""),
        ]
    }

    private struct Measurement {
        var signalsPerSecond: Double
        /// Milliseconds from the sending of a message to its arrival at the last socket.
        var p99: Double
        var cpuPerCall: Double
    }

    /// Sends a message every 50 ms, while each of the other sockets acts once a second.
    private func run(
        _ loop: LoadLoop, _ server: BenchServer, seconds: Double, _ act: (LoadSocket, Int) throws -> Void
    ) throws -> Measurement {
        let sender = loop.sockets[0]
        let last = loop.sockets[loop.sockets.count - 1]
        var sentAt: [UInt64] = []
        var times = Histogram()
        var arrived = 0
        for socket in loop.sockets { (socket.eventCount, socket.signalCount) = (0, 0) }
        loop.onFrame = { socket, frame, _ in
            guard socket === last, case .event = frame, arrived < sentAt.count else { return }
            times.record(loop.now - sentAt[arrived])
            arrived += 1
        }
        defer { loop.onFrame = { _, _, _ in } }
        let before = server.usage
        let start = Clock.now()
        let others = loop.sockets.count - 1
        var acted = 0
        while Clock.now() - start < UInt64(seconds * 1e9) {
            let elapsed = Double(Clock.now() - start) / 1e9
            if elapsed >= Double(sentAt.count) * 0.05 {
                sentAt.append(Clock.now())
                _ = sender.sendMessage(to: crowd.rawValue, text: SampleText.message)
            }
            while Double(acted) < elapsed * Double(others), acted < Int(seconds) * others {
                try act(loop.sockets[1 + acted % others], acted)
                acted += 1
            }
            try loop.run(until: Clock.now() + 2_000_000)
        }
        try loop.run(timeout: 30) { arrived == sentAt.count }
        let elapsed = Double(Clock.now() - start) / 1e9
        let signals = loop.sockets.reduce(0) { $0 + $1.signalCount }
        return Measurement(
            signalsPerSecond: Double(signals) / Double(loop.sockets.count) / elapsed, p99: times.microseconds(0.99) / 1000,
            cpuPerCall: server.usage.cpuMicroseconds(since: before) / Double(max(1, acted)))
    }

    /// Makes every member mark a new message as read.
    private func marks(_ loop: LoadLoop, _ server: BenchServer, rounds: Int) throws -> (cpu: Double, signals: Double) {
        for socket in loop.sockets { (socket.eventCount, socket.signalCount) = (0, 0) }
        var costs: [Double] = []
        for round in 1...rounds {
            _ = loop.sockets[0].sendMessage(to: crowd.rawValue, text: SampleText.message)
            try loop.run(timeout: 30) { loop.sockets.allSatisfy { $0.eventCount >= round + (round - 1) } }
            let before = server.usage
            for socket in loop.sockets { _ = try socket.call(MarkRead(channel: crowd)) }
            // The mark comes back as an event of the user's own stream.
            try loop.run(timeout: 30) { loop.sockets.allSatisfy { $0.eventCount >= round * 2 } }
            costs.append(server.usage.cpuMicroseconds(since: before) / Double(loop.sockets.count))
        }
        try loop.run(for: 0.7)
        let signals = loop.sockets.reduce(0) { $0 + $1.signalCount }
        return (costs.sorted()[costs.count / 2], Double(signals) / Double(loop.sockets.count * rounds))
    }
}
