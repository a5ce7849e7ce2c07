public import RoostAPI

/// Messages that users have deleted for themselves. The stored message is unchanged; each answer conceals it from its user
/// (``Context/shown(_:in:)``).

extension DeleteMessagesForMe: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel, user: caller.user) }

    public func handle(in context: inout Context) throws -> MessageResults {
        var access = try context.require(.channelHide, in: channel)
        try context.require(.historyRead, in: access)
        let found = try messages.enumerated().map { index, message in
            do { return try context.messageToConceal(message, in: access) } catch let refusal as RoostError {
                throw refusal.about(message, at: index, of: messages)
            }
        }
        let fresh = found.filter { !$0.isDeletedForMe }
        if !fresh.isEmpty { try context.deleteForCaller(fresh, in: &access) }
        return MessageResults(messages: found.map { $0.deletedForMe(at: $0.timeOfChange(at: context.now)) })
    }
}

extension Context {
    fileprivate mutating func deleteForCaller(_ messages: [Message], in access: inout ChannelAccess) throws {
        let (user, channel) = (caller.user, access.channelId)
        try noteRows(of: OwnDeletion.self, in: channel)
        let userSeq = try advanceStream(of: user)
        let deletions = messages.map { message in
            OwnDeletion(channelId: channel, seq: message.seq, deletedAt: message.timeOfChange(at: now), userSeq: userSeq)
        }
        for deletion in deletions {
            try transaction.perform(
                "INSERT INTO own_deletions (user_id, \(OwnDeletion.columns)) VALUES (\(user), \(row: deletion))")
        }
        let membership = try endOwnMentions(in: messages, &access, at: userSeq)
        notify(.messageDeletedForMe, user: user, seq: userSeq, Rows(deletions, membership.map { [$0] }))
    }

    /// Returns messages of a channel as the caller sees them: without the content of those that the caller has deleted for themselves.
    ///
    /// In a channel without such deletions it takes no look-up.
    func shown(_ messages: [Message], in access: ChannelAccess, to user: UserID? = nil) throws -> [Message] {
        guard access.rowKinds.mayContain(OwnDeletion.self) else { return messages }
        let deletions = try transaction.ownDeletions(of: user ?? caller.user, in: access.channelId, among: messages.map(\.seq))
        guard !deletions.isEmpty else { return messages }
        return messages.map { message in deletions[message.seq].map { message.deletedForMe(at: $0) } ?? message }
    }

    /// Returns a message of a channel as the caller sees it.
    func shown(_ message: Message, in access: ChannelAccess) throws -> Message { try shown([message], in: access).first ?? message }

    /// Returns rows of a channel as a user sees them, the caller by default.
    func shown(_ rows: Rows, in access: ChannelAccess, to user: UserID? = nil) throws -> Rows {
        guard access.rowKinds.mayContain(OwnDeletion.self), let messages = rows.messages else { return rows }
        var rows = rows
        rows.messages = try shown(messages, in: access, to: user)
        return rows
    }

    /// Whether a user has deleted a message for themselves.
    func isDeleted(_ message: Seq, for user: UserID, in access: ChannelAccess) throws -> Bool {
        guard access.rowKinds.mayContain(OwnDeletion.self) else { return false }
        return try !transaction.ownDeletions(of: user, in: access.channelId, among: [message]).isEmpty
    }
}

