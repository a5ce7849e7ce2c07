import RoostAPI

/// The filters of a query as conditions, combined with `AND`. `c` is the channel, `h` its head, `m` the caller's row.

extension QueryChannels {
    /// Whether filters or the order use columns of `channels`, and not only those that every message changes.
    var needsAttributes: Bool {
        let filters: [Any?] = [
            types, customTypes, nameContains, isPublic, createdBy, createdBefore, createdAfter,
            ids.flatMap { $0.contains { $0.alias != nil } ? true : nil }, includeFrozen == false ? true : nil,
        ]
        return effectiveSort == .created || effectiveSort == .name || filters.contains { $0 != nil }
    }

    /// The filters that concern the channel itself.
    ///
    /// - Parameter id: The column of its id.
    func conditions(id: SQL) -> [SQL] {
        var all: [SQL] = []
        if let types { all.append("c.type IN (\(list: types.map(\.rawValue)))") }
        if let ids { all.append(condition(ids: ids, id)) }
        if let includingTags { all.append("EXISTS (\(Self.tags(includingTags, id)))") }
        if let excludingTags { all.append("NOT EXISTS (\(Self.tags(excludingTags, id)))") }
        if let customTypes { all.append("c.custom_type IN (\(list: customTypes))") }
        if let search = nameContains.flatMap(NameSearch.init) { all.append(search.condition(.channel, id: id, key: "c.name_key")) }
        switch isPublic {
        case true?: all.append("c.discovery = 'everyone' AND c.joining = 'everyone'")
        case false?: all.append("(c.discovery <> 'everyone' OR c.joining <> 'everyone')")
        case nil: break
        }
        if let createdBy { all.append("c.created_by = \(createdBy)") }
        all += creationBounds
        if includeDeleted != true { all.append("h.is_deleted = 0") }
        if includeEmpty == false { all.append("h.message_count > 0") }
        if includeFrozen == false { all.append("c.is_frozen = 0") }
        return all
    }

    /// The bounds of the channel's time of creation.
    var creationBounds: [SQL] {
        var all: [SQL] = []
        if let createdBefore { all.append("c.created_at < \(createdBefore)") }
        if let createdAfter { all.append("c.created_at > \(createdAfter)") }
        return all
    }

    private static func tags(_ tags: [String], _ id: SQL) -> SQL {
        "SELECT 1 FROM channel_tags t WHERE t.tag IN (\(list: tags)) AND t.channel_id = \(id)"
    }

    /// An id may be written as `type:id` (ST-03).
    private func condition(ids: [ChannelID], _ id: SQL) -> SQL {
        var ways: [SQL] = ["\(id) IN (\(list: ids.map(\.rawValue)))"]
        let aliases = Dictionary(grouping: ids.compactMap(\.alias), by: \.type)
        for (type, aliases) in aliases.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            ways.append("(c.type = \(type) AND \(id) IN (\(list: aliases.map(\.channel.rawValue))))")
        }
        return "(\(ways.joined(by: " OR ")))"
    }

    // MARK: The caller's own row

    /// Whether the caller has unread messages. A deleted channel has no members who could.
    static let isUnread: SQL = "h.is_deleted = 0 AND h.ordinal > m.read_count AND \(Unread.count) > 0"
    /// Equivalent to `Membership.visibility(in:)`: a newer message brings back a channel hidden until then, unless it is muted.
    static let hidesUntilNews: SQL = """
        m.hidden = 'hiddenAllowAutoUnhide' AND (h.ordinal <= m.hidden_count OR m.notifications_muted_until IS NOT NULL)
        """
    static let isArchived: SQL = "m.hidden = 'hiddenPreventAutoUnhide'"

    func ownConditions(of user: UserID) -> [SQL] {
        var all: [SQL] = []
        switch membership ?? .member {
        case .member:
            switch hidden ?? .unhiddenOnly {
            case .unhiddenOnly: all.append("NOT (\(Self.isArchived) OR (\(Self.hidesUntilNews)))")
            case .hiddenOnly: all.append("(\(Self.isArchived) OR (\(Self.hidesUntilNews)))")
            case .hiddenAllowAutoUnhide: all.append(Self.hidesUntilNews)
            case .hiddenPreventAutoUnhide: all.append(Self.isArchived)
            case .all: break
            }
        case .all, .notMember: break
        }
        if unreadOnly == true { all.append(Self.isUnread) }
        if let exactUsers {
            // The caller is always one of the members, named or not (D-24).
            let others = Set(exactUsers).subtracting([user])
            all.append(memberCount(is: others.count + 1))
            if !others.isEmpty { all.append(Self.memberCount(among: others, is: others.count)) }
        }
        if let includingUsers {
            let users = Set(includingUsers)
            all.append(
                includingUsersMatch == .any
                    ? "EXISTS (\(Self.members(among: users)))" : Self.memberCount(among: users, is: users.count))
        }
        return all
    }

    /// A deleted channel has no members, and is found by its former ones.
    private func memberCount(is count: Int) -> SQL {
        guard includeDeleted == true else { return "h.member_count = \(count)" }
        return """
            CASE WHEN h.is_deleted = 0 THEN h.member_count = \(count) ELSE
            (SELECT COUNT(*) FROM (SELECT 1 FROM members o WHERE o.channel_id = m.channel_id AND o.state = 'member'
                                   LIMIT \(count + 1)) AS present) = \(count) END
            """
    }

    private static func members(among users: Set<UserID>) -> SQL {
        """
        SELECT 1 FROM members o
        WHERE o.channel_id = m.channel_id AND o.user_id IN (\(list: users.map(\.rawValue).sorted())) AND o.state = 'member'
        """
    }

    private static func memberCount(among users: Set<UserID>, is count: Int) -> SQL {
        "(SELECT COUNT(*) FROM (\(members(among: users))) AS present) = \(count)"
    }
}
