public import RoostAPI

extension ListReaders: Handled, PagedQuery {
    public func handle(in context: inout Context) throws -> Page<ReadPosition> {
        let access = try context.require(.historyRead, in: channel)
        guard access.policy.readEvents else {
            throw RoostError(.featureDisabled, "This channel doesn't share who has read.", rule: PolicyName.readEvents.rawValue)
        }
        try context.requireReceipts(in: access, "who has read")
        let about = try message.map { try context.message($0, in: access) }
        // For the caller it is the marked position; for others the position that was shared.
        let readSeq: SQL =
            "(CASE WHEN m.user_id = \(context.caller.user) THEN m.read_seq ELSE \(Unread.receiptSeq(of: "m")) END)"
        // For members who joined after a message it counts as read from the start, seen or not.
        let further: SQL =
            access.deletedAt != nil
            ? " AND 1 = 0"
            : about.map { " AND \(readSeq) >= \($0.seq) AND m.joined_seq < \($0.seq) AND m.user_id <> \($0.sender)" } ?? ""
        let walk = try Walk(self, shape: [.integer, .text], limits: Limits.memberPage, isDescending: false)
        let columns: [SQL] = ["m.joined_seq", "m.user_id"]
        let (transaction, id) = (context.transaction, access.channelId)
        let isOwn: SQL = "m.user_id = \(context.caller.user)"
        let isReader = try transaction.readers(of: access.policy).containing(role: "m.role")
        // Others' positions name members, as the list of members does.
        let mayList = context.refusal(of: .memberList, in: access) == nil
        let isShown: SQL = mayList ? "(\(isOwn) OR \(isReader))" : isOwn
        let reportsDelivery = access.policy.deliveryEvents
        // Passes at most as many rows as the channel has members.
        var page = try walk.page(through: [
            { page in
                let sql: SQL = """
                    SELECT m.joined_seq, m.user_id, \(readSeq), m.last_read_at, m.delivered_seq, m.delivered_at, u.shares_delivery FROM members m
                    JOIN users u ON u.user_id = m.user_id AND u.shares_reading = 1
                    WHERE m.channel_id = \(id) AND m.state = 'member' AND \(isShown)\(further)\(page.condition(on: columns))
                    ORDER BY \(page.order(by: columns)) LIMIT \(page.count)
                    """
                return try transaction.rows(sql) { row in
                    let joinedSeq = row.int64()
                    var position = ReadPosition(
                        userId: UserID(row.string()), readSeq: row.int64(), lastReadAt: row.optionalTimestamp()
                    )
                    position.joinedSeq = joinedSeq
                    position = position.delivered(
                        upTo: row.int64(), at: row.optionalTimestamp(), isReported: row.bool() && reportsDelivery)
                    return Walk.Entry(place: [.integer(joinedSeq), .text(position.userId.rawValue)], row: position)
                }
            }
        ]) { $0 }
        page.users = try context.summaries(for: page.items)
        return page
    }
}

extension ReadPosition {
    /// The same with the delivered position, if that is further.
    fileprivate func delivered(upTo seq: Seq, at time: Timestamp?, isReported: Bool) -> ReadPosition {
        guard isReported else { return self }
        var position = self
        (position.deliveredSeq, position.lastDeliveredAt) = (seq, time)
        return merged(with: position)
    }
}

extension ReadPosition: ContentSized {
    var contentSizeBytes: Int { 120 }
}

extension ReadPosition: NamesUsers {
    var namedUsers: [UserID] { [userId] }
}
