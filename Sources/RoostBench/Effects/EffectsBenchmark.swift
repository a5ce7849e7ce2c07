import Foundation
import RoostAPI
import RoostCore
import RoostServer
import Synchronization

/// Measures the cost of effects, and how late they run:
/// 1. sends into 50 channels, with an effect each and without, on a server where none wait and on one where very many do, by turns;
/// 2. effects that become due one after another, beside a steady load of sends, where very many others wait;
/// 3. effects that are all due at once.
///
/// The servers are in this process, and are asked without sockets: the cost of an effect would be lost in that of a request.
struct EffectsBenchmark: Benchmark {
    static let name = "effects"
    var waitingCount = 1_000_000

    func figures(in directory: URL, scale: BenchScale) async throws -> [Figure] {
        let waitingCount = scale.pick(waitingCount, quick: waitingCount / 10, smoke: 1000)
        let (none, many) = (directory.appending(path: "none"), directory.appending(path: "many"))
        try EffectWorld.fill(none, waiting: 0)
        try EffectWorld.fill(many, waiting: waitingCount)
        let world = EffectWorld()
        let emptyServer = try await InProcessServer(directory: none, effects: world.settings)
        let fullServer = try await InProcessServer(directory: many, effects: world.settings)

        let costs = try await measureCosts(world, emptyServer, fullServer, scale)
        try await emptyServer.end()
        let late = try await measureLateness(world, fullServer, scale)
        let burst = try await measureBurst(world, fullServer, scale)
        try await fullServer.end()
        let floor = try FloorEffects.measure(
            in: directory, batchSize: Int(costs.batchSize.rounded()), seconds: scale.pick(3, quick: 1, smoke: 0.1))
        return [
            Figure("CPU per send, in process", costs.plain, "µs"),
            Figure("sends in one commit", costs.batchSize, ""),
            Figure(
                "CPU of an effect written beside it", max(0, costs.withEffect - costs.plain), "µs",
                floor: floor.cpuMicrosecondsPerRow, goals: [.atMost(15)]),
            Figure("CPU per send, \(waitingCount) waiting", costs.plainFull, "µs", floor: costs.plain, goals: [.ratioAtMost(1.05)]),
            Figure(
                "CPU per send with its effect, \(waitingCount) waiting", costs.withEffectFull, "µs", floor: costs.withEffect,
                goals: [.ratioAtMost(1.05)]),
            Figure("run after it is due, p50", late.median / 1000, "ms"),
            Figure("run after it is due, p99", late.p99 / 1000, "ms", goals: [.atMost(50)]),
            Figure("run after it is due, at most", late.microseconds(1) / 1000, "ms"),
            Figure("effects run that are due at once", burst.perSecond, "1/s"),
            Figure("CPU per effect run", burst.cpuMicroseconds, "µs"),
        ]
    }

    // MARK: What they cost

    /// Medians in microseconds, and how many sends one commit had.
    private struct Costs {
        var plain = 0.0
        var withEffect = 0.0
        var plainFull = 0.0
        var withEffectFull = 0.0
        var batchSize = 0.0
    }

    private func measureCosts(
        _ world: EffectWorld, _ empty: InProcessServer, _ full: InProcessServer, _ scale: BenchScale
    ) async throws -> Costs {
        let count = scale.pick(20_000, quick: 10_000, smoke: 200)
        let kinds = [(empty, false), (empty, true), (full, false), (full, true)]
        var runs: [[Double]] = Array(repeating: [], count: kinds.count)
        for (server, withEffect) in kinds { _ = try await world.sends(to: server, count / 4, withEffect: withEffect) }
        let batches = BatchCounter(port: empty.port)
        for round in 0..<scale.pick(9, quick: 5, smoke: 1) {
            // The order changes from round to round.
            for step in kinds.indices {
                let index = (step + round) % kinds.count
                let (server, withEffect) = kinds[index]
                runs[index].append(try await world.sends(to: server, count, withEffect: withEffect))
                // As many wait in each round as in the first.
                if withEffect { try await EffectWorld.forgetNew(server) }
            }
        }
        let batchSize = BatchCounter(port: empty.port)?.averageSize(since: batches) ?? 1
        let medians = runs.map { $0.sorted()[$0.count / 2] }
        return Costs(
            plain: medians[0], withEffect: medians[1], plainFull: medians[2], withEffectFull: medians[3], batchSize: batchSize)
    }

    // MARK: How late they run

    /// Half of them are requested long before they are due, half by an operation that makes them due soon.
    private func measureLateness(_ world: EffectWorld, _ server: InProcessServer, _ scale: BenchScale) async throws -> Histogram {
        let seconds = scale.pick(20, quick: 8, smoke: 1)
        let perSecond = 100
        try await server.perform { context in
            for number in 0..<(seconds * perSecond) {
                let due = context.now.milliseconds + 500 + Int64(number * 1000 / perSecond)
                try context.later(EffectWorld.timed, key: "before-\(number)", at: Timestamp(milliseconds: due))
            }
        }
        let steady = Task { try await world.steadySends(to: server, perSecond: scale.pick(500, quick: 500, smoke: 100)) }
        defer { steady.cancel() }
        for number in 0..<(seconds * perSecond) {
            try await server.perform { context in
                let due = context.now.milliseconds + Int64(number % 20)
                try context.later(EffectWorld.timed, key: "now-\(number)", at: Timestamp(milliseconds: due))
            }
            try await Task.sleep(for: .milliseconds(1000 / perSecond))
        }
        try await world.wait(untilRun: 2 * seconds * perSecond)
        steady.cancel()
        try await steady.value
        return world.lateness
    }

    private func measureBurst(
        _ world: EffectWorld, _ server: InProcessServer, _ scale: BenchScale
    ) async throws -> (perSecond: Double, cpuMicroseconds: Double) {
        let count = scale.pick(20_000, quick: 5000, smoke: 100)
        let before = world.runCount
        // None begins before all are there.
        try await server.perform { context in
            for number in 0..<count { try context.later(EffectWorld.timed, key: "burst-\(number)", at: context.now) }
        }
        let (start, startCPU) = (Clock.now(), Clock.processCPU())
        try await world.wait(untilRun: before + count)
        let seconds = Double(Clock.now() - start) / 1e9
        return (Double(count) / seconds, Double(Clock.processCPU() - startCPU) / 1000 / Double(count))
    }
}
