#if Cluster
import Foundation
import RoostAPI
import RoostDatabase

/// Measures PostgreSQL without Roost: `pgbench` runs the statements of a send, batched like a node's.
///
/// It treats a message at a time, as an application on a database does. A transaction locks the heads of its channels. Each message then has two
/// round trips: one reads the channel as the sender sees it, after the last message's two updates, which are sent along; one inserts. Every
/// statement is prepared, and planned once. As many connections as the node had lanes at work write at the same time, each into channels of its own.
struct PeerSends {
    struct Result {
        let messagesPerSecond: Double
        /// CPU time for one message: pgbench's own, and PostgreSQL's, which is unknown for a server that was given.
        let clientMicroseconds: Double
        let databaseMicroseconds: Double?
    }

    /// The peer's channels are numbers in a row that begins here, since pgbench reckons with numbers only; each belongs to a user of its name.
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
        try Data(script.utf8).write(to: file)
        let before = services.databaseCPUSeconds
        let clientBefore = Self.endedChildrenCPUSeconds
        let output = try ServerPrograms.run(
            try ServerPrograms.postgreSQL().appending(path: "pgbench"),
            [
                "-n", "-M", "prepared", "-c", "\(connections)", "-j", "1", "-T", "\(max(1, Int(seconds)))", "-f", file.path,
                "-D", "n=1", "-D", "text=\(SampleText.message)", services.databaseURL,
            ],
            // As the driver's sessions have it; and no plans for single values, which pgbench would have made five times for each line.
            environment: ["PGOPTIONS": "-c enable_seqscan=off -c plan_cache_mode=force_generic_plan"])
        guard let rate = Self.number(after: "tps = ", in: output),
            let transactions = Self.number(after: "number of transactions actually processed: ", in: output)
        else { throw BenchFailure("pgbench didn't tell its rate: \(output)") }
        let messages = transactions * Double(batchSize)
        return Result(
            messagesPerSecond: rate * Double(batchSize),
            clientMicroseconds: (Self.endedChildrenCPUSeconds - clientBefore) * 1e6 / max(1, messages),
            databaseMicroseconds: before.flatMap { before in
                services.databaseCPUSeconds.map { ($0 - before) * 1e6 / max(1, messages) }
            })
    }

    /// Of all children of this process that have ended: while pgbench runs, no other does.
    private static var endedChildrenCPUSeconds: Double {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_CHILDREN.rawValue), &usage)
        func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
        return seconds(usage.ru_utime) + seconds(usage.ru_stime)
    }

    private static func number(after words: String, in text: String) -> Double? {
        text.range(of: words).flatMap { range in Double(text[range.upperBound...].prefix { $0.isNumber || $0 == "." }) }
    }

    // MARK: The script

    /// One transaction. What begins it stands outside of a pipeline, because pgbench prepares all statements before the first.
    private var script: String {
        var lines = (0..<channelsPerConnection).map {
            "\\set c\($0) \(firstChannel) + :client_id * \(channelsPerConnection) + \($0)"
        }
        let locked = (0..<min(batchSize, channelsPerConnection)).map { ":c\($0)" }.joined(separator: ", ")
        lines += [
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;", #"\startpipeline"#,
            "SELECT 1 FROM channel_heads WHERE channel_id IN (\(locked)) ORDER BY channel_id FOR UPDATE;",
        ]
        for number in 0..<batchSize { lines += message(channel: "c\(number % channelsPerConnection)") }
        lines += [
            """
            INSERT INTO settings (name, value) VALUES (:c0, :n) ON CONFLICT (name) DO UPDATE SET value = excluded.value;
            """, "COMMIT;", #"\endpipeline"#,
        ]
        return lines.joined(separator: "\n")
    }

    private func message(channel: String) -> [String] {
        [
            """
            SELECT c.type, c.deleted_at, h.seq, h.member_count, h.message_count, h.last_activity, m.role, m.state, m.joined_at, \
            m.joined_seq, m.read_seq, m.read_count, m.last_read_at, m.last_sent_seq FROM channels c \
            JOIN channel_heads h ON h.channel_id = c.channel_id \
            LEFT JOIN members m ON m.channel_id = c.channel_id AND m.user_id = :\(channel) WHERE c.channel_id = :\(channel);
            """, #"\endpipeline"#, #"\set n :n + 1"#, #"\set id (:c0 % 8000000000) * 1000000000 + :n"#,
            #"\set now 1750000000000 + :n"#,
            #"\startpipeline"#,
            """
            INSERT INTO messages (channel_id, seq, message_id, change_seq, ordinal, counts, sender_id, client_id, text, custom_type, data, \
            metadata, tags, parent_id, created_at) VALUES (:\(channel), :n, :id, :n, :n, 1, :\(channel), :n, :text, NULL, NULL, NULL, NULL, \
            NULL, :now) ON CONFLICT (channel_id, sender_id, client_id) DO NOTHING;
            """, #"\endpipeline"#, #"\startpipeline"#,
            "UPDATE channel_heads SET seq = :n, member_count = 1, message_count = :n, ordinal = :n, last_activity = :now, "
                + "last_message_at = :now, list_at = COALESCE(:now, list_at) WHERE channel_id = :\(channel);",
            """
            UPDATE members SET read_count = read_count + 1, last_sent_seq = :n WHERE channel_id = :\(channel) AND user_id = :\(channel);
            """,
        ]
    }
}
#endif
