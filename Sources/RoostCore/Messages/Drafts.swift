public import RoostAPI

/// Drafts of users: at most one per member of a channel, on the user's stream alone.
///
/// A removed draft stays as a row without text, which notifies the user's other devices. There are at most as many of these as
/// channels that the user has been in.

extension SetDraft: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel, user: caller.user) }

    public func handle(in context: inout Context) throws -> ChannelDraft {
        let before = try context.draft(toBeSetTo: text, in: channel)
        var after = before
        (after.text, after.metadata) = (text, metadata)
        if try StoredJSON.isSame(before, after) { return before }
        return try context.write(after)
    }
}

extension GetDraft: Handled {
    public func handle(in context: inout Context) throws -> ChannelDraft {
        let access = try context.require(.readingMark, in: channel)
        return try context.ownDraft(in: access)
    }
}

extension ListDrafts: Handled, PagedQuery {
    public func handle(in context: inout Context) throws -> Page<ChannelDraft> {
        try context.require(.streamRead)
        let walk = try Walk(self, shape: [.integer], limits: Limits.historyPage, isDescending: true)
        // Each change of a draft has its own seq, which identifies a place in the list.
        let columns: [SQL] = ["d.user_seq"]
        let reading = context
        return try walk.page(through: [
            { page in
                let sql: SQL = """
                    SELECT \(ChannelDraft.columns) FROM drafts d
                    WHERE d.user_id = \(reading.caller.user)\(page.condition(on: columns))
                    ORDER BY \(page.order(by: columns)) LIMIT \(page.count)
                    """
                return try reading.transaction.entries(sql, orderedBy: page.order(by: columns))
            }
        ]) { draft in try reading.transaction.access(to: draft.channelId, of: reading.caller.user)?.isMember == true ? draft : nil }
    }
}

extension Context {
    /// Returns the caller's draft in a channel, which they may change. In a deleted channel, which has no members, they may still remove it.
    fileprivate mutating func draft(toBeSetTo text: String, in channel: ChannelID) throws -> ChannelDraft {
        if text.isEmpty, let access = try transaction.access(to: channel, of: caller.user), access.deletedAt != nil,
            access.wasMember,
            let draft = try transaction.draft(of: caller.user, in: access.channelId)
        {
            return draft
        }
        let access = try require(.readingMark, in: channel)
        return try ownDraft(in: access)
    }

    /// Returns the caller's draft in a channel. If there never was one it has no text, and counts as unchanged since the caller joined.
    fileprivate func ownDraft(in access: ChannelAccess) throws -> ChannelDraft {
        if let draft = try transaction.draft(of: caller.user, in: access.channelId) { return draft }
        return ChannelDraft(channelId: access.channelId, text: "", updatedAt: try access.requireMember().row.joinedAt, userSeq: 0)
    }

    /// Writes a draft of the caller at the next position of their stream, and notifies their devices.
    fileprivate mutating func write(_ draft: ChannelDraft) throws -> ChannelDraft {
        var draft = draft
        draft.updatedAt = now
        draft.userSeq = try advanceStream(of: caller.user)
        try transaction.write(draft, of: caller.user)
        notify(.draftUpdated, user: caller.user, seq: draft.userSeq, Rows([draft]))
        return draft
    }

    /// Removes the drafts of users who leave a channel, each at the position of the user's stream at which they leave.
    ///
    /// - Returns: The removed drafts, to be sent with the end of the membership.
    func removeDrafts(in channel: ChannelID, _ leavers: [(user: UserID, userSeq: Seq)]) throws -> [UserID: ChannelDraft] {
        // Most have none: one look-up for all of them.
        let sql: SQL = """
            SELECT d.user_id FROM drafts d
            WHERE d.channel_id = \(channel) AND d.user_id IN (\(list: leavers.map(\.user.rawValue))) AND d.text <> ''
            """
        let writers = Set(try transaction.bypassingBatchMemory { try transaction.rows(sql) { $0.identifier(UserID.self) } })
        var removed: [UserID: ChannelDraft] = [:]
        for (user, userSeq) in leavers where writers.contains(user) {
            let draft = ChannelDraft(channelId: channel, text: "", updatedAt: now, userSeq: userSeq)
            try transaction.write(draft, of: user)
            removed[user] = draft
        }
        return removed
    }
}

