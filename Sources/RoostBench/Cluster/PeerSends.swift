#if Cluster
import Foundation
import RoostAPI
import RoostDatabase

/// Measures PostgreSQL without Roost: `pgbench` runs the statements of sends, batched as a node batches them (decision 0059).
///
/// A transaction locks the heads of its channels and reads each of them once, as its sender sees it; then it inserts all messages, several to a
/// statement, and writes each head and membership once. So it has three round trips, whatever the number of its messages. Every statement is prepared, and
/// planned once. As many connections as the node had lanes at work write at the same time, each into channels of its own.
///
/// pgbench gives a statement 255 values at most, so that it inserts 16 rows with one, where a node inserts up to 64.
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

    /// The rows of a statement, the largest first: the driver's, but for its largest.
    private static let rowCounts = [16, 4, 1]

    /// One transaction. What begins it stands outside of a pipeline, because pgbench prepares all statements before the first.
    private var script: String {
        let channels = (0..<min(batchSize, channelsPerConnection)).map { "c\($0)" }
        var lines = channels.indices.map { "\\set c\($0) \(firstChannel) + :client_id * \(channelsPerConnection) + \($0)" }
        let locked = channels.map { ":\($0)" }.joined(separator: ", ")
        lines += [
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;", #"\startpipeline"#,
            "SELECT set_config('lock_timeout', '2s', true), pg_advisory_xact_lock_shared(1, 2), set_config('lock_timeout', '0', true);",
            "SELECT (SELECT revision FROM access_revisions WHERE id = 1), (SELECT value FROM settings WHERE name = 'epoch');",
            "SELECT 1 FROM channel_heads WHERE channel_id IN (\(locked)) ORDER BY channel_id FOR UPDATE;",
            "SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT;",
        ]
        lines += channels.map(Self.reading) + [#"\endpipeline"#, #"\startpipeline"#]
        var sent = 0
        while sent < batchSize {
            let count = Self.rowCounts.first { $0 <= batchSize - sent } ?? 1
            lines += inserting((sent..<sent + count).map { "c\($0 % channelsPerConnection)" })
            sent += count
        }
        for (number, channel) in channels.enumerated() {
            let count = (batchSize - number + channelsPerConnection - 1) / channelsPerConnection
            lines += Self.counting(count, in: channel)
        }
        lines += [
            "INSERT INTO settings (name, value) VALUES (:c0, :n) ON CONFLICT (name) DO UPDATE SET value = excluded.value;",
            "COMMIT;", #"\endpipeline"#,
        ]
        return lines.joined(separator: "\n")
    }

    /// A channel as its sender sees it. What is reckoned of messages that were deleted for good costs nothing where there are none.
    private static func reading(_ channel: String) -> String {
        """
        SELECT c.type, c.discovery, c.joining, c.policy, c.is_distinct, c.is_ephemeral, c.is_frozen, c.muted_until, c.deleted_at, \
        c.change_seq, h.seq, h.member_count, h.message_count, h.ordinal, h.last_activity, h.last_message_at, h.purged_seq, h.row_kinds, \
        m.role, m.state, m.joined_at, m.joined_seq, m.read_seq, m.read_count, m.last_read_at, m.history_floor, m.hidden, m.hidden_count, \
        m.mention_seq, m.mention_message, m.muted_until, m.banned_until, m.notifications_muted_until, m.user_seq, m.last_sent_seq, \
        m.change_seq FROM channels c JOIN channel_heads h ON h.channel_id = c.channel_id \
        LEFT JOIN members m ON m.channel_id = c.channel_id AND m.user_id = :\(channel) WHERE c.channel_id = :\(channel);
        """
    }

    /// A message to each of some channels. Their seqs rise from one message of the connection to the next, whatever the channel.
    private func inserting(_ channels: [String]) -> [String] {
        var lines: [String] = []
        var rows: [String] = []
        for (number, channel) in channels.enumerated() {
            lines += [
                #"\set n :n + 1"#, "\\set n\(number) :n", "\\set id\(number) (:c0 % 8000000000) * 1000000000 + :n",
                "\\set now\(number) 1750000000000 + :n",
            ]
            let seq = ":n\(number)"
            rows.append(
                "(:id\(number), :\(channel), \(seq), \(seq), :\(channel), \(seq), :text, 'text', NULL, NULL, NULL, NULL, NULL, NULL, NULL, "
                    + "'default', NULL, 0, :now\(number), NULL, NULL, \(seq), 1)")
        }
        return lines + [
            """
            INSERT INTO messages (message_id, channel_id, seq, change_seq, sender_id, client_id, text, kind, custom_type, data, metadata, \
            tags, parent_id, mentionees, meta_arrays, push_option, target_languages, is_silent, created_at, edited_at, deleted_at, ordinal, \
            counts) VALUES \(rows.joined(separator: ", "));
            """
        ]
    }

    /// What some messages change of a channel and of their sender's membership.
    private static func counting(_ count: Int, in channel: String) -> [String] {
        [
            """
            UPDATE channel_heads SET (seq, member_count, message_count, ordinal, last_activity, last_message_at) = (:n, 1, :n, :n, :n, :n), \
            list_at = COALESCE(:n, list_at) WHERE channel_id = :\(channel);
            """,
            """
            UPDATE members SET read_count = read_count + \(count), receipt_count = receipt_count + \(count), last_sent_seq = :n \
            WHERE channel_id = :\(channel) AND user_id = :\(channel);
            """,
        ]
    }
}
#endif
