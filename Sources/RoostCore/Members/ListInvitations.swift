public import RoostAPI

extension ListInvitations: Handled, PagedQuery {
    public func handle(in context: inout Context) throws -> Page<Invitation> {
        let access = try context.require(.invitationList, in: channel)
        let walk = try Walk(self, shape: [.integer, .text], limits: Limits.memberPage, isDescending: true)
        let columns: [SQL] = ["i.invited_seq", "i.user_id"]
        let (transaction, id) = (context.transaction, access.channelId)
        var page = try walk.page(through: [
            { page in
                let sql: SQL = """
                    SELECT i.invited_seq, \(Invitation.columns) FROM invitations i
                    WHERE i.channel_id = \(id) AND i.state = 'pending'\(page.condition(on: columns))
                    ORDER BY \(page.order(by: columns)) LIMIT \(page.count)
                    """
                return try transaction.rows(sql) { row in
                    let place = row.int64()
                    let invitation = try Invitation(reading: &row)
                    return Walk.Entry(place: [.integer(place), .text(invitation.userId.rawValue)], row: invitation)
                }
            }
        ]) { $0 }
        page.users = try context.summaries(for: page.items)
        return page
    }
}

extension ListMyInvitations: Handled, PagedQuery {
    public func handle(in context: inout Context) throws -> Page<InvitationEntry> {
        try context.require(.streamRead)
        let walk = try Walk(self, shape: [.integer, .text], limits: Limits.memberPage, isDescending: true)
        let columns: [SQL] = ["i.invited_at", "i.channel_id"]
        let reading = context
        var page = try walk.page(through: [
            { page in
                let sql: SQL = """
                    SELECT \(Invitation.columns) FROM invitations i CROSS JOIN channel_heads h
                    WHERE i.user_id = \(reading.caller.user) AND i.state = 'pending' AND h.channel_id = i.channel_id AND h.is_deleted = 0\
                    \(page.condition(on: columns))
                    ORDER BY \(page.order(by: columns)) LIMIT \(page.count)
                    """
                return try reading.transaction.rows(sql) { row in
                    let invitation = try Invitation(reading: &row)
                    return Walk.Entry(
                        place: [.integer(invitation.invitedAt.milliseconds), .text(invitation.channelId.rawValue)], row: invitation)
                }
            }
        ]) { InvitationEntry(invitation: $0, channel: try reading.channel($0.channelId)) }
        page.users = try context.summaries(for: page.items)
        return page
    }
}
