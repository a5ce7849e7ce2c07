import GRDB

/// What lists show of users stays as long as they are named by a stored message, as its sender or by a mention, as a member or in an invitation.
extension Database {
    /// So many are kept whether they are named or not: they may be again.
    private static let usersKept = 5000

    /// Deletes the users whom nothing names any more, once there are many.
    func trimUsers(keeping usersKept: Int = Database.usersKept) throws {
        guard let count: Int = try value("SELECT COUNT(*) FROM users"), count > usersKept else { return }
        try execute(
            sql: """
                DELETE FROM users WHERE user_id NOT IN (
                    SELECT sender FROM messages UNION SELECT user_id FROM members UNION SELECT user_id FROM invitations
                    UNION SELECT inviter FROM invitations UNION SELECT user_id FROM profile
                    UNION SELECT mentioned.value FROM messages
                        JOIN json_each(CAST(mentionees AS TEXT)) entry JOIN json_each(entry.value, '$.users') mentioned)
                """)
    }
}
