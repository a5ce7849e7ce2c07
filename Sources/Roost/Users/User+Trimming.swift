import GRDB
import RoostAPI

/// A user is kept as long as a stored message names them, as its sender or in a mention, or a member or an invitation does.
extension Database {
    /// The number of users kept even if nothing refers to them, since something may again.
    private static let usersKept = 5000

    /// Deletes users that nothing refers to any longer, once there are many. The chat's own user stays.
    func trimUsers(of own: UserID, keeping usersKept: Int = Database.usersKept) throws {
        guard let count: Int = try value("SELECT COUNT(*) FROM users"), count > usersKept else { return }
        try execute(
            sql: """
                DELETE FROM users WHERE user_id <> ? AND user_id NOT IN (
                    SELECT sender FROM messages UNION SELECT user_id FROM members UNION SELECT user_id FROM invitations
                    UNION SELECT inviter FROM invitations
                    UNION SELECT mentioned.value FROM messages
                        JOIN json_each(CAST(mentionees AS TEXT)) entry JOIN json_each(entry.value, '$.users') mentioned)
                """,
            arguments: [own.rawValue])
    }
}
