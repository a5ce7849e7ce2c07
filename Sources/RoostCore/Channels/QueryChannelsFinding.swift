import RoostAPI

/// Finds channels that the caller may find without being a member.
///
/// If a filter leaves few channels, each of them is checked. Otherwise the query walks through the channels in its order, along
/// indexes that only contain channels that the caller may know of: a cursor, which shows where a walk stopped, thus reveals
/// nothing about others.

extension QueryChannels {
    /// The maximum number of channels that a filter may leave for each to be checked.
    private static let candidatesMax = 2000

    func findableChannels(for caller: Caller, in transaction: any Transaction) throws -> [Walk.Source<ChannelID>] {
        if let candidates = try candidates(in: transaction) {
            return [try matches(among: candidates, for: caller, in: transaction)]
        }
        let levels = Discoverability.allCases.filter { $0.isOpen(to: caller) && ($0 != .deleted || includeDeleted == true) }
        let sources = levels.map { channels(at: $0, for: caller, in: transaction) }
        return membership == .all ? sources + ownChannels(of: caller.user, in: transaction) : sources
    }

    // MARK: Few channels

    /// Returns the channels that the most selective filter leaves; nil if every filter leaves too many.
    private func candidates(in transaction: any Transaction) throws -> Set<ChannelID>? {
        if let ids { return Set(ids + ids.compactMap(\.alias?.channel)) }
        let max = Self.candidatesMax
        if let search = nameContains.flatMap(NameSearch.init),
            let found = try search.candidates(.channel, max: max, in: transaction)
        {
            return Set(found.map(ChannelID.init(rawValue:)))
        }
        var ways: [SQL] = []
        if let includingTags { ways.append("SELECT t.channel_id FROM channel_tags t WHERE t.tag IN (\(list: includingTags))") }
        if let createdBy { ways.append("SELECT c.channel_id FROM channels c WHERE c.created_by = \(createdBy)") }
        if let customTypes {
            ways.append(
                """
                SELECT c.channel_id FROM channels c WHERE c.custom_type IN (\(list: customTypes)) AND c.custom_type IS NOT NULL
                """)
        }
        if let types { ways.append("SELECT c.channel_id FROM channels c WHERE c.type IN (\(list: types.map(\.rawValue)))") }
        for way in ways {
            let found: [ChannelID] = try transaction.rows("\(way) LIMIT \(max + 1)") { $0.identifier() }
            if found.count <= max { return Set(found) }
        }
        return nil
    }

    /// Returns a source of the candidates that match the query, in its order.
    private func matches(
        among candidates: Set<ChannelID>, for caller: Caller, in transaction: any Transaction
    ) throws -> Walk.Source<ChannelID> {
        let columns = effectiveSort.columns(id: "c.channel_id")
        var places: [[SortKey]] = []
        for part in candidates.sorted().map(\.rawValue).chunked(by: 512) {
            let sql: SQL = """
                SELECT \(columns.joined(by: ", ")) FROM channels c CROSS JOIN channel_heads h
                WHERE c.channel_id IN (\(list: part)) AND h.channel_id = c.channel_id
                AND \(Self.isFindable(by: caller)) AND \(findingConditions(for: caller).allOf)
                """
            places += try transaction.rows(sql) { effectiveSort.place(reading: &$0) }
        }
        let sorted = places
        return { page in
            sorted.filter(page.holds).sorted(by: page.precedes).prefix(page.count).map {
                Walk.Entry(place: $0, row: $0.channel)
            }
        }
    }

    // MARK: Many channels

    /// Returns a source that reads all channels of one index in the order of the query, and marks those that match.
    private func channels(
        at level: Discoverability, for caller: Caller, in transaction: any Transaction
    ) -> Walk.Source<ChannelID> {
        let columns = effectiveSort.columns(id: effectiveSort == .lastActivity ? "h.channel_id" : "c.channel_id")
        let conditions = findingConditions(for: caller).allOf
        let names: [SQL] = ["w.sort_key", "w.channel_id"]
        let key = effectiveSort.keyColumn
        return { page in
            // This passes and counts the rows, using one index alone; conditions on other tables come after.
            let passed: SQL =
                effectiveSort == .lastActivity
                ? """
                SELECT h.channel_id, \(key) AS sort_key FROM channel_heads h
                WHERE \(level.heads)\(page.condition(on: columns)) ORDER BY \(page.order(by: columns)) LIMIT \(page.count)
                """
                : """
                SELECT c.channel_id, \(key) AS sort_key FROM channels c
                WHERE \(([level.channels] + (effectiveSort == .created ? creationBounds : [])).allOf)\(page.condition(on: columns))
                ORDER BY \(page.order(by: columns)) LIMIT \(page.count)
                """
            let sql: SQL = """
                SELECT w.sort_key, w.channel_id, CASE WHEN \(conditions) THEN 1 ELSE 0 END
                FROM (\(passed)) AS w CROSS JOIN channels c CROSS JOIN channel_heads h
                WHERE c.channel_id = w.channel_id AND h.channel_id = w.channel_id ORDER BY \(page.order(by: names))
                """
            return try transaction.rows(sql) { row in
                let place = effectiveSort.place(reading: &row)
                return Walk.Entry(place: place, row: row.bool() ? place.channel : nil)
            }
        }
    }

    // MARK: Discoverability

    private func findingConditions(for caller: Caller) -> [SQL] {
        conditions(id: "c.channel_id") + (membership == .notMember ? ["NOT \(Self.isOwn(of: caller))"] : [])
    }

    /// Whether the caller is a member, or was when the channel was deleted.
    private static func isOwn(of caller: Caller) -> SQL {
        """
        EXISTS (SELECT 1 FROM members own
                WHERE own.channel_id = c.channel_id AND own.user_id = \(caller.user) AND own.state = 'member')
        """
    }

    private static func isFindable(by caller: Caller) -> SQL {
        let levels = Discoverability.allCases.filter { $0.isOpen(to: caller) }.map { level -> SQL in "(\(level.channels))" }
        return "(\(levels.joined(by: " OR ")) OR \(isOwn(of: caller)))"
    }

    /// The channels that callers find without being a member, with an index per kind. Members-only channels are in none.
    ///
    /// The conditions are those of the partial indexes, word for word.
    private enum Discoverability: CaseIterable {
        case everyone, operatorsOnly, deleted

        /// Whether the caller may find any of them. This only chooses indexes: the permission table checks each channel found.
        func isOpen(to caller: Caller) -> Bool {
            switch self {
            case .everyone: true
            case .operatorsOnly: caller.role.actsAsOperator
            case .deleted: caller.isAdmin
            }
        }

        var channels: SQL {
            switch self {
            case .everyone: "c.deleted_at IS NULL AND c.discovery = 'everyone'"
            case .operatorsOnly: "c.deleted_at IS NULL AND c.discovery <> 'everyone' AND c.discovery <> 'membersOnly'"
            case .deleted: "c.deleted_at IS NOT NULL AND c.discovery <> 'membersOnly'"
            }
        }

        var heads: SQL {
            switch self {
            case .everyone: "h.is_deleted = 0 AND h.discovery = 'everyone'"
            case .operatorsOnly: "h.is_deleted = 0 AND h.discovery <> 'everyone' AND h.discovery <> 'membersOnly'"
            case .deleted: "h.is_deleted = 1 AND h.discovery <> 'membersOnly'"
            }
        }
    }
}
