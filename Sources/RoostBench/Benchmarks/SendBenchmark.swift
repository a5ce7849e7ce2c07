import Foundation
import RoostAPI

/// How many messages are stored and acknowledged, and the cost of one: among others and alone in its commit. An acknowledgement comes after the
/// fsync.
///
/// The floor is SQLite alone: the same rows in the same tables, with the same durability, in batches of the server's size.
struct SendBenchmark: Benchmark {
    static let name = "send"
    private let channelCount = 50
    /// The sends that each sender has under way.
    private let window = 32

    func figures(in directory: URL, scale: BenchScale) async throws -> [Figure] {
        let users = try Seed.ownChannels(channelCount, in: directory)
        let tokens = try await BenchTokens(directory: directory).tokens(for: users)
        let fsync = try Disk.fsyncs(in: directory, seconds: scale.probeSeconds).median / 1000
        let rewrite = try Disk.rewrites(in: directory, seconds: scale.probeSeconds).median / 1000
        let server = try BenchServer(directory: directory)
        defer { server.end() }
        let loop = LoadLoop()
        try loop.connect(port: server.port, tokens: tokens)
        // First: otherwise the log of a heavier load would be written into the database meanwhile.
        _ = try measure(loop, server, senders: 1, window: 1, seconds: scale.warmUpSeconds)
        let low = try measure(loop, server, senders: 1, window: 1, seconds: scale.pick(3, quick: 1, smoke: 0.2))
        _ = try measure(loop, server, senders: channelCount, window: 4, seconds: scale.warmUpSeconds)
        let full = try measure(
            loop, server, senders: channelCount, window: scale.pick(window, quick: window, smoke: 2),
            seconds: scale.pick(10, quick: 3, smoke: 0.4))
        loop.closeAll()
        server.end()

        let batch = full.batchSize ?? 256
        let floor = try FloorInserts.measure(
            in: directory, batchSize: Int(batch.rounded()), channelCount: channelCount, seconds: scale.pick(4, quick: 2, smoke: 0.2)
        )
        let loneFloor = try FloorInserts.measure(
            in: directory, batchSize: 1, channelCount: 1, seconds: scale.pick(3, quick: 1, smoke: 0.2))
        return [
            Figure(
                "durable acknowledged sends", full.sendsPerSecond, "1/s", floor: floor.rowsPerSecond,
                goals: [.atLeast(15_000), .ratioAtLeast(0.6)]),
            Figure(full.batchSize == nil ? "sends in one commit (assumed)" : "sends in one commit", batch, ""),
            Figure("server CPU per send", full.cpuMicroseconds, "µs", floor: floor.cpuMicrosecondsPerRow, goals: [.atMost(28)]),
            Figure("acknowledgement p50, full load", full.acknowledgements.median / 1000, "ms"),
            Figure("acknowledgement p99, full load", full.acknowledgements.p99 / 1000, "ms"),
            Figure("disk: append and fsync, p50", fsync, "ms"),
            Figure("disk: write in place and fdatasync, p50", rewrite, "ms"),
            Figure(
                "acknowledgement p50, low load", low.acknowledgements.median / 1000, "ms", goals: [.atMost(min(fsync, rewrite) + 1)]
            ),
            Figure("acknowledgement p99, low load", low.acknowledgements.p99 / 1000, "ms"),
            Figure(
                "server CPU per send alone in its commit", low.cpuMicroseconds, "µs", floor: loneFloor.cpuMicrosecondsPerRow,
                goals: [.atMost(loneFloor.cpuMicrosecondsPerRow + 80)]),
            Figure(
                "written to the disk for it", low.bytesWritten / 1000, "KB", floor: loneFloor.bytesWrittenPerRow / 1000,
                goals: [.atMost(24)]),
        ]
    }

    private struct Measurement {
        var sendsPerSecond: Double
        var cpuMicroseconds: Double
        var bytesWritten: Double
        var batchSize: Double?
        var acknowledgements: Histogram
    }

    private func measure(_ loop: LoadLoop, _ server: BenchServer, senders: Int, window: Int, seconds: Double) throws -> Measurement
    {
        let load = SendLoad(senders: (0..<senders).map { .init(socket: $0, channel: "channel-\($0)") }, window: window)
        let batches = BatchCounter(port: server.port)
        let before = server.usage
        let result = try load.run(loop, seconds: seconds)
        let after = server.usage
        let count = Double(max(1, result.sent))
        return Measurement(
            sendsPerSecond: result.sendsPerSecond, cpuMicroseconds: after.cpuMicroseconds(since: before) / count,
            bytesWritten: (after.writtenBytes - before.writtenBytes) / count,
            batchSize: BatchCounter(port: server.port)?.averageSize(since: batches), acknowledgements: result.acknowledgements)
    }
}
