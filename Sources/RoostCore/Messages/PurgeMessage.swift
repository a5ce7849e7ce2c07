package import RoostAPI

extension Context {
    /// Deletes a message for good: its row and the rows of other kinds about it. Its place is kept.
    ///
    /// The scope must find users: the sender's stream gets a new read count if the message is after their read position.
    mutating func purge(_ message: Message, in channel: ChannelAccess) throws {
        var access = channel
        let seq = access.counters.advance(at: now)
        access.counters.messageCount -= 1
        let place = try transaction.purge(message, at: seq, now)
        // Times never decrease within a channel: only the newest message can have this one.
        if access.counters.lastMessageAt == message.createdAt {
            access.counters.lastMessageAt = try transaction.lastMessageAt(in: access.channelId)
        }
        try forgetVersions(of: message)
        for kind in rowKinds.all { try kind.purge(about: message.seq, in: access.channelId, transaction) }
        try movePurges(of: access.channelId, to: message.seq)
        try moveStream(of: access.channelId, to: access.counters)
        if access.counters.lastMessageAt == nil { try list(access.channelId, at: self.channel(access.channelId).createdAt) }
        // None of its events has an actor: that may be the message's sender, whose identity receivers may not be allowed to
        // know. Memberships are sent as of the new seq: their read counts already exclude the message.
        try endMentions(of: message.mentionees?.mentionedUsers ?? [], in: message, by: nil)
        if message.changeSeq != message.seq { try transaction.forgetEndedMentions(of: message) }
        try notifySender(of: message, access)
        var rows = Rows(counters: access.counters, [place])
        if message.mentionees?.mentionsChannel ?? false {
            rows.channelMentions = try transaction.newestChannelMentions(in: access.channelId)
        }
        let event = Event(kind: .messageDeleted, stream: .channel(access.channelId), seq: seq, actor: nil, rows: rows)
        notify(.event(event, .channel(access.channelId, try transaction.readers(of: access.policy))))
    }

    /// The sender's clients count the message as their own or as purged, and can't tell that it is both. They are sent the
    /// right count ahead of the channel's event.
    private mutating func notifySender(of message: Message, _ access: ChannelAccess) throws {
        guard var theirs = try transaction.access(to: access.channelId, of: message.sender), theirs.isMember,
            var member = theirs.member, member.row.readSeq < message.seq
        else { return }
        member.row.userSeq = try advanceStream(of: message.sender)
        theirs.member = member
        try transaction.stampMember(message.sender, in: access.channelId, member.row.userSeq)
        notify(.readingMarked, user: message.sender, seq: member.row.userSeq, actor: nil, Rows(theirs.membership.map { [$0] }))
    }
}

extension Transaction {
    /// Replaces a message's row with its place.
    fileprivate func purge(_ message: Message, at seq: Seq, _ now: Timestamp) throws -> PurgedMessage {
        let kept: SQL = "channel_id, seq, message_id, ordinal, counts, sender_id, client_id, created_at"
        let keeping: SQL = """
            INSERT INTO purged_messages (\(kept), change_seq, purged_at) SELECT \(kept), \(seq), \(now) FROM messages
            WHERE channel_id = \(message.channelId) AND seq = \(message.seq)
            RETURNING \(PurgedMessage.columns)
            """
        guard let place = try first(keeping, { try PurgedMessage(reading: &$0) }) else {
            throw ImpossibleState("The message \(message.seq) of \(message.channelId) has no row.")
        }
        try perform("DELETE FROM messages WHERE channel_id = \(message.channelId) AND seq = \(message.seq)")
        if place.counts { try countPurge(of: message) }
        return place
    }

    /// Returns the time of a channel's newest message; nil if there is none.
    fileprivate func lastMessageAt(in channel: ChannelID) throws -> Timestamp? {
        try first("SELECT created_at FROM messages WHERE channel_id = \(channel) ORDER BY seq DESC LIMIT 1") { $0.timestamp() }
    }

    /// Counts a message as deleted for good, for its sender and for all.
    private func countPurge(of message: Message) throws {
        for sender in [message.sender.rawValue, ""] {
            try perform(
                """
                INSERT INTO purged_counts (channel_id, sender_id, stretch, count)
                VALUES (\(message.channelId), \(sender), CAST(\(message.seq) AS BIGINT) / \(Unread.purgeBlockLength), 1)
                ON CONFLICT (channel_id, sender_id, stretch) DO UPDATE SET count = purged_counts.count + 1
                """)
        }
    }

