import RoostAPI

/// The common part of lists of members: the matching rows of a channel, their order, and the data shown of each.
struct MemberListing {
    let channel: ChannelID
    let states: Set<MemberFilter>
    let roles: [ChannelRole]?
    let sort: MemberSort
    let order: SortDirection
    let now: Timestamp
    /// A deleted channel has no members, as its `memberCount` says; only bans outlive it.
    let isDeleted: Bool
    /// Whether the caller may know which members are muted and which users are banned (D-28).
    let showsMuted: Bool
    let showsBanned: Bool
    /// Further conditions on a row, which is named `m`.
    var further: [SQL] = []

    var columns: [SQL] { sort == .userId ? ["m.user_id"] : ["m.joined_seq", "m.user_id"] }
    var shape: [SortKey.Kind] { sort == .userId ? [.text] : [.integer, .text] }
    var isDescending: Bool { order == .descending }

    /// The condition for a matching row.
    var conditions: SQL {
        var ways: [SQL] = []
        if states.contains(.member), !isDeleted { ways.append("m.state = 'member'") }
        if states.contains(.muted), !isDeleted { ways.append("(m.state = 'member' AND m.muted_until > \(now))") }
        if states.contains(.banned) { ways.append("m.banned_until > \(now)") }
        let ofRoles: [SQL] = roles.map { ["m.role IN (\(list: $0.map(\.rawValue)))"] } ?? []
        if ways.isEmpty { ways.append("1 = 0") }
        return (["(\(ways.joined(by: " OR ")))"] + ofRoles + further).allOf
    }

    /// Returns the page of the list for a query.
    func page(for query: some PagedQuery, through sources: [Walk.Source<UserID>], _ context: Context) throws -> Page<MemberEntry> {
        let walk = try Walk(query, shape: shape, limits: Limits.memberPage, isDescending: isDescending)
        return try walk.page(through: sources) {
            try entry(of: $0, isOnline: context.presence.isOnline($0, channel), in: context.transaction)
        }
    }

    /// Returns the sources that read the rows in the order of the list, along the indexes with the fewest other rows.
    func sources(in transaction: any Transaction) -> [Walk.Source<UserID>] {
        if isDeleted, !states.contains(.banned) { return [] }
        // Members with other roles are few in most channels, and have separate indexes.
        if let roles, !roles.contains(.member) {
            return Set(roles).sorted().map { role in
                source("m.role = \(role) AND m.role <> 'member'", in: transaction)
            }
        }
        if states.contains(.member) {
            let member = source(sort == .userId ? nil : "m.state = 'member'", in: transaction)
            // In the order of the ids, all rows are passed anyway.
            return states.contains(.banned) && sort != .userId
                ? [member, source("m.banned_until IS NOT NULL", in: transaction)] : [member]
        }
        var sources: [Walk.Source<UserID>] = []
        if states.contains(.muted) { sources.append(source("m.muted_until IS NOT NULL", in: transaction)) }
        if states.contains(.banned) { sources.append(source("m.banned_until IS NOT NULL", in: transaction)) }
        return sources
    }

    /// - Parameter part: The condition of the index used.
    private func source(_ part: SQL?, in transaction: any Transaction) -> Walk.Source<UserID> {
        let (columns, conditions) = (columns, conditions)
        let names: [SQL] = sort == .userId ? ["w.user_id"] : ["w.joined_seq", "w.user_id"]
        let along: SQL = part.map { " AND \($0)" } ?? ""
        return { page in
            let passed: SQL = """
                SELECT \(columns.joined(by: ", ")) FROM members m WHERE m.channel_id = \(channel)\(along)\(page.condition(on: columns))
                ORDER BY \(page.order(by: columns)) LIMIT \(page.count)
                """
            let sql: SQL = """
                SELECT \(names.joined(by: ", ")), CASE WHEN \(conditions) THEN 1 ELSE 0 END
                FROM (\(passed)) AS w CROSS JOIN members m WHERE m.channel_id = \(channel) AND m.user_id = w.user_id
                ORDER BY \(page.order(by: names))
                """
            return try transaction.rows(sql) { row in
                let place = shape.map { SortKey($0, reading: &row) }
                return Walk.Entry(place: place, row: row.bool() ? place.user : nil)
            }
        }
    }

    /// Returns a source of the given users whose rows match, in the order of the list.
    func source(among users: Set<UserID>, in transaction: any Transaction) throws -> Walk.Source<UserID> {
        var places: [[SortKey]] = []
        for part in users.sorted().map(\.rawValue).chunked(by: 512) {
            let sql: SQL = """
                SELECT \(columns.joined(by: ", ")) FROM members m
                WHERE m.channel_id = \(channel) AND m.user_id IN (\(list: part)) AND \(conditions)
                """
            places += try transaction.rows(sql) { row in shape.map { SortKey($0, reading: &row) } }
        }
        let sorted = places
        return { page in
            sorted.filter(page.holds).sorted(by: page.precedes).prefix(page.count).map {
                Walk.Entry(place: $0, row: $0.user)
            }
        }
    }

    /// Returns a row as the list shows it.
    func entry(of user: UserID, isOnline: Bool, in transaction: any Transaction) throws -> MemberEntry? {
        let sql: SQL = """
            SELECT \(Member.columns), m.muted_until, m.banned_until, a.active_at, \(User.columns)
            FROM members m LEFT JOIN users u ON u.user_id = m.user_id
                LEFT JOIN user_activity a ON a.user_id = m.user_id AND u.shares_presence = 1
            WHERE m.channel_id = \(channel) AND m.user_id = \(user) AND \(conditions)
            """
        return try transaction.first(sql) { row in
            var member = try Member(reading: &row)
            if isDeleted { member.state = .none }
            let (mutedUntil, bannedUntil) = (row.optionalTimestamp(), row.optionalTimestamp())
            let lastActiveAt = row.optionalTimestamp()
            return MemberEntry(
                member: member, user: try User(readingIfPresent: &row), isOnline: isOnline,
                lastActiveAt: isOnline ? nil : lastActiveAt,
                mutedUntil: mutedUntil.flatMap { showsMuted && $0 > now ? $0 : nil },
                bannedUntil: bannedUntil.flatMap { showsBanned && $0 > now ? $0 : nil })
        }
    }
}

extension Context {
    /// Returns a list of members for the caller. Throws for states that the caller may not list (D-28, MN-18).
    func members(
        of access: ChannelAccess, states: [MemberFilter]?, roles: [ChannelRole]?, sort: MemberSort, order: SortDirection,
        searching: Bool = false
    ) throws -> MemberListing {
        let states = Set(states ?? [.member])
        if states.contains(.muted) { try require(.memberListMuted, in: access) }
        if states.contains(.banned) { try require(searching ? .memberSearchBanned : .memberListBanned, in: access) }
        return MemberListing(
            channel: access.channelId, states: states, roles: roles, sort: sort, order: order, now: now,
            isDeleted: access.deletedAt != nil, showsMuted: refusal(of: .memberListMuted, in: access) == nil,
            showsBanned: refusal(of: .memberListBanned, in: access) == nil)
    }
}

extension [SortKey] {
    /// The user at a place, whose last value is the id.
    fileprivate var user: UserID? {
        if case .text(let id) = last { UserID(id) } else { nil }
    }
}

extension MemberEntry: ContentSized {
    var contentSizeBytes: Int { member.contentSizeBytes + (user?.contentSizeBytes ?? 0) + 200 }
}
