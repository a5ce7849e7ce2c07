import Foundation
import RoostAPI

/// A server of some build, with users and channels made by clients.
struct ComparedServer {
    let server: BenchServer
    let loop: LoadLoop

    /// Starts it, connects users, and puts each of them into a channel: the first of those who share one makes it, the others join.
    init(_ program: URL?, in directory: URL, users: Int, channel: (Int) -> String) async throws {
        server = try BenchServer(directory: directory, program: program)
        // A server makes its secret at its first start.
        let tokens = try await BenchTokens(directory: directory).tokens(for: (0..<users).map { UserID("user-\($0)") })
        loop = LoadLoop()
        try loop.connect(port: server.port, tokens: tokens)
        var made: Set<String> = []
        let makers = (0..<users).filter { made.insert(channel($0)).inserted }
        try callAll(makers) { CreateChannel(channel: ChannelID(channel($0)), type: "community") }
        try callAll(Array(Set(0..<users).subtracting(makers))) { JoinChannel(channel: ChannelID(channel($0))) }
    }

    private func callAll<Call: RoostAPI.Operation>(_ users: [Int], _ call: (Int) -> Call) throws {
        var answered = 0
        loop.onFrame = { _, frame, _ in if case .reply = frame { answered += 1 } }
        defer { loop.onFrame = { _, _, _ in } }
        for start in stride(from: 0, to: users.count, by: 500) {
            let part = users[start..<min(start + 500, users.count)]
            for user in part { _ = try loop.sockets[user].call(call(user)) }
            let expected = start + part.count
            try loop.run(timeout: 60) { answered >= expected }
        }
        // The events of joining aren't measured.
        try loop.run(for: 0.2)
    }

    /// The channels of one user.
    static func channels(_ scale: BenchScale) -> [String] {
        (0..<scale.pick(500, quick: 200, smoke: 20)).map { "channel-\($0)" }
    }

    /// Starts it with one user who is in many channels, and another who has written a message into each of them.
    init(_ program: URL?, in directory: URL, channels: [String]) async throws {
        try await self.init(program, in: directory, users: 2) { _ in "both" }
        let load = CallLoad(loop: loop, server: server, socket: 1)
        _ = try load.run(channels.count, window: 32) { socket, number in
            _ = try socket.call(CreateChannel(channel: ChannelID(channels[number]), type: "community", users: [UserID("user-0")]))
        }
        _ = try load.run(channels.count, window: 32) { socket, number in
            _ = socket.sendMessage(to: channels[number], text: SampleText.message)
        }
        try loop.run(for: 0.2)
    }

    func end() {
        loop.closeAll()
        server.end()
    }
}

extension SendBenchmark: ComparableBenchmark {
    static func costs(_ scale: BenchScale) -> [(name: String, unit: String)] { [("server CPU per send", "µs")] }

    func measure(_ program: URL?, in directory: URL, scale: BenchScale) async throws -> [Double] {
        let senders = 50
        let compared = try await ComparedServer(program, in: directory, users: senders) { "channel-\($0)" }
        defer { compared.end() }
        let load = SendLoad(senders: (0..<senders).map { .init(socket: $0, channel: "channel-\($0)") }, window: 32)
        _ = try load.run(compared.loop, seconds: scale.pick(1, quick: 0.5, smoke: 0.1))
        let before = compared.server.usage
        let result = try load.run(compared.loop, seconds: scale.pick(6, quick: 3, smoke: 0.2))
        return [compared.server.usage.cpuMicroseconds(since: before) / Double(result.sent)]
    }
}

extension FanoutBenchmark: ComparableBenchmark {
    static func costs(_ scale: BenchScale) -> [(name: String, unit: String)] {
        [
            ("server CPU per delivery, 8 under way", "µs"), ("server CPU per delivery, single", "µs"),
            // Not later by more than 0.1 ms, since messages that are close in time wait for one another.
            ("delivery p50, single", "ms"),
        ]
    }

    func measure(_ program: URL?, in directory: URL, scale: BenchScale) async throws -> [Double] {
        let sockets = scale.pick(min(500, socketCount), quick: 200, smoke: 20)
        try OpenFiles.require(sockets: sockets)
        let compared = try await ComparedServer(program, in: directory, users: sockets) { _ in "fanout" }
        defer { compared.end() }
        let load = FanoutLoad(channel: "fanout")
        _ = try load.run(compared.loop, compared.server, window: 1, seconds: scale.warmUpSeconds)
        let seconds = scale.pick(4, quick: 2, smoke: 0.2)
        let eight = try load.run(compared.loop, compared.server, window: 8, seconds: seconds)
        let single = try load.run(compared.loop, compared.server, window: 1, seconds: seconds)
        return [eight.cpuMicroseconds, single.cpuMicroseconds, single.deliveries.median / 1000]
    }
}

