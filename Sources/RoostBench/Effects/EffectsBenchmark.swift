import Foundation
import RoostAPI
import RoostCore
import RoostDatabase
import RoostServer
import Synchronization

/// Measures effects on SQLite.
struct EffectsBenchmark: Benchmark {
    static let name = "effects"
    var waitingCount = 1_000_000

    static func waitingCount(_ count: Int, _ scale: BenchScale) -> Int { scale.pick(count, quick: count / 10, smoke: 1000) }

    func figures(in directory: URL, scale: BenchScale) async throws -> [Figure] {
        let waitingCount = Self.waitingCount(waitingCount, scale)
        let (none, many) = (directory.appending(path: "none"), directory.appending(path: "many"))
        for place in [none, many] { try EffectWorld.addChannels(to: try SQLiteDatabase(directory: place)) }
        try EffectWorld.addEffects(waitingCount, to: try SQLiteDatabase(directory: many))
        let world = EffectWorld()
        let measured = try await EffectsRun(
            world: world, empty: try await InProcessServer(directory: none, effects: world.settings),
            full: try await InProcessServer(directory: many, effects: world.settings), scale: scale
        ).measure()
        let costs = measured.costs
        let floor = try FloorEffects.measure(
            in: directory, batchSize: Int(costs.batchSize.rounded()), seconds: scale.pick(3, quick: 1, smoke: 0.1))
        return [
            Figure("CPU per send, in process", costs.plain.total, "µs"),
            Figure("sends in one commit", costs.batchSize, ""),
            Figure(
                "CPU of an effect written beside it", max(0, costs.ofEffect.total), "µs",
                floor: floor.cpuMicrosecondsPerRow, goals: [.atMost(15)]),
        ] + measured.figures(waiting: waitingCount)
    }
}

/// Measures the cost of effects, and how late they run:
/// 1. sends into 50 channels, with and without an effect each, alternating between a server without waiting effects and one with very many;
/// 2. effects that become due one after another, during a steady load of sends and with very many others waiting;
/// 3. effects that are all due at once.
///
/// The servers are in this process, and are called without sockets: the cost of a request would hide that of an effect.
struct EffectsRun {
    let world: EffectWorld
    /// The server without waiting effects.
    let empty: InProcessServer
    /// The server with many waiting effects.
    let full: InProcessServer
    let scale: BenchScale

    struct Result {
        let costs: Costs
        let late: Histogram
        let burst: (perSecond: Double, cpuMicroseconds: Double)

        /// The figures measured in the same way on every database.
        func figures(waiting count: Int, prefix: String = "") -> [Figure] {
            [
                Figure(
                    "\(prefix)CPU per send, \(count) waiting", costs.plainFull.total, "µs", floor: costs.plain.total,
                    goals: [.ratioAtMost(1.05)]),
                Figure(
                    "\(prefix)CPU per send with its effect, \(count) waiting", costs.withEffectFull.total, "µs",
                    floor: costs.withEffect.total,
                    goals: [.ratioAtMost(1.05)]),
                Figure("\(prefix)run after it is due, p50", late.median / 1000, "ms"),
                Figure("\(prefix)run after it is due, p99", late.p99 / 1000, "ms", goals: [.atMost(50)]),
                Figure("\(prefix)run after it is due, at most", late.microseconds(1) / 1000, "ms"),
                Figure("\(prefix)effects run that are due at once", burst.perSecond, "1/s"),
                Figure("\(prefix)CPU per effect run", burst.cpuMicroseconds, "µs"),
            ]
        }
    }

    /// Measures everything, and ends the servers.
    func measure() async throws -> Result {
        let costs = try await measureCosts()
        try await empty.end()
        let late = try await measureLateness()
        let burst = try await measureBurst()
        try await full.end()
        return Result(costs: costs, late: late, burst: burst)
    }

    // MARK: What they cost

    /// Per send: the cost of the median run, and how many sends one commit had.
    struct Costs {
        let plain: EffectWorld.CPUTime
        let withEffect: EffectWorld.CPUTime
        let plainFull: EffectWorld.CPUTime
        let withEffectFull: EffectWorld.CPUTime
        let batchSize: Double
        var ofEffect: EffectWorld.CPUTime { withEffect - plain }
    }

    private func measureCosts() async throws -> Costs {
        let count = scale.pick(20_000, quick: 10_000, smoke: 200)
        let kinds = [(empty, false), (empty, true), (full, false), (full, true)]
        var runs: [[EffectWorld.CPUTime]] = Array(repeating: [], count: kinds.count)
        for (server, withEffect) in kinds { _ = try await world.sends(to: server, count / 4, withEffect: withEffect) }
        let batches = BatchCounter(port: empty.port)
        for round in 0..<scale.pick(9, quick: 5, smoke: 1) {
            // The order changes from round to round.
            for step in kinds.indices {
                let index = (step + round) % kinds.count
                let (server, withEffect) = kinds[index]
                runs[index].append(try await world.sends(to: server, count, withEffect: withEffect))
                // Every round begins with the same number of waiting effects.
                if withEffect { try await EffectWorld.forgetNew(server) }
            }
        }
        let batchSize = BatchCounter(port: empty.port)?.averageSize(since: batches) ?? 1
        let medians = runs.map { $0.sorted { $0.total < $1.total }[$0.count / 2] }
        return Costs(
            plain: medians[0], withEffect: medians[1], plainFull: medians[2], withEffectFull: medians[3], batchSize: batchSize)
    }

    // MARK: How late they run

    /// Half of them are requested long before they are due, half by an operation that makes them due soon.
    private func measureLateness() async throws -> Histogram {
        let server = full
        let seconds = scale.pick(20, quick: 8, smoke: 1)
        let perSecond = 100
        try await server.perform { context in
            for number in 0..<(seconds * perSecond) {
                let due = context.now.milliseconds + 500 + Int64(number * 1000 / perSecond)
                try context.schedule(EffectWorld.timed, key: "before-\(number)", at: Timestamp(milliseconds: due))
            }
        }
        let steady = Task { try await world.steadySends(to: server, perSecond: scale.pick(500, quick: 500, smoke: 100)) }
        defer { steady.cancel() }
        for number in 0..<(seconds * perSecond) {
            try await server.perform { context in
                let due = context.now.milliseconds + Int64(number % 20)
                try context.schedule(EffectWorld.timed, key: "now-\(number)", at: Timestamp(milliseconds: due))
            }
            try await Task.sleep(for: .milliseconds(1000 / perSecond))
        }
        try await world.wait(untilRun: 2 * seconds * perSecond)
        steady.cancel()
        try await steady.value
        return world.lateness
    }

    private func measureBurst() async throws -> (perSecond: Double, cpuMicroseconds: Double) {
        let server = full
        let count = scale.pick(20_000, quick: 5000, smoke: 100)
        let before = world.runCount
        // None begins before all of them exist.
        try await server.perform { context in
            for number in 0..<count { try context.schedule(EffectWorld.timed, key: "burst-\(number)", at: context.now) }
        }
        let (start, startCPU) = (Clock.now(), world.cpuTime)
        try await world.wait(untilRun: before + count)
        let seconds = Double(Clock.now() - start) / 1e9
        return (Double(count) / seconds, ((world.cpuTime - startCPU) / count).total)
    }
}
