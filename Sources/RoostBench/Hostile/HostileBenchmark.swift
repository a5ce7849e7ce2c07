import Foundation
import RoostAPI
import RoostCore

/// Measures how much memory hostile sockets can make a server hold, and how late other users' answers arrive meanwhile.
///
/// First one socket goes through all scripts, then thousands run them at once, and then thousands on a server with a limit of half a gigabyte.
/// Memory is resident memory: the kernel's peak value, above the value with the other users alone.
struct HostileBenchmark: Benchmark {
    static let name = "hostile"
    var socketCount = 5000

    private let honest = (0..<21).map { UserID("user-\($0)") }
    /// The fewest that can have so many sockets: a user has 200 at most.
    private let hostile = (0..<50).map { UserID("mallory-\($0)") }
    /// The limit on the process's memory, and on what may be held for clients.
    private let limitMebibytes = 512

    func figures(in directory: URL, scale: BenchScale) async throws -> [Figure] {
        let socketCount = scale.pick(socketCount, quick: socketCount, smoke: 60)
        try OpenFiles.require(sockets: socketCount)
        let place = directory.appending(path: "data")
        try fill(place, scale)
        let tokens = try await BenchTokens(directory: place)
        let clients = Clients(honest: try await tokens.tokens(for: honest), hostile: try await tokens.tokens(for: hostile))

        let scripts = HostileScript.allCases
        let oneSeconds = scale.pick(3.0, quick: 1, smoke: 0.1) * Double(scripts.count)
        let one = try measure(place, clients, scale, settings: [], seconds: oneSeconds) { port in
            .init(
                port: port, tokens: [clients.hostile[0]], socketCount: 1, scripts: scripts,
                turnSeconds: oneSeconds / Double(scripts.count))
        }
        let manySeconds = scale.pick(30.0, quick: 10, smoke: 0.5)
        let attack: @Sendable (UInt16) -> HostileSwarm.Plan = { port in
            .init(port: port, tokens: clients.hostile, socketCount: socketCount, scripts: scripts)
        }
        let many = try measure(place, clients, scale, settings: [], seconds: manySeconds, attack)
        let large = try measure(
            place, clients, scale,
            settings: ["--memory-budget", "\(limitMebibytes)", "--memory-limit", "\(limitMebibytes)"], seconds: manySeconds, attack)
        return one.figures("one hostile socket", addedBytesMax: 8e6, addedMillisecondsMax: 10)
            + many.figures("\(socketCount) hostile sockets", addedBytesMax: 128e6)
            + large.figures(
                "\(socketCount), limit of \(limitMebibytes) MiB", bytesMax: Double(limitMebibytes << 20))
    }

    private struct Clients: Sendable {
        let honest: [String]
        let hostile: [String]
    }

    private func fill(_ directory: URL, _ scale: BenchScale) throws {
        let large = ChannelID(HostileScript.largeChannel)
        let busy = ChannelID(HostileScript.busyChannel)
        // Six times as large when it is encoded: a page of these is the largest possible.
        let largeText = String(repeating: "\u{1}", count: 9000)
        try Seed.fill(directory) { seed in
            try seed.addUsers(honest + hostile)
            try seed.forEach(honest) { batch, user in
                let channel = ChannelID("channel-of-\(user.rawValue)")
                try batch.perform(CreateChannel(channel: channel), as: user)
                for number in 0..<100 {
                    try batch.perform(
                        SendMessage(channel: channel, clientId: ClientID("\(number)"), text: SampleText.message), as: user)
                }
            }
            try seed.forEach(Array(hostile.enumerated())) { batch, entry in
                for channel in [large, busy] {
                    if entry.offset == 0 {
                        try batch.perform(CreateChannel(channel: channel), as: entry.element)
                    } else {
                        try batch.perform(JoinChannel(channel: channel), as: entry.element)
                    }
                }
            }
            try seed.forEach(0..<60) { batch, number in
                try batch.perform(SendMessage(channel: large, clientId: ClientID("\(number)"), text: largeText), as: hostile[0])
            }
        }
    }

