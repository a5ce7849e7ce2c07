public import RoostCore

/// The tables that the rules write.
public enum CoreTables {
    /// More than any table has: a column that doesn't exist reads as NULL.
    static let columnsMax = 40

    public static let all: [(name: String, rows: SQL)] = [
        // How many ids were taken isn't part of the state: a refused attempt to create something existing already takes one.
        ("settings", "SELECT * FROM settings WHERE name <> 'ids' ORDER BY 1"),
        ("users", "SELECT * FROM users ORDER BY 1"),
        ("user_activity", "SELECT * FROM user_activity ORDER BY 1"),
        ("revoked_tokens", "SELECT * FROM revoked_tokens ORDER BY 1"),
        ("devices", "SELECT * FROM devices ORDER BY 1, 2"),
        ("access_revisions", "SELECT * FROM access_revisions ORDER BY 1"),
        ("effects", "SELECT kind, effect_key, payload, due_at, attempts, failure, dead_at FROM effects ORDER BY 1, 2"),
        ("user_heads", "SELECT * FROM user_heads ORDER BY 1"),
        ("channels", "SELECT * FROM channels ORDER BY 1"),
        ("channel_heads", "SELECT * FROM channel_heads ORDER BY 1"),
        ("members", "SELECT * FROM members ORDER BY 1, 2"),
        ("messages", "SELECT * FROM messages ORDER BY 1, 2"),
        ("purged_messages", "SELECT * FROM purged_messages ORDER BY 1, 2"),
        ("purged_counts", "SELECT * FROM purged_counts ORDER BY 1, 2, 3"),
        ("sent_counts", "SELECT * FROM sent_counts ORDER BY 1, 2, 3"),
        ("message_versions", "SELECT * FROM message_versions ORDER BY 1, 2, 3"),
        ("own_deletions", "SELECT * FROM own_deletions ORDER BY 1, 2, 3"),
        ("drafts", "SELECT * FROM drafts ORDER BY 1, 2"),
        ("mentions", "SELECT * FROM mentions ORDER BY 1, 2, 3"),
        ("channel_mentions", "SELECT * FROM channel_mentions ORDER BY 1, 2"),
        ("invitations", "SELECT * FROM invitations ORDER BY 1, 2, 3"),
        ("channel_names", "SELECT * FROM channel_names ORDER BY 1"),
        ("channel_tags", "SELECT * FROM channel_tags ORDER BY 1, 2"),
        ("name_grams", "SELECT * FROM name_grams ORDER BY 1, 2, 3"),
        ("name_skeletons", "SELECT * FROM name_skeletons ORDER BY 1, 2, 3"),
        ("channel_types", "SELECT * FROM channel_types ORDER BY 1"),
        ("roles", "SELECT * FROM roles ORDER BY 1"),
        ("idempotency_keys", "SELECT * FROM idempotency_keys ORDER BY 1, 2"),
        ("operation_keys", "SELECT * FROM operation_keys ORDER BY 1, 2"),
    ]

    /// Every row of every table as text.
    public static func dump(in transaction: any Transaction) throws -> [String] {
        try all.flatMap { table in
            try transaction.rows(table.rows) { row in
                let columns = (0..<columnsMax).map { _ in row.optionalString() ?? "NULL" }
                return "\(table.name): " + columns.joined(separator: "|")
            }
        }
    }
}
