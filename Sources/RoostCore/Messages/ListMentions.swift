public import RoostAPI

extension ListMentions: Handled, PagedQuery {
    public func handle(in context: inout Context) throws -> Page<Message> {
        try context.require(.streamRead)
        let walk = try Walk(self, shape: [.integer, .text], limits: Limits.historyPage, isDescending: true)
        let columns: [SQL] = ["message_id", "channel_id"]
        let reading = context
        // Reads remember nothing, and many of the rows may be of channels that the caller has left, or of messages that are hidden.
        var known: [ChannelID: ChannelAccess?] = [:]
        var page = try walk.page(through: [
            { stretch in
                let sql: SQL = """
                    SELECT message_id, channel_id, seq FROM mentions WHERE user_id = \(reading.caller.user)\(stretch.condition(on: columns))
                    ORDER BY \(stretch.order(by: columns)) LIMIT \(stretch.count)
                    """
                return try reading.transaction.rows(sql) { row in
                    let (message, channel, seq) = (MessageID(rawValue: row.int64()), row.identifier(ChannelID.self), row.int64())
                    return Walk.Entry(
                        place: [.integer(message.rawValue), .text(channel.rawValue)],
                        row: (message: message, channel: channel, seq: seq))
                }
            }
        ]) { row -> Message? in
            let access = try known[row.channel] ?? reading.transaction.access(to: row.channel, of: reading.caller.user)
            known[row.channel] = .some(access)
            // A member can see what comes after the floor.
            guard let access, access.isMember, row.seq > reading.readingFloor(in: access) else { return nil }
            return try reading.transaction.message(row.message, in: row.channel)
        }
        page.users = try context.summaries(for: page.items)
        return page
    }
}
