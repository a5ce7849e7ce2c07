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
            case .member: [try cachedOwnChannels(of: caller.user, in: transaction) ?? ownChannels(of: caller.user, in: transaction)]
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

    /// Returns a source that reads the user's channels matching the query, in its order.
    func ownChannels(of user: UserID, in transaction: any Transaction) -> Walk.Source<ChannelID> {
        let id: SQL = "m.channel_id"
        let columns = effectiveSort.columns(id: id)
        // `CROSS JOIN` makes SQLite keep this order: from the user's own rows to the rows that they refer to.
        let attributes: SQL = needsAttributes ? "CROSS JOIN channels c" : ""
        let joined: SQL = needsAttributes ? "AND c.channel_id = m.channel_id" : ""
        // There may be any number of deleted channels: a query that doesn't include them skips them.
        let living: [SQL] = includeDeleted == true ? [] : ["m.is_channel_deleted = 0"]
        let conditions = (living + self.conditions(id: id) + ownConditions(of: user)).allOf
        return { page in
            let sql: SQL = """
                SELECT \(columns.joined(by: ", ")) FROM members m CROSS JOIN channel_heads h \(attributes)
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
