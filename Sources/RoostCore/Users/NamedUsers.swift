import RoostAPI

/// A row of a list that names users only by id. Their summaries accompany its page.
protocol NamesUsers {
    /// The users, possibly with repetitions.
    var namedUsers: [UserID] { get }
    /// The first of them; nil for none.
    var firstNamedUser: UserID? { get }
    /// The others.
    var otherNamedUsers: [UserID] { get }
}

extension NamesUsers {
    var firstNamedUser: UserID? { namedUsers.first }
    var otherNamedUsers: [UserID] { Array(namedUsers.dropFirst()) }
}

extension Context {
    /// Returns the summaries of users, each once, in the order of their ids; nil for none. Unknown ids are left out.
    ///
    /// A page costs one more statement, however many users it names.
    func summaries(of ids: Set<UserID>) throws -> [UserSummary]? {
        var found: [UserSummary] = []
        if Permissions.refusal(of: .userRead, for: caller.role) == nil { found = try transaction.summaries(of: ids) }
        return found.isEmpty ? nil : found
    }

    /// Returns the summaries of the users whom rows name, up to the limit per page: each row's first user ahead of those it mentions.
    func summaries(for rows: some Collection<some NamesUsers>) throws -> [UserSummary]? {
        // Consecutive rows often name the same user, and looking into a set takes longer.
        var ids: Set<UserID> = []
        var others: [UserID] = []
        var last: UserID?
        func note(_ first: UserID?, _ rest: [UserID]) {
            guard let first else { return }
            if first != last { ids.insert(first) }
            last = first
            others += rest
        }
        // A loop over the rows themselves would copy each, and so would a function that takes one.
        let wasContiguous: Void? = rows.withContiguousStorageIfAvailable { rows in
            for index in rows.indices { note(rows[index].firstNamedUser, rows[index].otherNamedUsers) }
        }
        if wasContiguous == nil { for row in rows { note(row.firstNamedUser, row.otherNamedUsers) } }
        for id in others where ids.count < Limits.usersPerChanges { ids.insert(id) }
        return try summaries(of: ids)
    }

    /// Returns the summaries of the users whom the rows of streams name, up to the limit: the sender of each stream's newest message first.
    func summaries(for streams: [Rows]) throws -> [UserSummary]? {
        var ids: Set<UserID> = []
        let newest = streams.lazy.compactMap { $0.messages?.max { $0.seq < $1.seq }?.sender }
        for id in newest where ids.count < Limits.usersPerChanges { ids.insert(id) }
        for rows in streams where ids.count < Limits.usersPerChanges {
            for id in rows.namedUsers where ids.count < Limits.usersPerChanges { ids.insert(id) }
        }
        return try summaries(of: ids)
    }
}

extension Transaction {
    func summaries(of ids: Set<UserID>) throws -> [UserSummary] {
        var found: [UserSummary] = []
        for part in ids.sorted().map(\.rawValue).chunked(by: 512) {
            let sql: SQL = "SELECT \(UserSummary.columns) FROM users WHERE user_id IN (\(list: part))"
            found += try rows(sql) { try UserSummary(reading: &$0) }
        }
        return found.sorted { $0.userId < $1.userId }
    }
}

extension UserSummary {
    // derived: columns
    static let columns: SQL = "user_id, display_name, avatar_file_id, status, version"

    // derived: init(reading:)
    init(reading row: inout RowReader) throws {
        try self.init(
            userId: row.value(), displayName: row.value(), avatarFileId: row.value(), status: row.value(), version: row.value())
    }
}
