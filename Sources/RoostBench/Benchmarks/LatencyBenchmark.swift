import Foundation
import RoostAPI

/// The delay of acknowledgements at a steady pace, from the median to the maximum: how a checkpoint, or anything else that holds up the lane,
/// delays concurrent senders.
///
/// The floor is the machine alone: one write and fdatasync at the same pace, each timed from when it was due. Goals are given in fdatasyncs of the
/// disk, which is measured before and after.
struct LatencyBenchmark: Benchmark {
    static let name = "latency"
    private let channelCount = 50
    private let sendsPerSecond = 1000

    func figures(in directory: URL, scale: BenchScale) async throws -> [Figure] {
        let users = try Seed.ownChannels(channelCount, in: directory)
        let tokens = try await BenchTokens(directory: directory).tokens(for: users)
        var disk = try Disk.rewrites(in: directory, seconds: scale.probeSeconds)
        let server = try BenchServer(directory: directory)
        defer { server.end() }
        let loop = LoadLoop()
        try loop.connect(port: server.port, tokens: tokens)
        let load = PacedLoad(
            channels: users.indices.map { "channel-\($0)" }, sendsPerSecond: sendsPerSecond, pagesPerSecond: 0)
        var warmUp = PacedLoad.Result()
        try load.run(loop, into: &warmUp, seconds: scale.warmUpSeconds)

        var result = PacedLoad.Result()
        let before = server.usage
        try load.run(loop, into: &result, seconds: scale.pick(120, quick: 10, smoke: 0.3))
        let cpu = server.usage.cpuMicroseconds(since: before) / Double(result.sends.count)
        loop.closeAll()
        server.end()
        disk.add(try Disk.rewrites(in: directory, seconds: scale.probeSeconds))

        let floor = try Disk.pacedRewrites(
            in: directory, perSecond: sendsPerSecond, seconds: scale.pick(30, quick: 5, smoke: 0.2))

        let diskLate = disk.p99 / 1000
        func late(_ name: String, _ share: Double, goals: [Figure.Goal] = []) -> Figure {
            Figure(
                "acknowledgement at \(sendsPerSecond)/s, \(name)", result.sends.microseconds(share) / 1000, "ms",
                floor: floor.microseconds(share) / 1000, goals: goals)
        }
        return [
            Figure("disk: write in place and fdatasync, p50", disk.median / 1000, "ms"),
            Figure("disk: write in place and fdatasync, p99", diskLate, "ms"),
            late("p50", 0.5),
            late("p99", 0.99, goals: [.atMost(2 * diskLate + 1)]),
            late("p99.9", 0.999, goals: [.atMost(4 * diskLate + 1)]),
            late("max", 1),
            Figure("server CPU per send", cpu, "µs"),
        ]
    }
}
