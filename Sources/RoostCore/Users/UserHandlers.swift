public import RoostAPI

extension UpsertUser: Handled {
    public func scope(for caller: Caller) -> Scope { .user(user) }

    public func handle(in context: inout Context) throws -> User {
        try context.require(.userManage)
        var written = try context.write(profile, of: user)
        written.deactivatedAt = try context.transaction.deactivation(of: user)
        return written
    }
}

extension UpdateMe: Handled {
    public func scope(for caller: Caller) -> Scope { .user(caller.user) }

    public func handle(in context: inout Context) throws -> User {
        try context.require(.userUpdateMe)
        return try context.write(profile, of: context.caller.user)
    }
}

extension GetUser: Handled {
    public var isBrief: Bool { true }

    public func handle(in context: inout Context) throws -> User {
        try context.require(.userRead)
        guard let found = try context.user(user) else { throw RoostError.notFound("user") }
        return found
    }
}

extension GetUsers: Handled {
    public func handle(in context: inout Context) throws -> [User] {
        try context.require(.userRead)
        let showsDeactivated = context.showsDeactivated
        guard !users.isEmpty else { return [] }
        let sql: SQL = """
            SELECT \(User.columns), u.deactivated_at FROM users u WHERE u.user_id IN (\(list: Set(users).sorted().map(\.rawValue)))
            """
        var found: [User] = []
        var sizeBytes = 0
        try context.transaction.each(sql) { row in
            var user = try User(reading: &row)
            user.deactivatedAt = row.optionalTimestamp().flatMap { showsDeactivated ? $0 : nil }
            if omitMetadata == true { user.metadata = nil }
            sizeBytes += user.contentSizeBytes
            // There is no next page here, and a user left out would look nonexistent.
            guard sizeBytes <= Limits.pageContentBytes else {
                throw RoostError.limitExceeded("users", limit: Limits.pageContentBytes, unit: "bytes of profiles in one answer")
            }
            found.append(user)
        }
        return found.sorted { $0.userId < $1.userId }
    }
}

extension ListChangedUsers: Handled {
    public func handle(in context: inout Context) throws -> ChangedUsers {
        try context.require(.userRead)
        let found = try context.transaction.summaries(of: Set(versions.keys.map(UserID.init(rawValue:))))
        let changed = found.filter { $0.version > versions[$0.userId.rawValue] ?? 0 }
        var sizeBytes = 0
        let part = changed.prefix { user in
            sizeBytes += user.sizeBytes
            return sizeBytes <= Limits.pageContentBytes
        }
        return ChangedUsers(users: Array(part), hasMore: part.count < changed.count)
    }
}

extension GetMe: Handled {
    public var isBrief: Bool { true }

    public func handle(in context: inout Context) throws -> User {
        try context.require(.userRead)
        // Both transports register a caller before the first operation. The rule doesn't rely on it: an unregistered caller is
        // an unknown user, not a server fault.
        guard let found = try context.transaction.user(context.caller.user) else { throw RoostError.notFound("user") }
        return found
    }
}

extension GetPreferences: Handled {
    public func handle(in context: inout Context) throws -> Preferences {
        try context.require(.userRead)
        return try context.transaction.preferences(of: context.caller.user)
    }
}

extension UpdatePreferences: Handled {
    public static var userRate: UserRate? { .signals }
    public var rate: UserRate? { sharesPresence == nil ? Self.userRate : .presenceChanges }

    public func scope(for caller: Caller) -> Scope { .user(caller.user) }

    public func handle(in context: inout Context) throws -> Preferences {
        try context.require(.userUpdateMe)
        let user = context.caller.user
        let before = try context.transaction.preferences(of: user)
        let after = before.applying(self)
        guard after != before else { return before }
        let seq = try context.advanceStream(of: user)
        try context.transaction.perform(
            """
            UPDATE users SET auto_accept = \(after.autoAcceptInvitations), shares_typing = \(after.sharesTyping),
                shares_reading = \(after.sharesReading),
                shares_delivery = \(after.sharesDelivery), shares_presence = \(after.sharesPresence), user_seq = \(seq)
            WHERE user_id = \(user)
            """)
        if after.sharesPresence != before.sharesPresence { context.notify(.presenceShared(user, after.sharesPresence)) }
        context.notify(.preferencesUpdated, user: user, seq: seq, Rows([after]))
        return after
    }
}

