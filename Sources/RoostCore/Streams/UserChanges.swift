public import RoostAPI

extension GetMyChanges: Handled {
    public func handle(in context: inout Context) throws -> Changes {
        try context.require(.streamRead)
        return try context.myChanges(after: after, limit: try Limits.page(limit, Limits.changesPage))
    }
}

extension Context {
    /// The caller's own rows that changed after a position of the caller's stream.
    func myChanges(after: Seq, limit: Int) throws -> Changes {
        let user = caller.user
        let head = try transaction.streamHead(of: user)
        guard after <= head else {
            throw RoostError(
                .resyncRequired, "Your stream ends at \(head): forget what you hold and start afresh.", field: "after", limit: head)
        }
        let sql: SQL = """
            SELECT m.user_seq, \(Membership.columns) FROM members m
            JOIN channel_heads h ON h.channel_id = m.channel_id
            WHERE m.user_id = \(user) AND m.user_seq > \(after) ORDER BY m.user_seq LIMIT \(limit + 1)
            """
        let memberships = try transaction.rows(sql) { (stamp: $0.int64(), row: try Membership(reading: &$0)) }
        let invitations = try transaction.invitations(concerning: user, changedAfter: after, limit: limit)
        var upTo = memberships.count > limit ? memberships[limit - 1].stamp : head
        if let end = invitations.upTo { upTo = min(upTo, end) }
        let newInvitations = invitations.stamped.filter { $0.stamp <= upTo }.map(\.invitation)
        let profile: SQL = """
            SELECT u.auto_accept, \(User.columns) FROM users u WHERE u.user_id = \(user) AND u.user_seq > \(after)
            """
        let own = try transaction.first(profile) { row in
            (preferences: Preferences(autoAcceptInvitations: row.bool()), user: try User(reading: &row))
        }
        return Changes(
            stream: .user(user),
            rows: Rows(
                memberships: memberships.filter { $0.stamp <= upTo }.map(\.row),
                invitations: newInvitations.isEmpty ? nil : newInvitations, users: own.map { [$0.user] } ?? [],
                preferences: own?.preferences),
            seq: upTo, hasMore: upTo < head)
    }
}