extension IdleBenchmark: ComparableBenchmark {
    static func costs(_ scale: BenchScale) -> [(name: String, unit: String)] {
        [("RSS per idle connection", "KB"), ("server CPU per connection made", "µs")]
    }

    func measure(_ program: URL?, in directory: URL, scale: BenchScale) async throws -> [Double] {
        let sockets = scale.pick(min(5000, socketCount), quick: 1000, smoke: 20)
        try OpenFiles.require(sockets: sockets)
        // Users and channels are made by another server than the measured one, whose memory would otherwise include more than the connections.
        try await ComparedServer(program, in: directory, users: sockets) { "channel-\($0 / 100)" }.end()
        let tokens = try await BenchTokens(directory: directory).tokens(for: (0..<sockets).map { UserID("user-\($0)") })
        let server = try BenchServer(directory: directory, program: program)
        defer { server.end() }
        let loop = LoadLoop()
        defer { loop.closeAll() }
        let empty = server.usage
        try loop.connect(port: server.port, tokens: tokens)
        try loop.run(for: scale.pick(3, quick: 2, smoke: 0.2))
        let full = server.usage
        return [
            (full.residentBytes - empty.residentBytes) / Double(sockets) / 1000,
            full.cpuMicroseconds(since: empty) / Double(sockets),
        ]
    }
}

extension HistoryBenchmark: ComparableBenchmark {
    static func costs(_ scale: BenchScale) -> [(name: String, unit: String)] {
        [
            ("server CPU per page of 50", "µs"), ("server CPU per page of 50, 8 under way", "µs"),
            ("server CPU per call that reads next to nothing", "µs"),
        ]
    }

    func measure(_ program: URL?, in directory: URL, scale: BenchScale) async throws -> [Double] {
        let compared = try await ComparedServer(program, in: directory, users: 1) { _ in channel.rawValue }
        defer { compared.end() }
        let filling = SendLoad(senders: [.init(socket: 0, channel: channel.rawValue)], window: 128)
        let newest = try filling.run(compared.loop, seconds: scale.pick(1, quick: 1, smoke: 0.1)).sent
        let seconds = scale.pick(3, quick: 1.5, smoke: 0.1)
        _ = try measure(compared.loop, compared.server, newest: newest, window: 1, seconds: scale.warmUpSeconds)
        let pages = try [1, 8].map { window in
            try measure(compared.loop, compared.server, newest: newest, window: window, seconds: seconds).cpuMicroseconds
        }
        let calls = try CallLoad(loop: compared.loop, server: compared.server, socket: 0)
            .repeating(GetMe(), scale.pick(20_000, quick: 10_000, smoke: 100))
        return pages + [calls.cpuPerCall]
    }
}

extension ResumeBenchmark: ComparableBenchmark {
    static func costs(_ scale: BenchScale) -> [(name: String, unit: String)] {
        [("server CPU per resume of \(ComparedServer.channels(scale).count) channels", "ms")]
    }

    func measure(_ program: URL?, in directory: URL, scale: BenchScale) async throws -> [Double] {
        let channels = ComparedServer.channels(scale)
        let compared = try await ComparedServer(program, in: directory, channels: channels)
        defer { compared.end() }
        // The channel's creation has the first seq; the message after it was missed.
        let operation = Resume(after: 0, channels: Dictionary(uniqueKeysWithValues: channels.map { ($0, 1) }))
        let load = CallLoad(loop: compared.loop, server: compared.server, socket: 0)
        _ = try load.repeating(operation, 5)
        return [try load.repeating(operation, scale.pick(200, quick: 50, smoke: 2)).cpuPerCall / 1000]
    }
}

extension ChannelListBenchmark: ComparableBenchmark {
    static func costs(_ scale: BenchScale) -> [(name: String, unit: String)] {
        [
            ("server CPU per first page of \(ComparedServer.channels(scale).count) channels", "ms"),
            ("server CPU per total unread count", "ms"),
        ]
    }

    func measure(_ program: URL?, in directory: URL, scale: BenchScale) async throws -> [Double] {
        let channels = ComparedServer.channels(scale)
        let compared = try await ComparedServer(program, in: directory, channels: channels)
        defer { compared.end() }
        let load = CallLoad(loop: compared.loop, server: compared.server, socket: 0)
        let rounds = scale.pick(1000, quick: 300, smoke: 5)
        func cost(_ operation: some RoostAPI.Operation) throws -> Double {
            _ = try load.repeating(operation, min(rounds, 50))
            return try load.repeating(operation, rounds).cpuPerCall / 1000
        }
        return [try cost(QueryChannels(limit: 20)), try cost(GetTotalUnread())]
    }
}