extension Context {
    /// Returns a user as the caller may see them.
    fileprivate func user(_ id: UserID) throws -> User? {
        var found = try transaction.user(id)
        if found != nil, showsDeactivated { found?.deactivatedAt = try transaction.deactivation(of: id) }
        return found
    }

    /// Only users who can shut others out see which users are.
    fileprivate var showsDeactivated: Bool { Permissions.refusal(of: .userManage, for: caller.role) == nil }

    /// Creates a user, or replaces the given fields. Writing the current values changes nothing.
    fileprivate mutating func write(_ profile: UserProfile, of id: UserID) throws -> User {
        let before = try transaction.user(id)
        if before == nil { try id.validateNew(field: "user") }
        var after = before ?? User(userId: id, createdAt: now, updatedAt: now)
        after.profile = after.profile.applying(profile)
        if let before, try StoredJSON.isSame(before, after) { return before }

        let names = [after.profile.displayName.map { NameSkeletons.Name(text: $0, field: "displayName") }].compactMap { $0 }
        try takeNames(
            .user, id: id.rawValue, before: before.map { [id.rawValue] + [$0.profile.displayName].compactMap { $0 } } ?? [],
            after: names + [NameSkeletons.Name(text: id.rawValue, field: "user")])
        after.updatedAt = now
        after.version = (before?.version ?? 0) + 1
        let seq = try advanceStream(of: id)
        try transaction.perform(
            """
            INSERT INTO users (\(User.boundColumns), name_key, user_seq)
            VALUES (\(row: after), \(NameSearch.key(of: after.profile.displayName)), \(seq))
            ON CONFLICT (user_id) DO UPDATE
            SET (\(UserProfile.boundColumns)) = (\(row: after.profile)), name_key = excluded.name_key, user_seq = excluded.user_seq,
                updated_at = excluded.updated_at, version = excluded.version
            """)
        try transaction.indexName(
            .user, id: id.rawValue, before: before?.profile.displayName, after: after.profile.displayName)
        notify(.userUpdated, user: id, seq: seq, Rows([after]))
        // No list shows a new user yet, and metadata is in none.
        if let before, try before.isShown(otherThan: after) { notify(.profileChanged(id)) }
        return after
    }

    /// Creates the caller if necessary: a user exists from the first use of a token that names them.
    ///
    /// - Parameters:
    ///   - displayName: The display name of a new user.
    ///   - field: The field that named the user, for the refusal of an invalid id.
    /// - Throws: `invalid_argument` with that field, also if the id looks like another user's and the operator refuses that.
    public mutating func registerCaller(displayName: String?, field: String = "sub") throws {
        guard try !transaction.userExists(caller.user) else { return }
        try caller.user.validateNew(field: field)
        do {
            _ = try write(UserProfile(displayName: displayName), of: caller.user)
        } catch let error as RoostError where error.code == .alreadyExists {
            // A taken name is no reason to lock a user out; nothing has been written yet.
            if error.field == "displayName" { return try registerCaller(displayName: nil, field: field) }
            throw RoostError.invalidArgument(field, "looks like the name or id of another user")
        }
    }

    /// Connects the caller: from this point in the order, the connection receives every event of the caller's streams.
    public mutating func connect(_ connection: ConnectionID) throws {
        var streams = try transaction.streams(of: caller.user)
        streams.appRole = caller.role
        notify(.connected(connection, caller.user, streams))
    }
}

extension User {
    /// Whether lists show this version of a user differently from another.
    fileprivate func isShown(otherThan other: User) throws -> Bool {
        try !StoredJSON.isSame(summary.shown, other.summary.shown)
    }
}

extension UserSummary {
    /// The size of its texts in bytes.
    fileprivate var sizeBytes: Int {
        [displayName, avatarFileId, status].reduce(userId.rawValue.utf8.count) { $0 + ($1?.utf8.count ?? 0) }
    }

    /// The same without the version.
    fileprivate var shown: UserSummary {
        var summary = self
        summary.version = 0
        return summary
    }
}
