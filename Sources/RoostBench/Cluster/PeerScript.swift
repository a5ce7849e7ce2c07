#if Cluster
import Foundation

/// A node's statements for a batch of sends (decision 0059), as a script of pgbench: one transaction. `FloorTests` compares them with those that
/// the rules make.
///
/// It locks the heads of its channels and reads each of them once, as its sender sees it; then it inserts all messages, several per statement, and
/// writes each head and membership once. So it has three round trips, however many messages it has. It leaves out what a node writes once a second.
///
/// pgbench allows at most 255 values per statement, so it inserts 16 rows with one, where a node inserts up to 64.
struct PeerScript {
    /// Channels are consecutive numbers, since pgbench calculates with numbers only: those of a connection follow those of the previous one.
    let firstChannel: Int
    /// The messages of the transaction.
    let batchSize: Int
    let channelsPerConnection: Int

    /// The rows per statement, largest first: the driver's, except for its largest.
    private static let rowCounts = [16, 4, 1]

    /// The beginning of the transaction is outside the pipeline, because pgbench prepares all statements before the first.
    var text: String {
        let channels = (0..<min(batchSize, channelsPerConnection)).map { "c\($0)" }
        var lines = channels.indices.map { "\\set c\($0) \(firstChannel) + :client_id * \(channelsPerConnection) + \($0)" }
        let locked = channels.map { ":\($0)" }.joined(separator: ", ")
        lines += [
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;", #"\startpipeline"#,
            """
            WITH before AS MATERIALIZED (SELECT current_setting('lock_timeout') AS value) SELECT set_config('lock_timeout', '2s', true), \
            pg_advisory_xact_lock_shared(1, 2), set_config('lock_timeout', before.value, true) FROM before;
            """,
            "SELECT (SELECT revision FROM access_revisions WHERE id = 1), (SELECT value FROM settings WHERE name = 'epoch');",
            "SELECT channel_id FROM channel_heads WHERE channel_id IN (\(locked)) ORDER BY channel_id FOR UPDATE;",
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
        lines += ["COMMIT;", #"\endpipeline"#]
        return lines.joined(separator: "\n")
    }

    /// Reads a channel as its sender sees it.
    private static func reading(_ channel: String) -> String {
        """
        SELECT c.type, c.discovery, c.joining, c.policy, c.is_distinct, c.is_ephemeral, c.is_frozen, c.muted_until, c.deleted_at, \
        c.change_seq, h.seq, h.member_count, h.message_count, h.ordinal, h.last_activity, h.last_message_at, h.purged_seq, h.row_kinds, \
        m.role, m.state, m.joined_at, m.joined_seq, m.read_seq, m.read_count + \
        CASE WHEN h.purged_seq > m.read_seq AND m.state = 'member' THEN (\(purged()) - \(purged(by: "m.user_id"))) ELSE 0 END, \
        m.last_read_at, m.history_floor, m.hidden, m.hidden_count, m.mention_seq, m.mention_message, m.muted_until, m.banned_until, \
        m.notifications_muted_until, m.user_seq, m.last_sent_seq, m.receipt_seq, m.change_seq FROM channels c JOIN channel_heads h ON h.channel_id = c.channel_id \
        LEFT JOIN members m ON m.channel_id = c.channel_id AND m.user_id = :\(channel) WHERE c.channel_id = :\(channel);
        """
    }

    /// Counts the messages purged after a member's read position. There are none, so it is never evaluated.
    private static func purged(by sender: String? = nil) -> String {
        """
        ((SELECT COUNT(*) FROM purged_messages p WHERE p.channel_id = m.channel_id AND p.seq > m.read_seq \
        AND p.seq < (m.read_seq / 1024 + 1) * 1024 AND p.counts = 1 \(sender.map { "AND p.sender_id = \($0)" } ?? "")) \
        + (SELECT COALESCE(SUM(n.count), 0) FROM purged_counts n WHERE n.channel_id = m.channel_id \
        AND n.sender_id = \(sender ?? "''") AND n.stretch > m.read_seq / 1024))
        """
    }

    /// Inserts a message into each of some channels. Their seqs increase from one message of the connection to the next, across channels.
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
                "(:\(channel), :id\(number), \(seq), \(seq), :\(channel), \(seq), :text, 'text', NULL, NULL, NULL, NULL, NULL, NULL, NULL, "
                    + "'default', NULL, 0, :now\(number), NULL, NULL, \(seq), 1)")
        }
        return lines + [
            """
            INSERT INTO messages (channel_id, message_id, seq, change_seq, sender_id, client_id, text, kind, custom_type, data, metadata, \
            tags, parent_id, mentionees, meta_arrays, push_option, target_languages, is_silent, created_at, edited_at, deleted_at, ordinal, \
            counts) VALUES \(rows.joined(separator: ", "));
            """
        ]
    }

    /// Updates a channel and its sender's membership after some messages.
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