extension Transaction {
    /// Returns which of some messages of a channel a user has deleted for themselves, with the times.
    fileprivate func ownDeletions(of user: UserID, in channel: ChannelID, among seqs: [Seq]) throws -> [Seq: Timestamp] {
        guard let lowest = seqs.min(), let highest = seqs.max() else { return [:] }
        // Neighbours are read as a range. Between messages far apart there can be any number of deletions.
        let areNeighbours = highest - lowest < Seq(seqs.count * 4)
        var deletions: [Seq: Timestamp] = [:]
        for part in areNeighbours ? [[]] : seqs.chunked(by: 512) {
            let among: SQL = areNeighbours ? "seq >= \(lowest) AND seq <= \(highest)" : "seq IN (\(list: part))"
            let sql: SQL = """
                SELECT seq, deleted_at FROM own_deletions WHERE user_id = \(user) AND channel_id = \(channel) AND \(among)
                """
            for (seq, deletedAt) in try bypassingBatchMemory({ try rows(sql) { ($0.int64(), $0.timestamp()) } }) {
                deletions[seq] = deletedAt
            }
        }
        return deletions
    }
}

extension ChannelAccess {
    /// Whether users may have deleted messages of it for themselves. Each deletion moved only the user's own stream.
    var mayHaveOwnDeletions: Bool { rowKinds.mayContain(OwnDeletion.self) }

    /// Whether its first rows are the same for all users who see as far back: no user has deleted a message for themselves, and
    /// no mention depends on the viewer.
    var isSameForAllViewers: Bool { !rowKinds.mayContain(OwnDeletion.self) && !rowKinds.mayContain(ChannelMention.self) }
}

extension Transaction {
    /// The users who have deleted messages in a range of a channel for themselves, by message.
    func ownDeletions(in access: ChannelAccess, _ seqs: ClosedRange<Seq>) throws -> [Seq: Set<UserID>] {
        guard access.rowKinds.mayContain(OwnDeletion.self) else { return [:] }
        let sql: SQL = """
            SELECT seq, user_id FROM own_deletions
            WHERE channel_id = \(access.channelId) AND seq >= \(seqs.lowerBound) AND seq <= \(seqs.upperBound)
            """
        return try rows(sql) { (seq: $0.int64(), user: try $0.value() as UserID) }
            .reduce(into: [:]) { $0[$1.seq, default: []].insert($1.user) }
    }
}

extension OwnDeletion: BoundRow {
    // derived: columns
    static let columns: SQL = "channel_id, seq, deleted_at, user_seq"
    // derived: init(reading:)
    init(reading row: inout RowReader) throws {
        try self.init(channelId: row.value(), seq: row.value(), deletedAt: row.value(), userSeq: row.value())
    }
    // derived: bind(to:)
    func bind(to values: inout RowValues) throws {
        try values.bind(channelId)
        try values.bind(seq)
        try values.bind(deletedAt)
        try values.bind(userSeq)
    }
}

extension OwnDeletion {
    /// The condition that a user hasn't deleted a row's message for themselves.
    static func excluding(seq: SQL, of user: UserID, in channel: ChannelID) -> SQL {
        """
        NOT EXISTS (SELECT 1 FROM own_deletions d WHERE d.user_id = \(user) AND d.channel_id = \(channel) AND d.seq = \(seq))
        """
    }
}

extension OwnDeletion: StoredRow {
    package static var headBit: Int64? { 1 << 2 }

    /// The deletions of one call share a seq: a page never ends between rows of the same seq.
    package static func changed(
        for user: UserID, after seq: Seq, limit: Int, in transaction: any Transaction
    ) throws -> ChangedRows<OwnDeletion> {
        let rowsMax = limit + Limits.messagesPerCall
        let sql: SQL = """
            SELECT \(columns) FROM own_deletions WHERE user_id = \(user) AND user_seq > \(seq)
            ORDER BY user_seq, channel_id, seq LIMIT \(rowsMax)
            """
        let found = try transaction.rows(sql) { try OwnDeletion(reading: &$0) }
        let isCut = found.count == rowsMax
        return ChangedRows(found.map { ($0.userSeq, $0) }, upTo: isCut ? found.last.map { $0.userSeq - 1 } : nil)
    }

    package static func purge(about message: Seq, in channel: ChannelID, _ transaction: any Transaction) throws {
        try transaction.perform("DELETE FROM own_deletions WHERE channel_id = \(channel) AND seq = \(message)")
    }
}
