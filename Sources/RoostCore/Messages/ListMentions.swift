public import RoostAPI

extension ListMentions: Handled, PagedQuery {
    public func handle(in context: inout Context) throws -> Page<Message> {
        try context.require(.streamRead)
        var page = try channel.map { try mentions(in: context.require(.historyRead, in: $0), context) } ?? mentionsByName(context)
        page.users = try context.summaries(for: page.items)
        return page
    }

    private func mentionsByName(_ context: Context) throws -> Page<Message> {
        let walk = try Walk(self, shape: [.integer, .text], limits: Limits.historyPage, isDescending: true)
        let columns: [SQL] = ["message_id", "channel_id"]
        // Reads have no memory, and many of the rows may be of channels that the caller has left, or of hidden messages.
        var known: [ChannelID: ChannelAccess?] = [:]
        return try walk.page(through: [
            { page in
                let sql: SQL = """
                    SELECT message_id, channel_id, seq FROM mentions WHERE user_id = \(context.caller.user)\(page.condition(on: columns))
                    ORDER BY \(page.order(by: columns)) LIMIT \(page.count)
                    """
                return try context.transaction.rows(sql) { row in
                    let (message, channel, seq) = (MessageID(rawValue: row.int64()), row.identifier(ChannelID.self), row.int64())
                    return Walk.Entry(
                        place: [.integer(message.rawValue), .text(channel.rawValue)],
                        row: (message: message, channel: channel, seq: seq))
                }
            }
        ]) { row -> Message? in
            let access = try known[row.channel] ?? context.transaction.access(to: row.channel, of: context.caller.user)
            known[row.channel] = .some(access)
            // A member can see messages after the floor.
            guard let access, access.isMember, row.seq > context.readingFloor(in: access) else { return nil }
            return try context.transaction.message(row.message, in: row.channel)
        }
    }

    /// Returns a page in the order of the seqs from which the messages mention the caller: both B-trees have it.
    private func mentions(in access: ChannelAccess, _ context: Context) throws -> Page<Message> {
        let walk = try Walk(self, shape: [.integer], limits: Limits.historyPage, isDescending: true)
        let (transaction, caller, channel) = (context.transaction, context.caller.user, access.channelId)
        // Watchers who aren't members can't be mentioned.
        guard access.isMember else { return Page(items: []) }
        let floor = context.readingFloor(in: access)
        let columns: [SQL] = ["mention_seq"]
        func byName(_ page: KeysetPage) throws -> [Walk.Entry<Place>] {
            let sql: SQL = """
                SELECT mention_seq, seq FROM mentions
                WHERE user_id = \(caller) AND channel_id = \(channel) AND mention_seq > \(floor)\(page.condition(on: columns))
                ORDER BY \(page.order(by: columns)) LIMIT \(page.count)
                """
            return try transaction.rows(sql) { row in
                let place = Place(mentionSeq: row.int64(), seq: row.int64(), isByName: true)
                return Walk.Entry(place: [.integer(place.mentionSeq)], row: place)
            }
        }
        func ofChannel(_ page: KeysetPage) throws -> [Walk.Entry<Place>] {
            let sql: SQL = """
                SELECT mention_seq, seq, sender_id FROM channel_mentions
                WHERE channel_id = \(channel) AND mention_seq > \(floor)\(page.condition(on: columns))
                ORDER BY \(page.order(by: columns)) LIMIT \(page.count)
                """
            return try transaction.rows(sql) { row in
                let place = Place(mentionSeq: row.int64(), seq: row.int64(), isByName: false)
                // Senders don't mention themselves.
                return Walk.Entry(place: [.integer(place.mentionSeq)], row: try row.value() == caller ? nil : place)
            }
        }
        return try walk.page(through: [byName, ofChannel]) { place -> Message? in
            guard place.seq > floor, let message = try transaction.message(at: place.seq, in: channel) else { return nil }
            let seen = try context.shown(message, in: access)
            return try seen.isDeletedForMe || isListedEarlier(message, than: place, by: caller, transaction) ? nil : seen
        }
    }

    /// The seq from which a message mentions the caller, by name or with the channel.
    private struct Place {
        let mentionSeq: Seq
        let seq: Seq
        let isByName: Bool
    }

    /// Whether a message also mentions the caller in the other way from a later seq on: it is listed there.
    private func isListedEarlier(
        _ message: Message, than place: Place, by caller: UserID, _ transaction: any Transaction
    ) throws -> Bool {
        let other: SQL =
            if place.isByName {
                "SELECT mention_seq FROM channel_mentions WHERE channel_id = \(message.channelId) AND seq = \(message.seq)"
            } else {
                """
                SELECT mention_seq FROM mentions
                WHERE user_id = \(caller) AND message_id = \(message.messageId) AND channel_id = \(message.channelId)
                """
            }
        let found = try transaction.first(other) { $0.optionalInt64() }
        return (found ?? nil).map { $0 > place.mentionSeq } ?? false
    }
}
