#if Cluster
import Foundation
import RoostAPI
import RoostDatabase

/// Measures PostgreSQL without Roost: `pgbench` runs the statements of sends, batched as a node batches them (decision 0059).
///
/// Its transactions are those of a ``PeerScript``. Every statement is prepared, and planned once. As many connections as the node had busy lanes
/// write concurrently, each into other channels.
struct PeerSends {
    struct Result {
        let messagesPerSecond: Double
        /// CPU time per message: pgbench's own, and PostgreSQL's, which is nil for an external server.
        let clientMicroseconds: Double
        let databaseMicroseconds: Double?
    }

    /// The peer's channels are consecutive numbers from here on; each belongs to a user of the same name.
    private let firstChannel = Int.random(in: 100_000_000_000..<900_000_000_000)
    let services: ClusterServices
    let batchSize: Int
    let connections: Int
    let channelsPerConnection: Int

    private var channelCount: Int { connections * channelsPerConnection }

    func run(in directory: URL, seconds: Double) throws -> Result {
        let names = (0..<channelCount).map { "\(firstChannel + $0)" }
        try Seed.fill(try PostgreSQLDatabase(url: services.databaseURL, laneCount: 1, readerCount: 1)) { seed in
            try seed.addUsers(names.map { UserID($0) })
            try seed.forEach(names) { batch, name in try batch.perform(CreateChannel(channel: ChannelID(name)), as: UserID(name)) }
        }
        let file = directory.appending(path: "peer-\(firstChannel).sql")
        let script = PeerScript(firstChannel: firstChannel, batchSize: batchSize, channelsPerConnection: channelsPerConnection)
        try Data(script.text.utf8).write(to: file)
        let before = services.databaseCPUSeconds
        let clientBefore = Self.endedChildrenCPUSeconds
        let output = try ServerPrograms.run(
            try ServerPrograms.postgreSQL().appending(path: "pgbench"),
            [
                "-n", "-M", "prepared", "-c", "\(connections)", "-j", "1", "-T", "\(max(1, Int(seconds)))", "-f", file.path,
                "-D", "n=1", "-D", "text=\(SampleText.message)", services.databaseURL,
            ],
            // As in the driver's sessions; and no plans for single values, which pgbench would have had made five times for each line.
            environment: ["PGOPTIONS": "-c enable_seqscan=off -c jit=off -c plan_cache_mode=force_generic_plan"])
        guard let rate = Self.number(after: "tps = ", in: output),
            let transactions = Self.number(after: "number of transactions actually processed: ", in: output)
        else { throw BenchFailure("pgbench didn't report its rate: \(output)") }
        let messages = transactions * Double(batchSize)
        return Result(
            messagesPerSecond: rate * Double(batchSize),
            clientMicroseconds: (Self.endedChildrenCPUSeconds - clientBefore) * 1e6 / max(1, messages),
            databaseMicroseconds: before.flatMap { before in
                services.databaseCPUSeconds.map { ($0 - before) * 1e6 / max(1, messages) }
            })
    }

    /// The CPU time of all children of this process that have ended: while pgbench runs, no other child does.
    private static var endedChildrenCPUSeconds: Double {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_CHILDREN.rawValue), &usage)
        func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
        return seconds(usage.ru_utime) + seconds(usage.ru_stime)
    }

    private static func number(after words: String, in text: String) -> Double? {
        text.range(of: words).flatMap { range in Double(text[range.upperBound...].prefix { $0.isNumber || $0 == "." }) }
    }
}
#endif
