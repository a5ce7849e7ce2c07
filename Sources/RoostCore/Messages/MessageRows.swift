package import RoostAPI

extension MessageContent: BoundRow {
    // derived: columns
    static let columns: SQL = """
        text, kind, custom_type, data, metadata, tags, parent_id, mentionees, meta_arrays, push_option, target_languages, is_silent
        """

    // derived: init(reading:)
    init(reading row: inout RowReader) throws {
        try self.init(
            text: row.value(), kind: row.value(), customType: row.value(), data: row.value(), metadata: row.value(),
            tags: row.value(), parentId: row.value(), mentionees: row.value(), metaArrays: row.value(), pushOption: row.value(),
            targetLanguages: row.value(), isSilent: row.value())
    }

    // derived: bind(to:)
    func bind(to values: inout RowValues) throws {
        try values.bind(text)
        try values.bind(kind)
        try values.bind(customType)
        try values.bind(data)
        try values.bind(metadata)
        try values.bind(tags)
        try values.bind(parentId)
        try values.bind(mentionees)
        try values.bind(metaArrays)
        try values.bind(pushOption)
        try values.bind(targetLanguages)
        try values.bind(isSilent)
    }
}

extension Message: BoundRow {
    // derived: columns, sender as sender_id, without channelId, without isDeletedForMe and droppedMentions
    static let columns: SQL = """
        message_id, seq, change_seq, sender_id, client_id, \(MessageContent.columns), created_at, edited_at, deleted_at
        """

    /// The same columns, with constants for the content that concealing a message doesn't need, which can be half a megabyte.
    static let columnsToConceal: SQL = """
        message_id, seq, change_seq, sender_id, client_id, '', kind, NULL, NULL, NULL, NULL, parent_id, mentionees, NULL, 'default', NULL,
        is_silent, created_at, edited_at, deleted_at
        """

    // derived: init(reading:)
    init(reading row: inout RowReader, channelId: ChannelID) throws {
        try self.init(
            messageId: row.value(), channelId: channelId, seq: row.value(), changeSeq: row.value(), sender: row.value(),
            clientId: row.value(), content: MessageContent(reading: &row), createdAt: row.value(), editedAt: row.value(),
            deletedAt: row.value())
    }

    // derived: bind(to:)
    func bind(to values: inout RowValues) throws {
        try values.bind(messageId)
        try values.bind(seq)
        try values.bind(changeSeq)
        try values.bind(sender)
        try values.bind(clientId)
        try values.bind(content)
        try values.bind(createdAt)
        try values.bind(editedAt)
        try values.bind(deletedAt)
    }
}

/// Messages that follow one another in a channel, in the order of their seqs.
struct MessageRun {
    var messages: [Message]
    /// Whether there are more beyond them, in the direction of the search.
    var hasMore: Bool
    /// The first of those, if it was read.
    var next: Message?
}

extension Transaction {
    func message(_ id: MessageID, in channel: ChannelID) throws -> Message? {
        try first("SELECT \(Message.columns) FROM messages WHERE channel_id = \(channel) AND message_id = \(id)") {
            try Message(reading: &$0, channelId: channel)
        }
    }

    /// Returns the message sent at a seq; nil if the seq is another change's, or the message was deleted for good.
    func message(at seq: Seq, in channel: ChannelID) throws -> Message? {
        try first("SELECT \(Message.columns) FROM messages WHERE channel_id = \(channel) AND seq = \(seq)") {
            try Message(reading: &$0, channelId: channel)
        }
    }

    func message(clientId: ClientID, of sender: UserID, in channel: ChannelID) throws -> Message? {
        let sql: SQL = """
            SELECT \(Message.columns) FROM messages
            WHERE channel_id = \(channel) AND sender_id = \(sender) AND client_id = \(clientId)
            """
        return try first(sql) { try Message(reading: &$0, channelId: channel) }
    }

    /// Returns the newest message, unless a floor hides it.
    func newestMessage(in channel: ChannelID, above floor: Seq) throws -> Message? {
        let sql: SQL = """
            SELECT \(Message.columns) FROM messages WHERE channel_id = \(channel) AND seq > \(floor) ORDER BY seq DESC LIMIT 1
            """
        return try first(sql) { try Message(reading: &$0, channelId: channel) }
    }

    /// Returns the newest message up to each of some positions of a channel, unless a floor hides it.
    func newestMessages(upTo positions: Set<Seq>, in channel: ChannelID, above floor: Seq) throws -> [Seq: MessageID] {
        var newest: [Seq: MessageID] = [:]
        for position in positions where position > floor {
            let sql: SQL = """
                SELECT message_id FROM messages WHERE channel_id = \(channel) AND seq <= \(position) AND seq > \(floor)
                ORDER BY seq DESC LIMIT 1
                """
            newest[position] = try first(sql) { MessageID(rawValue: $0.int64()) }
        }
        return newest
    }

