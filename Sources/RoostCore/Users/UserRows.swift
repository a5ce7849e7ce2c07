package import RoostAPI

extension User {
    // derived: columns of u, without deactivatedAt
    static let columns: SQL = "u.user_id, u.display_name, u.avatar_file_id, u.metadata, u.created_at, u.updated_at, u.version"

    // derived: init(reading:)
    init(reading row: inout RowReader) throws {
        try self.init(
            userId: row.value(), displayName: row.value(), avatarFileId: row.value(), metadata: row.value(), createdAt: row.value(),
            updatedAt: row.value(), version: row.value())
    }
}

extension Transaction {
    func user(_ id: UserID) throws -> User? {
        try first("SELECT \(User.columns) FROM users u WHERE u.user_id = \(id)") { try User(reading: &$0) }
    }

    func preferences(of user: UserID) throws -> Preferences {
        try first("SELECT auto_accept FROM users WHERE user_id = \(user)") { Preferences(autoAcceptInvitations: $0.bool()) }
            ?? Preferences()
    }

    /// Returns whether invitations make a user a member at once (SB-18); nil for a user who doesn't exist.
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
}

extension Preferences: StoredRow {
    package static func changed(
        for user: UserID, after seq: Seq, limit: Int, in transaction: any Transaction
    ) throws -> ChangedRows<Preferences> {
        let sql: SQL = "SELECT user_seq, auto_accept FROM users WHERE user_id = \(user) AND user_seq > \(seq)"
        return ChangedRows(
            try transaction.rows(sql) { (stamp: $0.int64(), row: Preferences(autoAcceptInvitations: $0.bool())) })
    }
}
