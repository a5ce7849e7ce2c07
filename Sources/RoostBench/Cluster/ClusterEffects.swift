#if Cluster
import Foundation
import RoostDatabase
import RoostServer

/// Measures effects on PostgreSQL, as ``EffectsBenchmark`` does on SQLite: two databases of one server, each with a node in this process.
///
/// CPU is that of the process and of the database server together. It always starts its own server, whichever one the other parts use, to measure
/// it with nothing else in it.
struct ClusterEffects {
    var waitingCount = BenchPart.Standard.effectsWaiting

    func figures(in directory: URL, scale: BenchScale) async throws -> [Figure] {
        let waitingCount = EffectsBenchmark.waitingCount(waitingCount, scale)
        let service = try DatabaseService(directory: directory)
        defer { service.end() }
        let none = service.url
        try with(none) { try EffectWorld.addChannels(to: $0) }
        let many = try service.copyDatabase(to: "many")
        try with(many) { try EffectWorld.addEffects(waitingCount, to: $0) }
        let identifier = service.identifier
        let world = EffectWorld { ProcessFamily.cpuSeconds(of: identifier) }
        let measured = try await EffectsRun(
            world: world,
            empty: try await InProcessServer(directory: directory.appending(path: "none"), database: none, effects: world.settings),
            full: try await InProcessServer(directory: directory.appending(path: "many"), database: many, effects: world.settings),
            scale: scale
        ).measure()
        let costs = measured.costs
        return [
            Figure("effects: CPU per send, in process and in PostgreSQL", costs.plain.total, "µs"),
            Figure("effects: of it in PostgreSQL", costs.plain.database, "µs"),
            Figure("effects: sends in one commit", costs.batchSize, ""),
            Figure("effects: CPU of an effect written beside it", max(0, costs.ofEffect.total), "µs", goals: [.atMost(15)]),
        ] + measured.figures(waiting: waitingCount, prefix: "effects: ")
    }

    private func with(_ url: String, _ fill: (PostgreSQLDatabase) throws -> Void) throws {
        let database = try PostgreSQLDatabase(url: url, laneCount: 1, readerCount: 1)
        defer { database.close() }
        try fill(database)
    }
}
#endif
