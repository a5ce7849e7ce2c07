public import RoostAPI

extension MemberEntry: Identifiable {
    /// The member's user id.
    public var id: UserID { member.userId }
}

/// The rows of a member list, built from pages of the server and from events. It doesn't matter which comes first.
struct MemberRoster {
    private let sort: MemberSort
    private let order: SortDirection
    private let roles: Set<ChannelRole>?
    private var entries: [UserID: MemberItem] = [:]
    /// The newest row of each member from events: a page may be older.
    private var updates: [UserID: Member] = [:]
    /// The last member of the pages so far. Nil when they hold everybody.
    private var end: Member?
    private(set) var nextCursor: String?

    init(sort: MemberSort, order: SortDirection? = nil, roles: [ChannelRole]?) {
        self.sort = sort
        self.order = order ?? sort.usualOrder
        self.roles = roles.map(Set.init)
    }

    var count: Int { entries.count }

    /// The rows in their order.
    var sorted: [MemberItem] { entries.values.sorted { isBefore($0.member, $1.member) } }

    /// Everybody on it.
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

    /// Forgets the rows of events so far, which a page that is asked for from now on includes: somebody of them may have left since.
    mutating func forgetUpdates() { updates = [:] }

    /// Begins as new.
    mutating func removeAll() { (entries, updates, end, nextCursor) = ([:], [:], nil, nil) }

    /// Takes in rows of events.
    mutating func apply(_ members: [Member]) {
        for member in members where updates[member.userId].map({ $0.changeSeq < member.changeSeq }) ?? true {
            updates[member.userId] = member
            take(member)
        }
    }

    /// Takes in who came online and who went offline.
    ///
    /// - Parameter now: The time, by this device's clock.
    /// - Returns: Whether it concerns anybody on the list.
    mutating func apply(_ change: PresenceChange, at now: Timestamp) -> Bool {
        for user in change.online {
            entries[user]?.isOnline = true
            entries[user]?.lastActiveAt = nil
        }
        for user in change.offline {
            // Of one who was known to be offline it says nothing new.
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

    /// Returns whether the pages so far reach a member's place. Members after that come with a later page.
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
