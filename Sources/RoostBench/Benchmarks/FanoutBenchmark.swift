import Foundation
import RoostAPI
import RoostCore

/// Measures the delivery of a message to every member's socket: at saturation, where messages share writes, and for one message alone.
///
/// The floor writes the same bytes to the same number of plain sockets from a process that does nothing else: in writes with as many messages as
/// the server's had, and in writes of one message.
struct FanoutBenchmark: Benchmark {
    static let name = "fanout"
    var socketCount = 1000
    /// The sender's messages under way at saturation.
    private let window = 64
    /// The same, for fewer messages per write.
    private let smallWindow = 16
    /// Whether other servers are measured too.
    var hasPeers = false
    private let channel = "fanout"

    func figures(in directory: URL, scale: BenchScale) async throws -> [Figure] {
        let socketCount = scale.pick(socketCount, quick: socketCount, smoke: 50)
        try OpenFiles.require(sockets: socketCount)
        let users = (0..<socketCount).map { UserID("user-\($0)") }
        try Seed.fill(directory) { seed in
            try seed.addUsers(users)
            try seed.forEach(users) { batch, user in
                if user == users[0] {
                    try batch.perform(CreateChannel(channel: ChannelID(channel)), as: user)
                } else {
                    try batch.perform(JoinChannel(channel: ChannelID(channel)), as: user)
                }
            }
        }
        let tokens = try await BenchTokens(directory: directory).tokens(for: users)
        let server = try BenchServer(directory: directory)
        defer { server.end() }
        let loop = LoadLoop()
        try loop.connect(port: server.port, tokens: tokens)
        let load = FanoutLoad(channel: channel)
        _ = try load.run(loop, server, window: 1, seconds: scale.warmUpSeconds)
        let saturated = try load.run(loop, server, window: window, seconds: scale.pick(10, quick: 3, smoke: 0.3))
        let some = try load.run(loop, server, window: smallWindow, seconds: scale.pick(6, quick: 2, smoke: 0.2))
        let single = try load.run(loop, server, window: 1, seconds: scale.pick(8, quick: 3, smoke: 0.2))
        loop.closeAll()
        server.end()

        let seconds = scale.pick(4.0, quick: 2, smoke: 0.2)
        let peers = hasPeers ? try peers(in: directory, beside: some, bytes: Int(single.bytesPerDelivery), scale) : []
        let singleFloor = try FloorSockets.measure(
            sockets: socketCount, bytes: Int(single.bytesPerDelivery), roundsAhead: 1, seconds: seconds)
        return [
            Figure("deliveries, saturated", saturated.deliveriesPerSecond, "1/s"),
            Figure("messages in one write, saturated", saturated.messagesPerWrite, ""),
            // An event of 400 bytes in a frame.
            Figure("bytes of a delivery", saturated.bytesPerDelivery, "B", goals: [.atMost(404)]),
            Figure(
                "server CPU per delivery, saturated", saturated.cpuMicroseconds, "µs",
                floor: try coalescedFloor(saturated, sockets: socketCount, seconds: seconds), goals: [.ratioAtMost(1.5)]),
            Figure("delivery p50, saturated", saturated.deliveries.median / 1000, "ms"),
            Figure("delivery p99, saturated", saturated.deliveries.p99 / 1000, "ms"),
            Figure("messages in one write, \(smallWindow) under way", some.messagesPerWrite, ""),
            Figure(
                "server CPU per delivery, \(smallWindow) under way", some.cpuMicroseconds, "µs",
                floor: try coalescedFloor(some, sockets: socketCount, seconds: seconds), goals: [.atMost(0.8)]),
            Figure("server CPU per delivery, single", single.cpuMicroseconds, "µs", floor: singleFloor, goals: [.ratioAtMost(1.3)]),
            Figure("delivery p50, single", single.deliveries.median / 1000, "ms"),
            Figure("delivery p99, single", single.deliveries.p99 / 1000, "ms"),
        ] + peers
    }

    /// Runs the same load on the other servers that are installed, with the same number of bytes per delivery.
    ///
    /// - Parameter some: This server with the small window, for which Redis is a floor.
    private func peers(
        in directory: URL, beside some: FanoutLoad.Measurement, bytes: Int, _ scale: BenchScale
    ) throws -> [Figure] {
        let socketCount = scale.pick(socketCount, quick: socketCount, smoke: 50)
        let windows = [("saturated", window), ("\(smallWindow) under way", smallWindow), ("single", 1)]
        var figures: [Figure] = []
        for peer in Peer.all {
            let measured = try PeerFanout.measure(
                peer, in: directory, sockets: socketCount, bytes: bytes, windows: windows.map(\.1),
                seconds: scale.pick(6, quick: 2, smoke: 0.2))
            for (window, measured) in zip(windows, measured ?? []) {
                figures.append(Figure("\(peer.name): CPU per delivery, \(window.0)", measured.cpuMicroseconds, "µs"))
                if let messages = measured.messagesPerWrite {
                    figures.append(Figure("\(peer.name): messages in one write, \(window.0)", messages, ""))
                }
                if peer.name == Peer.redis.name, window.1 == smallWindow {
                    figures.append(
                        Figure(
                            "server CPU per delivery, \(window.0), beside Redis", some.cpuMicroseconds, "µs",
                            floor: measured.cpuMicroseconds, goals: [.ratioAtMost(1.2)]))
                }
            }
        }
        return figures
    }

    /// The floor with as many messages per write as the server had.
    private func coalescedFloor(_ measurement: FanoutLoad.Measurement, sockets: Int, seconds: Double) throws -> Double {
        let perWrite = max(1, measurement.messagesPerWrite)
        let bytes = Int(measurement.bytesPerDelivery * perWrite)
        return try FloorSockets.measure(sockets: sockets, bytes: bytes, roundsAhead: 2, seconds: seconds) / perWrite
    }
}