    /// Measures the other users alone, during the attack, and after it.
    private func measure(
        _ directory: URL, _ clients: Clients, _ scale: BenchScale, settings: [String], seconds: Double,
        _ plan: (UInt16) -> HostileSwarm.Plan
    ) throws -> Attacked {
        let server = try BenchServer(directory: directory, settings: settings)
        defer { server.end() }
        let loop = LoadLoop()
        try loop.connect(port: server.port, tokens: clients.honest)
        let load = PacedLoad(
            channels: honest.map { "channel-of-\($0.rawValue)" }, sendsPerSecond: scale.pick(200, quick: 200, smoke: 100),
            pagesPerSecond: 50, takesRefusals: true)
        // The descriptions exist once for all clients, and are made on the first request.
        for path in ["/openapi.json", "/asyncapi.json"] { _ = LoopbackSocket.get(path, port: server.port) }
        // Writes enough first to fill the page cache: until then the process grows with any load.
        var filling = load
        filling.sendsPerSecond = scale.pick(2000, quick: 2000, smoke: 100)
        var warm = PacedLoad.Result()
        try filling.run(loop, into: &warm, seconds: scale.pick(8, quick: 8, smoke: 0.2))
        guard warm.refused == 0 else {
            throw BenchFailure("the page cache isn't full: \(warm.refused) calls were refused before the attack")
        }

        var result = Attacked()
        try load.run(loop, into: &result.without, seconds: scale.pick(20, quick: 5, smoke: 0.3))
        let swarm = HostileSwarm(plan(server.port))
        defer { swarm.end() }
        result.bytesBefore = server.usage.residentBytes
        try PeakMemory.reset(server.identifier)
        let before = server.usage
        swarm.begin()
        try load.run(loop, into: &result.with, seconds: seconds)
        result.cpuShare = server.usage.cpuMicroseconds(since: before) / seconds / 1e6
        result.bytesPeak = try PeakMemory.bytes(server.identifier)
        result.opened = swarm.counts.opened
        result.closed = swarm.counts.closed
        swarm.end()
        var after = PacedLoad.Result()
        try load.run(loop, into: &after, seconds: scale.pick(5, quick: 3, smoke: 0.3))
        result.bytesAfter = server.usage.residentBytes
        loop.closeAll()
        return result
    }
}

/// The result of an attack.
private struct Attacked {
    var without = PacedLoad.Result()
    var with = PacedLoad.Result()
    var bytesBefore = 0.0
    var bytesPeak = 0.0
    var bytesAfter = 0.0
    var cpuShare = 0.0
    var opened = 0
    var closed = 0

    func figures(
        _ name: String, addedBytesMax: Double? = nil, bytesMax: Double? = nil, addedMillisecondsMax: Double? = nil
    ) -> [Figure] {
        let (sendsBefore, sends) = (without.sends.p99 / 1000, with.sends.p99 / 1000)
        let (pagesBefore, pages) = (without.pages.p99 / 1000, with.pages.p99 / 1000)
        return [
            Figure("\(name): RSS before", bytesBefore / 1e6, "MB"),
            Figure("\(name): RSS at most", bytesPeak / 1e6, "MB", goals: bytesMax.map { [.atMost($0 / 1e6)] } ?? []),
            Figure(
                "\(name): RSS added", (bytesPeak - bytesBefore) / 1e6, "MB", goals: addedBytesMax.map { [.atMost($0 / 1e6)] } ?? []),
            Figure("\(name): RSS after it", bytesAfter / 1e6, "MB"),
            Figure("\(name): others' sends p99 without", sendsBefore, "ms"),
            Figure(
                "\(name): others' sends p99", sends, "ms", goals: addedMillisecondsMax.map { [.atMost(sendsBefore + $0)] } ?? []),
            Figure("\(name): others' pages p99 without", pagesBefore, "ms"),
            Figure(
                "\(name): others' pages p99", pages, "ms", goals: addedMillisecondsMax.map { [.atMost(pagesBefore + $0)] } ?? []),
            Figure("\(name): others' calls refused", Double(with.refused), ""),
            Figure("\(name): connections it made", Double(opened), ""),
            Figure("\(name): connections the server closed", Double(closed), ""),
            Figure("\(name): cores the server took", cpuShare, ""),
        ]
    }
}