extension Transaction {
    /// Returns the drafts of a selection as entries of a walk: no more than a page has room for.
    fileprivate func entries(_ sql: SQL, orderedBy order: SQL) throws -> [Walk.Entry<ChannelDraft>] {
        var entries: [Walk.Entry<ChannelDraft>] = []
        var sizeBytes = 0
        try eachWhile(sql, of: ChannelDraft.large, orderedBy: order, sizeBytesMax: Limits.pageContentBytes) { row in
            let draft = try ChannelDraft(reading: &row)
            sizeBytes += draft.contentSizeBytes
            let isEnough = sizeBytes > Limits.pageContentBytes
            entries.append(
                Walk.Entry(place: [.integer(draft.userSeq)], row: draft.isRemoved ? nil : draft, isFollowed: isEnough))
            return !isEnough
        }
        return entries
    }

    fileprivate func draft(of user: UserID, in channel: ChannelID) throws -> ChannelDraft? {
        let sql: SQL = "SELECT \(ChannelDraft.columns) FROM drafts d WHERE d.user_id = \(user) AND d.channel_id = \(channel)"
        return try bypassingBatchMemory { try first(sql) { try ChannelDraft(reading: &$0) } }
    }

    fileprivate func write(_ draft: ChannelDraft, of user: UserID) throws {
        try bypassingBatchMemory {
            try perform(
                """
                INSERT INTO drafts (user_id, \(ChannelDraft.boundColumns)) VALUES (\(user), \(row: draft))
                ON CONFLICT (user_id, channel_id) DO UPDATE SET (\(ChannelDraft.boundColumns)) = (\(row: draft))
                """)
        }
    }
}

extension ChannelDraft: BoundRow {
    // derived: columns of d
    static let columns: SQL = "d.channel_id, d.text, d.metadata, d.updated_at, d.user_seq"

    fileprivate static let large = LargeRows(
        table: "d", columns: columns, sizeBytes: "OCTET_LENGTH(d.text) + COALESCE(OCTET_LENGTH(d.metadata), 0)")

    // derived: bound columns
    static let boundColumns: SQL = "channel_id, text, metadata, updated_at, user_seq"

    // derived: init(reading:)
    init(reading row: inout RowReader) throws {
        try self.init(
            channelId: row.value(), text: row.value(), metadata: row.value(), updatedAt: row.value(), userSeq: row.value())
    }

    // derived: bind(to:)
    func bind(to values: inout RowValues) throws {
        try values.bind(channelId)
        try values.bind(text)
        try values.bind(metadata)
        try values.bind(updatedAt)
        try values.bind(userSeq)
    }
}

extension ChannelDraft: StoredRow {
    /// A draft can be as large as a message, so a page also has a limit in bytes. A node that fetches drafts for missed events
    /// asks without a limit, and gets all of them. Drafts in deleted channels are left out: the deletion of a channel writes
    /// nothing per member.
    package static func changed(
        for user: UserID, after seq: Seq, limit: Int, in transaction: any Transaction
    ) throws -> ChangedRows<ChannelDraft> {
        let sizeBytesMax = limit > Limits.changesPage.max ? Int.max : Limits.pageContentBytes
        let sql: SQL = """
            SELECT \(columns) FROM drafts d
            WHERE d.user_id = \(user) AND d.user_seq > \(seq)
                  AND (d.text = '' OR NOT EXISTS (SELECT 1 FROM channel_heads h WHERE h.channel_id = d.channel_id AND h.is_deleted = 1))
            ORDER BY d.user_seq LIMIT \(limit + 1)
            """
        var (found, sizeBytes): ([ChannelDraft], Int) = ([], 0)
        var cut: Seq?
        try transaction.eachWhile(sql, of: large, orderedBy: "d.user_seq", sizeBytesMax: sizeBytesMax) { row in
            let draft = try ChannelDraft(reading: &row)
            sizeBytes += draft.contentSizeBytes
            guard found.isEmpty || (found.count < limit && sizeBytes <= sizeBytesMax) else {
                cut = draft.userSeq - 1
                return false
            }
            found.append(draft)
            return true
        }
        return ChangedRows(found.map { ($0.userSeq, $0) }, upTo: cut)
    }

    // No row is about a message.
    package static func purge(about message: Seq, in channel: ChannelID, _ transaction: any Transaction) throws {}
}

extension ChannelDraft: ContentSized {}
