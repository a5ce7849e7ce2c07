import RoostAPI

/// The step for names whose characters have several scalars.
extension Migrations {
    /// Indexes names with characters of several scalars, such as those in scripts with joined letters, by their scalars: until
    /// this step grams were made of characters. All other names keep their grams.
    @Sendable static func indexLetters(_ transaction: any Transaction) throws {
        let users: (String, Int) -> SQL = {
            "SELECT user_id, name_key FROM users WHERE user_id > \($0) ORDER BY user_id LIMIT \($1)"
        }
        try eachJoinedKey(transaction, users) { id, key in
            try transaction.indexGrams(.user, id: id, before: gramsOfCharacters(in: key), after: NameSearch.grams(of: key))
        }
        let channels: (String, Int) -> SQL = {
            "SELECT channel_id, name_key FROM channels WHERE channel_id > \($0) ORDER BY channel_id LIMIT \($1)"
        }
        try eachJoinedKey(transaction, channels) { id, key in
            try transaction.indexGrams(.channel, id: id, before: gramsOfCharacters(in: key), after: NameSearch.grams(of: key))
        }
    }

    /// Passes the keys that have a character of several scalars. Reads a page of rows at a time: a database may have millions.
    private static func eachJoinedKey(
        _ transaction: any Transaction, _ sql: (String, Int) -> SQL, _ body: (_ id: String, _ key: String) throws -> Void
    ) throws {
        let size = 500
        var last = ""
        while true {
            let page = try transaction.rows(sql(last, size)) { (id: $0.string(), key: $0.string()) }
            for (id, key) in page where key.count < key.unicodeScalars.count { try body(id, key) }
            guard page.count == size, let end = page.last else { return }
            last = end.id
        }
    }

    /// The grams that versions before this step made of a key.
    private static func gramsOfCharacters(in key: String) -> Set<SortKey> {
        let letters = Array(key)
        var grams: Set<SortKey> = []
        for start in letters.indices.dropLast(2) { grams.insert(.text(String(letters[start..<(start + 3)]))) }
        for word in NameKey.words(of: key) {
            for count in 1...2 where word.count >= count { grams.insert(.text("^" + word.prefix(count))) }
        }
        return grams
    }
}
