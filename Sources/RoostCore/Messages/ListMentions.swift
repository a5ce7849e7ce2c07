public import RoostAPI

extension ListMentions: Handled, PagedQuery {
    public func handle(in context: inout Context) throws -> Page<Message> {
        try context.require(.streamRead)
        let walk = try Walk(self, shape: [.integer, .text], limits: Limits.historyPage, isDescending: true)
        let columns: [SQL] = ["message_id", "channel_id"]
        let reading = context
        var page = try walk.page(through: [
            { stretch in
                let sql: SQL = """
                    SELECT message_id, channel_id FROM mentions WHERE user_id = \(reading.caller.user)\(stretch.condition(on: columns))
                    ORDER BY \(stretch.order(by: columns)) LIMIT \(stretch.count)
                    """
                return try reading.transaction.rows(sql) { row in
                    let (message, channel) = (MessageID(rawValue: row.int64()), row.identifier(ChannelID.self))
                    return Walk.Entry(
                        place: [.integer(message.rawValue), .text(channel.rawValue)], row: (message: message, channel: channel))
                }
            }
        ]) { try reading.visibleMessage($0.message, in: $0.channel) }
        page.users = try context.summaries(for: page.items)
        return page
    }
}

extension Context {
    /// Returns a message if the caller is a member there and can see it.
    fileprivate func visibleMessage(_ id: MessageID, in channel: ChannelID) throws -> Message? {
        guard let access = try transaction.access(to: channel, of: caller.user), access.isMember,
            let message = try transaction.message(id, in: channel), message.seq > readingFloor(in: access)
        else { return nil }
        return message
    }
}