    /// Returns messages before a position.
    ///
    /// - Parameters:
    ///   - condition: An additional condition: ` AND …`.
    ///   - readsNext: Whether the next older message is read too.
    func messages(
        before seq: Seq, above floor: Seq, in channel: ChannelID, limit: Int, sizeBytesMax: Int = Limits.pageContentBytes,
        _ condition: SQL = "", readsNext: Bool = false
    ) throws -> MessageRun {
        var run = try page(
            of: channel, where: "seq < \(seq) AND seq > \(floor)\(condition)", orderedBy: "seq DESC", limit: limit,
            sizeBytesMax: sizeBytesMax, readsNext: readsNext)
        run.messages.reverseInPlace()
        return run
    }

    /// Returns messages after a position and up to another.
    ///
    /// - Parameters:
    ///   - condition: An additional condition: ` AND …`.
    ///   - readsNext: Whether the next newer message is read too.
    func messages(
        after seq: Seq, upTo last: Seq, in channel: ChannelID, limit: Int, sizeBytesMax: Int, _ condition: SQL, readsNext: Bool
    ) throws -> MessageRun {
        try page(
            of: channel, where: "seq > \(seq) AND seq <= \(last)\(condition)", orderedBy: "seq", limit: limit,
            sizeBytesMax: sizeBytesMax, readsNext: readsNext)
    }

    /// Returns messages after a position.
    func messages(
        after seq: Seq, in channel: ChannelID, limit: Int, sizeBytesMax: Int = Limits.pageContentBytes
    ) throws -> MessageRun {
        try page(of: channel, where: "seq > \(seq)", orderedBy: "seq", limit: limit, sizeBytesMax: sizeBytesMax)
    }

    /// Returns messages sent up to a position and changed after it and up to another, in the order of their changes, and whether there are
    /// later changes in that range.
    func messages(
        changedAfter seq: Seq, upTo last: Seq, above floor: Seq, in channel: ChannelID, limit: Int, sizeBytesMax: Int
    ) throws -> MessageRun {
        let condition: SQL = """
            change_seq > \(seq) AND change_seq <= \(last) AND change_seq > seq AND seq <= \(seq) AND seq > \(floor)
            """
        return try page(of: channel, where: condition, orderedBy: "change_seq", limit: limit, sizeBytesMax: sizeBytesMax)
    }

    /// Returns the number of counting messages sent up to a position of a channel, including those deleted for good.
    func ordinal(upTo seq: Seq, in access: ChannelAccess) throws -> Int {
        let channel = access.channelId
        let sql: SQL = "SELECT ordinal FROM messages WHERE channel_id = \(channel) AND seq <= \(seq) ORDER BY seq DESC LIMIT 1"
        let stored = try first(sql) { $0.int() } ?? 0
        guard access.purgedSeq > 0 else { return stored }
        let purged: SQL = """
            SELECT ordinal FROM purged_messages WHERE channel_id = \(channel) AND seq <= \(seq) ORDER BY seq DESC LIMIT 1
            """
        return max(stored, try first(purged) { $0.int() } ?? 0)
    }

    /// Returns whether a channel has more than `count` messages after a position.
    func hasMoreMessages(than count: Int, after seq: Seq, in channel: ChannelID) throws -> Bool {
        let sql: SQL = "SELECT 1 FROM messages WHERE channel_id = \(channel) AND seq > \(seq) ORDER BY seq LIMIT 1 OFFSET \(count)"
        return try first(sql) { _ in true } ?? false
    }

    /// Returns whether a channel has messages before a position that no floor hides.
    func hasMessages(before seq: Seq, above floor: Seq, in channel: ChannelID) throws -> Bool {
        let sql: SQL = "SELECT 1 FROM messages WHERE channel_id = \(channel) AND seq < \(seq) AND seq > \(floor) LIMIT 1"
        return try first(sql) { _ in true } ?? false
    }

    /// Returns whether more than `count` messages sent up to a position were changed after it, or as many deleted for good.
    func hasMoreChanges(than count: Int, after seq: Seq, in channel: ChannelID) throws -> Bool {
        let changed: SQL = """
            SELECT 1 FROM messages
            WHERE channel_id = \(channel) AND change_seq > \(seq) AND change_seq > seq AND seq <= \(seq)
            ORDER BY change_seq LIMIT 1 OFFSET \(count)
            """
        let purged: SQL = """
            SELECT 1 FROM purged_messages WHERE channel_id = \(channel) AND change_seq > \(seq) ORDER BY change_seq LIMIT 1 OFFSET \(count)
            """
        return try first(changed) { _ in true } ?? first(purged) { _ in true } ?? false
    }

