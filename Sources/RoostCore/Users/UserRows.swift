package import RoostAPI

extension UserProfile: BoundRow {
    // derived: columns of u
    static let columns: SQL = "u.display_name, u.avatar_file_id, u.status, u.metadata"

    // derived: bound columns
    static let boundColumns: SQL = "display_name, avatar_file_id, status, metadata"

    // derived: init(reading:)
    init(reading row: inout RowReader) throws {
        try self.init(displayName: row.value(), avatarFileId: row.value(), status: row.value(), metadata: row.value())
    }

    // derived: bind(to:)
    func bind(to values: inout RowValues) throws {
        try values.bind(displayName)
        try values.bind(avatarFileId)
        try values.bind(status)
        try values.bind(metadata)
    }

    // derived: applying(_:)
    /// Returns the profile with the given fields of another one. An empty text removes one.
    func applying(_ changes: UserProfile) -> UserProfile {
        UserProfile(
            displayName: displayName.replaced(by: changes.displayName),
            avatarFileId: avatarFileId.replaced(by: changes.avatarFileId), status: status.replaced(by: changes.status),
            metadata: metadata.replaced(by: changes.metadata)
        )
    }
}

extension User: BoundRow {
    // derived: columns of u, without deactivatedAt
    static let columns: SQL = "u.user_id, \(UserProfile.columns), u.created_at, u.updated_at, u.version"

    // derived: bound columns
    static let boundColumns: SQL = "user_id, \(UserProfile.boundColumns), created_at, updated_at, version"

    // derived: init(reading:)
    init(reading row: inout RowReader) throws {
        try self.init(
            userId: row.value(), profile: UserProfile(reading: &row), createdAt: row.value(), updatedAt: row.value(),
            version: row.value())
    }

    // derived: bind(to:)
    func bind(to values: inout RowValues) throws {
        try values.bind(userId)
        try values.bind(profile)
        try values.bind(createdAt)
        try values.bind(updatedAt)
        try values.bind(version)
    }
}

extension User {
    /// Reads ``columns``; nil if they are NULL because there is no such user.
    init?(readingIfPresent row: inout RowReader) throws {
        if row.isNull { return nil }
        try self.init(reading: &row)
    }
}

extension SQL {
    /// Whether others may know the read position of a member `m`, as a column; NULL for an unknown user.
    static let memberSharesReading: SQL = "(SELECT shares_reading FROM users WHERE user_id = m.user_id)"
}

extension Transaction {
    func user(_ id: UserID) throws -> User? {
        try first("SELECT \(User.columns) FROM users u WHERE u.user_id = \(id)") { try User(reading: &$0) }
    }

    func preferences(of user: UserID) throws -> Preferences {
        let sql: SQL = "SELECT \(Preferences.columns) FROM users WHERE user_id = \(user)"
        return try first(sql) { try Preferences(reading: &$0) } ?? Preferences()
    }

    /// Returns whether others may know a user's read positions.
    func sharesReading(_ user: UserID) throws -> Bool {
        try bypassingBatchMemory { try first("SELECT shares_reading FROM users WHERE user_id = \(user)") { $0.bool() } } ?? true
    }

    /// Returns whether others may know that messages have reached a user's devices.
    func sharesDelivery(_ user: UserID) throws -> Bool {
        let sql: SQL = "SELECT 1 FROM users WHERE user_id = \(user) AND (shares_reading = 0 OR shares_delivery = 0)"
        return try bypassingBatchMemory { try first(sql) { _ in false } } ?? true
    }

    /// Returns whether others may know that a user is online.
    func sharesPresence(_ user: UserID) throws -> Bool {
        try first("SELECT shares_presence FROM users WHERE user_id = \(user)") { $0.bool() } ?? true
    }

    /// Returns whether invitations make a user a member at once (SB-18); nil for an unknown user.
    func acceptsInvitationsAutomatically(_ user: UserID) throws -> Bool? {
        try first("SELECT auto_accept FROM users WHERE user_id = \(user)") { $0.bool() }
    }

    func userExists(_ id: UserID) throws -> Bool {
        try first("SELECT 1 FROM users WHERE user_id = \(id)") { _ in true } ?? false
    }
}

/// A user's own stream carries the user's own profile.
extension User: StoredRow {
    package static func changed(
        for user: UserID, after seq: Seq, limit: Int, in transaction: any Transaction
    ) throws -> ChangedRows<User> {
        let sql: SQL = "SELECT u.user_seq, \(User.columns) FROM users u WHERE u.user_id = \(user) AND u.user_seq > \(seq)"
        return ChangedRows(try transaction.rows(sql) { (stamp: $0.int64(), row: try User(reading: &$0)) })
    }

    // No row is about a message.
    package static func purge(about message: Seq, in channel: ChannelID, _ transaction: any Transaction) throws {}
}

extension Preferences {
    // derived: columns, autoAcceptInvitations as auto_accept
    static let columns: SQL = "auto_accept, shares_typing, shares_reading, shares_delivery, shares_presence"

    // derived: init(reading:)
    init(reading row: inout RowReader) throws {
        try self.init(
            autoAcceptInvitations: row.value(), sharesTyping: row.value(), sharesReading: row.value(), sharesDelivery: row.value(),
            sharesPresence: row.value())
    }
}

extension Preferences: StoredRow {
    package static func changed(
        for user: UserID, after seq: Seq, limit: Int, in transaction: any Transaction
    ) throws -> ChangedRows<Preferences> {
        let sql: SQL = "SELECT user_seq, \(Preferences.columns) FROM users WHERE user_id = \(user) AND user_seq > \(seq)"
        return ChangedRows(try transaction.rows(sql) { (stamp: $0.int64(), row: try Preferences(reading: &$0)) })
    }

    /// Whether others see that the user is online.
    package static func accompany(
        _ rows: inout Rows, of stream: StreamID, after seq: Seq, in context: Context
    ) throws -> [Notice] {
        guard case .user(let user) = stream, let preferences = rows.preferences else { return [] }
        return [.presenceShared(user, preferences.sharesPresence)]
    }

    // No row is about a message.
    package static func purge(about message: Seq, in channel: ChannelID, _ transaction: any Transaction) throws {}
}

extension User: ContentSized {}