    /// Returns the first seq of a channel after a position at which a message was deleted for good.
    func oldestPurge(in channel: ChannelID, after seq: Seq) throws -> Seq? {
        let sql: SQL = """
            SELECT change_seq FROM purged_messages WHERE channel_id = \(channel) AND change_seq > \(seq) ORDER BY change_seq LIMIT 1
            """
        return try first(sql) { $0.int64() }
    }

    /// Returns whether a sender's message with a client id was deleted for good.
    func isPurged(_ clientId: ClientID, of sender: UserID, in channel: ChannelID) throws -> Bool {
        if let isPurged = batchMemory?.isPurged(clientId, of: sender, in: channel) { return isPurged }
        return try bypassingBatchMemory { try purgedMessage(clientId: clientId, of: sender, in: channel) } != nil
    }

    /// Reads which of the messages about to be sent were deleted for good, in one round trip: one statement per sender, however
    /// much of theirs was deleted.
    func readPurged(_ messages: [ChannelCaller: Set<ClientID>], into memory: BatchMemory) throws {
        let asked = messages.filter { !$0.value.isEmpty }.map { (sender: $0.key, ids: $0.value) }
        guard !asked.isEmpty else { return }
        var found = Array(repeating: Set<ClientID>(), count: asked.count)
        let statements: [SQL] = asked.map { sender, ids in
            """
            SELECT client_id FROM purged_messages
            WHERE channel_id = \(sender.channel) AND sender_id = \(sender.user) AND client_id IN (\(list: ids.map(\.rawValue)))
            """
        }
        try each(statements) { index, row in found[index].insert(row.identifier()) }
        for ((sender, ids), purged) in zip(asked, found) {
            memory.learn(purged: purged, among: ids, of: sender.user, in: sender.channel)
        }
    }

    /// Returns the remains of a sender's purged message, as a message without content.
    func purgedMessage(clientId: ClientID, of sender: UserID, in channel: ChannelID) throws -> Message? {
        let sql: SQL = """
            SELECT seq, message_id, change_seq, created_at, purged_at, counts FROM purged_messages
            WHERE channel_id = \(channel) AND sender_id = \(sender) AND client_id = \(clientId)
            """
        return try first(sql) { row in
            let (seq, id, changeSeq) = (row.int64(), MessageID(rawValue: row.int64()), row.int64())
            let (createdAt, purgedAt, counts) = (row.timestamp(), row.timestamp(), row.bool())
            // Its kind isn't kept. The server's own messages once used the id generated directly before their own as their client id.
            let isOfServer = !counts && MessageID(clientId.rawValue).map { IDGenerator.made(id, rightAfter: $0) } == true
            return Message(
                messageId: id, channelId: channel, seq: seq, changeSeq: changeSeq, sender: sender, clientId: clientId, text: "",
                kind: isOfServer ? .system : .text, createdAt: createdAt, deletedAt: purgedAt)
        }
    }
}

extension PurgedMessage {
    // derived: columns
    static let columns: SQL = "seq, change_seq, counts"

    // derived: init(reading:)
    init(reading row: inout RowReader) throws {
        try self.init(seq: row.value(), changeSeq: row.value(), counts: row.value())
    }
}

extension PurgedMessage: StoredRow {
    /// A fresh client has neither the message nor an old membership, and gets none of these.
    package static func changed(for request: ChannelChangesRequest) throws -> ChangedRows<PurgedMessage> {
        guard request.hasPurges else { return ChangedRows() }
        let sql: SQL = """
            SELECT \(columns) FROM purged_messages WHERE channel_id = \(request.channel) AND change_seq > \(request.after)
            ORDER BY change_seq LIMIT \(request.limit + 1)
            """
        let found = try request.transaction.rows(sql) { try PurgedMessage(reading: &$0) }.map { (stamp: $0.changeSeq, row: $0) }
        return ChangedRows(found, upTo: found.count > request.limit ? found[request.limit - 1].stamp : nil)
    }

    // The place stays.
    package static func purge(about message: Seq, in channel: ChannelID, _ transaction: any Transaction) throws {}
}