    /// Returns at most `limit` rows, and fewer if their content is larger than a page: a page has at least one row and a bounded size.
    private func page(
        of channel: ChannelID, where condition: SQL, orderedBy order: SQL, limit: Int, sizeBytesMax: Int, readsNext: Bool = false
    ) throws -> MessageRun {
        let sql: SQL = """
            SELECT \(Message.columns) FROM messages WHERE channel_id = \(channel) AND \(condition) ORDER BY \(order) LIMIT \(limit + 1)
            """
        var run = MessageRun(messages: [], hasMore: false)
        var sizeBytes = 0
        // Most pages are far too small for their texts to need measuring.
        var isMeasured = false
        run.messages.reserveCapacity(min(limit, 128))
        try eachWhile(sql, of: Message.large, orderedBy: order, sizeBytesMax: sizeBytesMax) { row in
            run.hasMore = run.messages.count == limit
            guard !run.hasMore || readsNext else { return false }
            let message = try Message(reading: &row, channelId: channel)
            sizeBytes += isMeasured ? message.contentSizeBytes : message.contentSizeBytesAtMost
            if !isMeasured, sizeBytes > sizeBytesMax {
                isMeasured = true
                sizeBytes = run.messages.reduce(message.contentSizeBytes) { $0 + $1.contentSizeBytes }
            }
            if !run.messages.isEmpty, sizeBytes > sizeBytesMax { run.hasMore = true }
            guard !run.hasMore else {
                run.next = message
                return false
            }
            run.messages.append(message)
            return true
        }
        return run
    }
}

extension Message {
    fileprivate static let large = LargeRows(
        table: "messages", columns: columns,
        sizeBytes: """
            OCTET_LENGTH(text) + COALESCE(OCTET_LENGTH(data), 0) + COALESCE(OCTET_LENGTH(metadata), 0)
                + COALESCE(OCTET_LENGTH(meta_arrays), 0)
            """)
}

extension Message: StoredRow {
    /// Returns messages sent after the position, and older ones changed after it: together they are one page.
    ///
    /// A new message shares its seq with no other row, unless it mentions the channel. If every requested position is such
    /// a message's, nothing else changed, as for a client that missed only messages. Then no other rows are looked up.
    package static func changed(for request: ChannelChangesRequest) throws -> ChangedRows<Message> {
        let (transaction, after, sizeBytesMax) = (request.transaction, request.after, request.sizeBytesMax / 2)
        let born = try transaction.messages(
            after: max(after, request.floor), in: request.channel, limit: request.limit, sizeBytesMax: sizeBytesMax)
        let areAlone =
            Int64(born.messages.count) == request.head - after
            && !born.messages.contains { $0.content.mentionees?.mentionsChannel ?? false }
        if areAlone {
            return ChangedRows(rows: born.messages, stamps: born.messages.map(\.seq), isEverything: true)
        }
        // The page ends with the new messages, if there are more of them. Changes beyond that would be found again by every page up to there.
        let end = born.hasMore ? born.messages.last?.seq : nil
        let changed = try transaction.messages(
            changedAfter: after, upTo: end ?? .max, above: request.floor, in: request.channel, limit: request.limit,
            sizeBytesMax: sizeBytesMax)
        let ends = [end, changed.hasMore ? changed.messages.last?.changeSeq : nil]
        return ChangedRows(
            born.messages.map { ($0.seq, $0) } + changed.messages.map { ($0.changeSeq, $0) }, upTo: ends.compactMap { $0 }.min())
    }

    package static func fresh(
        in channel: ChannelID, for user: UserID, above floor: Seq, messages: Int, beside rows: Rows, in transaction: any Transaction
    ) throws -> [Message] {
        try transaction.messages(before: .max, above: floor, in: channel, limit: messages).messages
    }

    // The message itself is replaced by its place.
    package static func purge(about message: Seq, in channel: ChannelID, _ transaction: any Transaction) throws {}
}

extension Message: ContentSized, NamesUsers {
    // Avoids a list for each of the many messages without mentions.
    var firstNamedUser: UserID? { sender }
    var otherNamedUsers: [UserID] { content.mentionees?.mentionedUsers ?? [] }
}

extension Array {
    /// Like `reverse()`, which copies and releases everything that an element holds; this only moves elements.
    mutating func reverseInPlace() {
        withUnsafeMutableBufferPointer { buffer in
            guard buffer.count > 1, var low = buffer.baseAddress else { return }
            var high = low + buffer.count - 1
            withUnsafeTemporaryAllocation(of: Element.self, capacity: 1) { spare in
                guard let spare = spare.baseAddress else { return }
                while low < high {
                    spare.moveInitialize(from: low, count: 1)
                    low.moveInitialize(from: high, count: 1)
                    high.moveInitialize(from: spare, count: 1)
                    low += 1
                    high -= 1
                }
            }
        }
    }
}
