import RoostAPI

/// Steps 0004 and 0035.
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

    /// Indexes names with a Korean syllable whose final consonant is apart by the composed syllable: keys had it apart until this step. Step 0004
    /// doesn't renew them, and mustn't: the grams of that time were made of characters, which only step 0031 deletes.
    @Sendable static func composeNames(_ transaction: any Transaction) throws {
        let users: (String, Int) -> SQL = {
            """
            SELECT user_id, display_name, name_key FROM users
            WHERE display_name IS NOT NULL AND user_id > \($0) ORDER BY user_id LIMIT \($1)
            """
        }
        try eachStaleName(transaction, users) { id, oldKey, key in
            try transaction.perform("UPDATE users SET name_key = \(key) WHERE user_id = \(id)")
            try transaction.indexKey(.user, id: id, before: oldKey, after: key)
        }
        let channels: (String, Int) -> SQL = {
            """
            SELECT channel_id, display_name, name_key FROM channels
            WHERE display_name IS NOT NULL AND channel_id > \($0) ORDER BY channel_id LIMIT \($1)
            """
        }
        try eachStaleName(transaction, channels) { id, oldKey, key in
            try transaction.perform("UPDATE channels SET name_key = \(key) WHERE channel_id = \(id)")
            try transaction.indexKey(.channel, id: id, before: oldKey, after: key)
        }
    }

    /// Passes the names whose key isn't that of this version. Reads a page of rows at a time: a database may have millions.
    private static func eachStaleName(
        _ transaction: any Transaction, _ sql: (String, Int) -> SQL,
        _ body: (_ id: String, _ oldKey: String, _ key: String) throws -> Void
    ) throws {
        let size = 500
        var last = ""
        while true {
            let page = try transaction.rows(sql(last, size)) { (id: $0.string(), name: $0.string(), key: $0.string()) }
            for (id, name, oldKey) in page {
                let key = NameSearch.key(of: name)
                // Two spellings of one text are equal in Swift, and two keys in the database.
                if !key.utf8.elementsEqual(oldKey.utf8) { try body(id, oldKey, key) }
            }
            guard page.count == size, let end = page.last else { return }
            last = end.id
        }
    }
}
