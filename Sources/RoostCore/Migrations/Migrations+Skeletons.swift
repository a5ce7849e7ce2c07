import RoostAPI

/// Step 0007.
extension Migrations {
    @Sendable static func nameSkeletons(_ dialect: Dialect) -> [SQL] {
        [
            """
            CREATE TABLE name_skeletons (
                kind \(dialect.text) NOT NULL, skeleton \(dialect.text) NOT NULL, id \(dialect.text) NOT NULL, is_sole BIGINT NOT NULL,
                PRIMARY KEY (kind, skeleton, id)
            ) \(dialect.clusteredTable)
            """,
            "CREATE UNIQUE INDEX name_skeletons_sole ON name_skeletons (kind, skeleton) WHERE is_sole = 1",
        ]
    }

    /// Stores the looks of existing names.
    @Sendable static func fillSkeletons(_ transaction: any Transaction) throws {
        try eachPage(transaction, { "SELECT user_id, display_name FROM users WHERE user_id > \($0) ORDER BY user_id LIMIT \($1)" })
        {
            row in
            let (id, name) = (row.string(), row.optionalString())
            return (id, [id, name].compactMap { $0 }.map { (.user, $0) })
        }
        let channels: (String, Int) -> SQL = {
            "SELECT channel_id, type FROM channels WHERE channel_id > \($0) ORDER BY channel_id LIMIT \($1)"
        }
        try eachPage(transaction, channels) { row in
            let (id, type) = (row.string(), row.string())
            return (id, [(.channel, id), (.channel, "\(type):\(id)")])
        }
        let found: (String, Int) -> SQL = {
            """
            SELECT channel_id, display_name FROM channels
            WHERE discovery = 'everyone' AND deleted_at IS NULL AND display_name IS NOT NULL AND channel_id > \($0)
            ORDER BY channel_id LIMIT \($1)
            """
        }
        try eachPage(transaction, found) { row in (row.string(), [(.channelName, row.string())]) }
    }

    /// Reads a page of rows at a time: a database may have millions.
    private static func eachPage(
        _ transaction: any Transaction, _ sql: (String, Int) -> SQL,
        _ read: (inout RowReader) throws -> (id: String, names: [(NameSkeletons.Kind, String)])
    ) throws {
        let size = 1000
        var last = ""
        while true {
            let page = try transaction.rows(sql(last, size), read)
            for (id, names) in page {
                for (kind, name) in names {
                    _ = try transaction.insertSkeleton(Skeleton.key(of: name), kind, of: id, isSole: false)
                }
            }
            guard page.count == size, let end = page.last else { return }
            last = end.id
        }
    }
}
