import RoostAPI
import RoostCore
import RoostTestSupport

/// Rows inserted without the rules, for tests that need more of them than operations make in a reasonable time.
enum BulkRows {
    /// Open channels without members, made one second after another from the year 2001 on.
    static func channels(_ count: Int, in world: CoreWorld) throws {
        try world.execute(
            """
            INSERT INTO channels (channel_id, type, is_distinct, discovery, joining, display_name, name_key, custom_type, tags, created_by,
                                  change_seq, created_at, updated_at)
            \(numbers(count))
            SELECT 'bulk-' || i, CASE i % 10 WHEN 0 THEN 'group' ELSE 'community' END, 0,
                   CASE i % 10 WHEN 0 THEN 'members' ELSE 'everyone' END, 'everyone', 'Bulk ' || i, 'bulk ' || i,
                   CASE i % 1000 WHEN 0 THEN 'rare' ELSE 'usual' END, '[]', 'maker-' || (i % 5000), 1, 1000000000000 + i * 1000,
                   1000000000000 + i * 1000
            FROM n
            """)
        try world.execute(
            """
            INSERT INTO channel_heads (channel_id, seq, member_count, message_count, last_activity, list_at, discovery)
            \(numbers(count))
            SELECT 'bulk-' || i, 1, 0, 0, 1000000000000 + i * 1000, 1000000000000 + i * 1000,
                   CASE i % 10 WHEN 0 THEN 'members' ELSE 'everyone' END
            FROM n
            """)
        try world.execute(
            """
            INSERT INTO channel_tags (tag, channel_id) \(numbers(count))
            SELECT CASE i % 1000 WHEN 0 THEN 'rare' ELSE 'usual' END, 'bulk-' || i FROM n
            """)
        try grams("channel", count, in: world)
    }

    /// Members of a channel, one for each second from the year 2001 on, and their users.
    static func members(_ count: Int, of channel: ChannelID, in world: CoreWorld) throws {
        try world.execute(
            """
            INSERT INTO users (user_id, display_name, name_key, user_seq, created_at, updated_at) \(numbers(count))
            SELECT 'bulk-' || i, 'Bulk ' || i, 'bulk ' || i, 1, 1, 1 FROM n
            """)
        try world.execute(
            """
            INSERT INTO members (channel_id, user_id, role, state, joined_at, joined_seq, change_seq, user_seq, read_seq, read_count,
                                 last_sent_seq)
            \(numbers(count))
            SELECT \(channel), 'bulk-' || i, 'member', 'member', 1000000000000 + i * 1000, 10 + i, 10 + i, 1, 0, 0, 0 FROM n
            """)
        try grams("user", count, in: world)
        try world.execute(
            """
            UPDATE channel_heads SET member_count = member_count + \(count), seq = seq + \(count) + 10 WHERE channel_id = \(channel)
            """)
    }

    /// Makes a user a member of the channels of ``channels(_:in:)`` with the first numbers.
    static func memberships(_ count: Int, of user: UserID, in world: CoreWorld) throws {
        try world.execute(
            """
            INSERT INTO members (channel_id, user_id, role, state, joined_at, joined_seq, change_seq, user_seq, read_seq, read_count,
                                 last_sent_seq)
            \(numbers(count))
            SELECT 'bulk-' || i, \(user), 'member', 'member', 1000000000000 + i * 1000, 1, 1, 1, 0, 0, 0 FROM n
            """)
    }

    /// Messages to a channel after its newest: one in so many is one member's, and the others are another's.
    static func messages(
        _ count: Int, to channel: ChannelID, every step: Int, by sender: UserID, others: UserID, in world: CoreWorld
    ) throws {
        try world.execute(
            """
            INSERT INTO messages (channel_id, seq, message_id, change_seq, ordinal, counts, sender_id, client_id, text, created_at)
            \(numbers(count))
            SELECT h.channel_id, h.seq + i, h.seq + i, h.seq + i, h.ordinal + i, 1,
                   CASE i % \(step) WHEN 0 THEN \(sender) ELSE \(others) END, 'bulk-' || (h.seq + i), 'bulk', 0
            FROM n JOIN channel_heads h ON h.channel_id = \(channel)
            """)
        try world.execute(
            """
            UPDATE channel_heads
            SET seq = seq + \(count), ordinal = ordinal + \(count), message_count = message_count + \(count)
            WHERE channel_id = \(channel)
            """)
        try world.execute(
            """
            UPDATE members SET last_sent_seq = (SELECT h.seq FROM channel_heads h WHERE h.channel_id = members.channel_id)
            WHERE channel_id = \(channel) AND user_id = \(sender)
            """)
    }

    /// Makes `Bulk 1` and the names that follow searchable by the parts that tests look for.
    private static func grams(_ kind: String, _ count: Int, in world: CoreWorld) throws {
        for gram in ["'bul'", "'ulk'", "'lk '", "'k ' || SUBSTR('' || i, 1, 1)"] as [SQL] {
            try world.execute(
                "INSERT INTO name_grams (kind, gram, id) \(numbers(count)) SELECT \(kind), \(gram), 'bulk-' || i FROM n")
        }
    }

    /// The numbers from 1 to a count, as the table `n` with the column `i`.
    private static func numbers(_ count: Int) -> SQL {
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count))"
    }
}
