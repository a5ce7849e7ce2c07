public import RoostAPI

extension ListReaders: Handled, PagedQuery {
    public func handle(in context: inout Context) throws -> Page<ReadPosition> {
        let access = try context.require(.historyRead, in: channel)
        guard access.policy.readEvents else {
            throw RoostError(.featureDisabled, "Nobody is told who has read in this channel.", rule: PolicyName.readEvents.rawValue)
        }
        guard access.counters.memberCount <= Limits.largeChannelMembers else {
            throw RoostError(
                .featureDisabled, "Nobody is told who has read in a channel of more than \(Limits.largeChannelMembers) members.",
                limit: Int64(Limits.largeChannelMembers))
        }
        let about = try message.map { try context.message($0, in: access) }
        let further: SQL = about.map { " AND m.read_seq >= \($0.seq) AND m.user_id <> \($0.sender)" } ?? ""
        let walk = try Walk(self, shape: [.integer, .text], limits: Limits.memberPage, isDescending: false)
        let columns: [SQL] = ["m.joined_seq", "m.user_id"]
        let (transaction, id) = (context.transaction, access.channelId)
        // As many rows as the channel has members are passed at most.
        var page = try walk.page(through: [
            { stretch in
                let sql: SQL = """
                    SELECT m.joined_seq, m.user_id, m.read_seq, m.last_read_at FROM members m
                    JOIN users u ON u.user_id = m.user_id AND u.shares_reading = 1
                    WHERE m.channel_id = \(id) AND m.state = 'member'\(further)\(stretch.condition(on: columns))
                    ORDER BY \(stretch.order(by: columns)) LIMIT \(stretch.count)
                    """
                return try transaction.rows(sql) { row in
                    let joinedSeq = row.int64()
                    let position = ReadPosition(
                        userId: UserID(row.string()), readSeq: row.int64(), lastReadAt: row.optionalTimestamp())
                    return Walk.Entry(place: [.integer(joinedSeq), .text(position.userId.rawValue)], row: position)
                }
            }
        ]) { $0 }
        page.users = try context.summaries(for: page.items)
        return page
    }
}

extension ReadPosition: ContentSized {
    var contentSizeBytes: Int { 100 }
}

extension ReadPosition: NamesUsers {
    var namedUsers: [UserID] { [userId] }
}
