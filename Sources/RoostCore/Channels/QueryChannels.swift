public import RoostAPI

/// The caller's own channels are read from the caller's rows. Others that the caller may find are searched among all channels:
/// by a filter that leaves few, or else by walking the findable ones (see `QueryChannelsFinding`).

extension QueryChannels: Handled, PagedQuery {
    public func handle(in context: inout Context) throws -> Page<ChannelView> {
        try context.require(.streamRead)
        let walk = try Walk(
            self, shape: effectiveSort.shape, limits: Limits.channelPage, isDescending: effectiveOrder == .descending)
        // A search text that folds to nothing matches no name.
        if let nameContains, NameSearch(nameContains) == nil { return Page(items: []) }

        let (caller, transaction) = (context.caller, context.transaction)
        let sources: [Walk.Source<ChannelID>] =
            switch membership ?? .member {
            case .member:
                try cachedOwnChannels(of: caller.user, in: transaction).map { [$0] }
                    ?? ownChannels(of: caller.user, in: transaction)
            case .all, .notMember: try findableChannels(for: caller, in: transaction)
            }
        var capabilityCache = Permissions.CapabilityCache(of: caller.role, now: context.now)
        var page = try walk.page(through: sources) { channel -> ChannelView? in
            guard let (access, whole) = try transaction.accessWithAttributes(to: channel, of: caller.user, now: context.now) else {
                return nil
            }
            // The permission table decides whether the caller may know of it.
            if membership ?? .member != .member, context.refusal(of: .channelRead, in: access) != nil { return nil }
            return try context.view(of: access, whole, capabilities: capabilityCache.capabilities(in: access.facts))
        }
        page.users = try context.summaries(for: page.items)
        return page
    }

    /// The maximum number of a user's memberships among which deleted channels are found.
    private static let membershipsMax = Limits.channelsPerUserMax

    /// Returns the sources that read the user's channels matching the query, in its order.
    ///
    /// A user can have any number of deleted channels. A query that doesn't include them skips them, and one that does finds
    /// those among the memberships that changed last.
    func ownChannels(of user: UserID, in transaction: any Transaction) -> [Walk.Source<ChannelID>] {
        let living = ownChannels(of: user, among: "members m", where: "m.is_channel_deleted = 0", in: transaction)
        guard includeDeleted == true else { return [living] }
        let newest: SQL = """
            (SELECT channel_id FROM members WHERE user_id = \(user) ORDER BY user_seq DESC LIMIT \(Self.membershipsMax)) AS w
            CROSS JOIN members m
            """
        let areDeleted: SQL = "m.channel_id = w.channel_id AND m.is_channel_deleted = 1"
        return [living, ownChannels(of: user, among: newest, where: areDeleted, in: transaction)]
    }

    /// - Parameters:
    ///   - memberships: What the rows `m` are read from.
    ///   - condition: The condition that selects them, besides the user.
    private func ownChannels(
        of user: UserID, among memberships: SQL, where condition: SQL, in transaction: any Transaction
    ) -> Walk.Source<ChannelID> {
        let id: SQL = "m.channel_id"
        let columns = effectiveSort.columns(id: id)
        // `CROSS JOIN` makes SQLite keep this order: from the user's own rows to the rows that they refer to.
        let attributes: SQL = needsAttributes ? "CROSS JOIN channels c" : ""
        let joined: SQL = needsAttributes ? "AND c.channel_id = m.channel_id" : ""
        let conditions = ([condition] + self.conditions(id: id) + ownConditions(of: user)).allOf
        return { page in
            let sql: SQL = """
                SELECT \(columns.joined(by: ", ")) FROM \(memberships) CROSS JOIN channel_heads h \(attributes)
                WHERE m.user_id = \(user) AND m.state = 'member' AND h.channel_id = m.channel_id \(joined)
                AND \(conditions)\(page.condition(on: columns))
                ORDER BY \(page.order(by: columns)) LIMIT \(page.count)
                """
            return try transaction.rows(sql) { row in
                let place = effectiveSort.place(reading: &row)
                return Walk.Entry(place: place, row: place.channel)
            }
        }
    }
}

extension ChannelSort {
    /// Returns the columns of the order, with the id last, so no two channels have the same place.
    func columns(id: SQL) -> [SQL] { self == .unreadFirst ? [keyColumn, "h.list_at", id] : [keyColumn, id] }

    /// The first column of the order.
    var keyColumn: SQL {
        switch self {
        case .lastMessage: "h.list_at"
        case .lastActivity: "h.last_activity"
        case .created: "c.created_at"
        case .name: "c.name_key"
        case .unreadFirst: "CAST(CASE WHEN \(QueryChannels.isUnread) THEN 1 ELSE 0 END AS BIGINT)"
        }
    }

    var shape: [SortKey.Kind] {
        switch self {
        case .lastMessage, .lastActivity, .created: [.integer, .text]
        case .name: [.text, .text]
        case .unreadFirst: [.integer, .integer, .text]
        }
    }

    func place(reading row: inout RowReader) -> [SortKey] { shape.map { SortKey($0, reading: &row) } }
}

extension [SortKey] {
    /// The channel at a place, whose last value is its id.
    var channel: ChannelID? {
        if case .text(let id) = last { ChannelID(id) } else { nil }
    }
}
