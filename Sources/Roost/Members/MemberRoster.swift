import RoostAPI

/// The rows of a member list, built from the server's pages and from events, in any order of arrival.
struct MemberRoster {
    private let sort: MemberSort
    private let order: SortDirection
    private let roles: Set<ChannelRole>?
    private var entries: [UserID: MemberItem] = [:]
    /// The newest row of each member from events: a page may be older.
    private var updates: [UserID: Member] = [:]
    /// The last member of the pages so far. Nil if they contain all members.
    private var end: Member?
    private(set) var nextCursor: String?

    init(sort: MemberSort, order: SortDirection? = nil, roles: [ChannelRole]?) {
        self.sort = sort
        self.order = order ?? sort.defaultOrder
        self.roles = roles.map(Set.init)
    }

    var count: Int { entries.count }

    /// The rows in order.
    var sorted: [MemberItem] { entries.values.sorted { isBefore($0.member, $1.member) } }

    /// All users in the roster.
    var users: Set<UserID> { Set(entries.keys) }

    /// Starts over with a first page, or appends the next one.
    mutating func add(_ page: Page<MemberEntry>, isFirst: Bool) {
        if isFirst { entries = [:] }
        for entry in page.items { entries[entry.id] = MemberItem(entry) }
        nextCursor = page.nextCursor
        if let last = page.items.last?.member { end = last } else if isFirst { end = nil }
        if nextCursor == nil { end = nil }
        for member in updates.values { take(member) }
    }

    /// Forgets the rows of earlier events, which pages requested from now on include: some of these members may have left since.
    mutating func forgetUpdates() { updates = [:] }

    /// Resets the roster.
    mutating func removeAll() { (entries, updates, end, nextCursor) = ([:], [:], nil, nil) }

    /// Applies rows of events.
    mutating func apply(_ members: [Member]) {
        for member in members where updates[member.userId].map({ $0.changeSeq < member.changeSeq }) ?? true {
            updates[member.userId] = member
            take(member)
        }
    }

    /// Applies a change of presence.
    ///
    /// - Parameter now: The time, by this device's clock.
    /// - Returns: Whether it concerns any user in the roster.
    mutating func apply(_ change: PresenceChange, at now: Timestamp) -> Bool {
        for user in change.online {
            entries[user]?.isOnline = true
            entries[user]?.lastActiveAt = nil
        }
        for user in change.offline {
            // For a user known to be offline, this isn't new.
            if entries[user]?.isOnline == true { entries[user]?.lastActiveAt = now }
            entries[user]?.isOnline = false
        }
        return !entries.keys.allSatisfy { !change.online.contains($0) && !change.offline.contains($0) }
    }

    private mutating func take(_ member: Member) {
        let held = entries[member.userId]
        if let held, held.member.changeSeq >= member.changeSeq { return }
        guard member.state == .member, roles?.contains(member.role) ?? true, isInPages(member) else {
            entries[member.userId] = nil
            return
        }
        var entry = held ?? MemberItem(member)
        entry.member = member
        entries[member.userId] = entry
    }

    /// Whether a member's place is within the pages so far. Later members arrive with a later page.
    private func isInPages(_ member: Member) -> Bool {
        guard nextCursor != nil, let end else { return true }
        return !isBefore(end, member)
    }

    private func isBefore(_ left: Member, _ right: Member) -> Bool {
        switch sort {
        case .firstCreated: (left.joinedSeq, left.userId) < (right.joinedSeq, right.userId)
        case .lastCreated: (left.joinedSeq, left.userId) > (right.joinedSeq, right.userId)
        case .userId: order == .ascending ? left.userId < right.userId : left.userId > right.userId
        }
    }
}

/// The users of these pages are stored.
extension ListMembers: UserNaming {
    static func users(in page: Page<MemberEntry>) -> [UserSummary] { page.items.compactMap { $0.user?.summary } }
}

extension SearchMembers: UserNaming {
    static func users(in page: Page<MemberEntry>) -> [UserSummary] { page.items.compactMap { $0.user?.summary } }
}

extension GetMember: UserNaming {
    static func users(in entry: MemberEntry) -> [UserSummary] { entry.user.map { [$0.summary] } ?? [] }
}

extension ListInvitations: UserNaming {
    static func users(in page: Page<Invitation>) -> [UserSummary] { page.users ?? [] }
}
