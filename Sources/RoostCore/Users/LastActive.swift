public import RoostAPI

extension ListUserPresence: Handled {
    public static var userRate: UserRate? { .signals }
    public var requiredPresence: PresenceRequirement { .users(users) }

    public func handle(in context: inout Context) throws -> UserPresences {
        try context.require(.userRead)
        let wanted = Set(users).sorted().map(\.rawValue)
        guard !wanted.isEmpty else { return UserPresences(users: [], pollSeconds: Self.pollSeconds) }
        let sql: SQL = """
            SELECT u.user_id, u.shares_presence, a.active_at FROM users u LEFT JOIN user_activity a ON a.user_id = u.user_id
            WHERE u.user_id IN (\(list: wanted))
            """
        let found = try context.transaction.rows(sql) { row in
            let (user, isShared): (UserID, Bool) = (try row.value(), row.bool())
            let lastActiveAt = row.optionalTimestamp()
            let isOnline = isShared && (context.presence.isConnected(user) || context.connectedElsewhere.contains(user))
            return UserPresence(
                userId: user, isOnline: isOnline, lastActiveAt: isShared && !isOnline ? lastActiveAt : nil)
        }
        return UserPresences(users: found.sorted { $0.userId < $1.userId }, pollSeconds: Self.pollSeconds)
    }

    private static let pollSeconds = 60
}

extension Transaction {
    /// Records that users were online at a time. A time before the stored one changes nothing, since several nodes record, unless the stored
    /// one is ahead of the clock: it was recorded while the clock was wrong.
    ///
    /// It moves no stream, since nobody is notified of it.
    ///
    /// - Parameter now: The database's clock, which the times are of too.
    public func recordActivity(_ activity: [UserID: Timestamp], now: Timestamp) throws {
        // In one order, or two nodes could wait for each other.
        var rest = activity.sorted { $0.key < $1.key }.map { user, time -> SQL in "(\(user), \(time))" }[...]
        while !rest.isEmpty {
            // Each number of rows is another statement to prepare.
            let values = Array(rest.prefix(rest.count < 100 ? 1 : 100))
            rest = rest.dropFirst(values.count)
            try perform(
                """
                INSERT INTO user_activity (user_id, active_at) VALUES \(values.joined(by: ", "))
                ON CONFLICT (user_id) DO UPDATE SET active_at = excluded.active_at
                WHERE user_activity.active_at < excluded.active_at OR user_activity.active_at > \(now.after(seconds: 60))
                """)
        }
    }
}
