import RoostAPI

/// Step 0004.
extension Migrations {
    /// Sets the member counter of deleted channels, which have no members, to 0.
    @Sendable static func emptiedChannels(_ dialect: Dialect) -> [SQL] {
        ["UPDATE channel_heads SET member_count = 0 WHERE is_deleted = 1"]
    }

    /// Indexes existing names by the basic letters for `ø`, `ł` and the like, which the keys of step 0003 lack.
    @Sendable static func foldLetters(_ transaction: any Transaction) throws {
        let users = try staleNames("SELECT user_id, display_name, name_key FROM users WHERE display_name IS NOT NULL", transaction)
        for name in users {
            try transaction.perform("UPDATE users SET name_key = \(name.key) WHERE user_id = \(name.id)")
            try transaction.indexKey(.user, id: name.id, before: name.oldKey, after: name.key)
        }
        let channels = try staleNames(
            "SELECT channel_id, display_name, name_key FROM channels WHERE display_name IS NOT NULL", transaction)
        for name in channels {
            try transaction.perform("UPDATE channels SET name_key = \(name.key) WHERE channel_id = \(name.id)")
            try transaction.indexKey(.channel, id: name.id, before: name.oldKey, after: name.key)
        }
    }

    /// Keeps only names whose key has changed in memory: they are few.
    private static func staleNames(
        _ sql: SQL, _ transaction: any Transaction
    ) throws -> [(id: String, key: String, oldKey: String)] {
        var stale: [(id: String, key: String, oldKey: String)] = []
        try transaction.each(sql) { row in
            let (id, name, oldKey) = (row.string(), row.string(), row.string())
            let key = NameSearch.key(of: name)
            if key != oldKey { stale.append((id, key, oldKey)) }
        }
        return stale
    }
}
