/// Returns channels by filters, sorted and paged: the caller's own, or all that the caller may find (R09, AM-32, AM-33, SB-23, ST-09).
///
/// All given filters apply together. Pages use a keyset: each begins after the last row of the previous page. A row is skipped or shown
/// twice only if it moves across that position in between; a live list follows the events for those.
///
/// A page can hold fewer rows than requested and still have a `nextCursor`: it ends before its content is larger than
/// ``Limits/pageContentBytes``, and with `membership` other than `member` one call searches a bounded number of channels, so the page may
/// be empty. Only a page without `nextCursor` is the last.
/// - Throws: `invalid_argument` for a cursor of another query, and for filters and sorts that need a membership.
public struct QueryChannels: Operation {
    public typealias Response = Page<ChannelView>
    public static let name = "channel.query"
    public static let method = HTTPMethod.get
    public static let path = "/v1/channels"
    public static let permission = Permission.streamRead
    public static let summary = "Channels by filters: the caller's own, or all that the caller may find."

    /// `member` when left out: the caller's own channels (AM-33).
    public var membership: MembershipFilter?
    /// Only these types, at most 20 (AM-32).
    public var types: [ChannelType]?
    /// Only these channels, at most 100.
    public var ids: [ChannelID]?
    /// Only channels with at least one of these tags, at most 20 (AM-34).
    public var includingTags: [String]?
    /// No channels with one of these tags, at most 20 (AM-34).
    public var excludingTags: [String]?
    /// Only these custom types, at most 20.
    public var customTypes: [String]?
    /// Only channels whose name contains this, ignoring case and diacritics; 1 to 128 characters. One or two letters match the beginning of a word.
    public var nameContains: String?
    /// Only public, or only private channels.
    public var isPublic: Bool?
    /// Only channels that this user created.
    public var createdBy: UserID?
    /// Only channels created before this time (exclusive), in Unix milliseconds.
    public var createdBefore: Int64?
    /// Only channels created after this time (exclusive), in Unix milliseconds.
    public var createdAfter: Int64?
    /// Whether deleted channels are shown too, to those who may see them (AM-34). The caller's own are looked for among the caller's 20,000
    /// memberships, current and former, that changed last. False when left out.
    public var includeDeleted: Bool?
    /// Whether channels without messages are shown too (SB-24, D-10). True when left out.
    public var includeEmpty: Bool?
    /// Whether frozen channels are shown too. True when left out.
    public var includeFrozen: Bool?
    /// `unhiddenOnly` when left out (SB-30). Only with `membership` `member`.
    public var hidden: HiddenFilter?
    /// Only channels with unread messages. Only with `membership` `member`.
    public var unreadOnly: Bool?
    /// Only channels whose members are the caller and exactly these, at most 100 (SB-31, D-24). Only with `membership` `member`.
    public var exactUsers: [UserID]?
    /// Only channels with these members, at most 100 (SB-32). Only with `membership` `member`.
    public var includingUsers: [UserID]?
    /// Whether all of `includingUsers` have to be members, or one is enough. `all` when left out (SB-32).
    public var includingUsersMatch: UserMatch?
    /// `lastMessage` for the caller's own channels, `created` for others when left out.
    public var sort: ChannelSort?
    /// The direction of the sort; each key has its own when left out (ST-09).
    public var order: SortDirection?
    /// 1 to 100, 20 when left out.
    public var limit: Int?
    /// From an earlier page: its `nextCursor` for the page after it, its `previousCursor` for the page before it.
    public var cursor: String?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        membership: MembershipFilter? = nil, types: [ChannelType]? = nil, ids: [ChannelID]? = nil, includingTags: [String]? = nil,
        excludingTags: [String]? = nil, customTypes: [String]? = nil, nameContains: String? = nil, isPublic: Bool? = nil,
        createdBy: UserID? = nil, createdBefore: Int64? = nil, createdAfter: Int64? = nil, includeDeleted: Bool? = nil,
        includeEmpty: Bool? = nil, includeFrozen: Bool? = nil, hidden: HiddenFilter? = nil, unreadOnly: Bool? = nil,
        exactUsers: [UserID]? = nil, includingUsers: [UserID]? = nil, includingUsersMatch: UserMatch? = nil,
        sort: ChannelSort? = nil, order: SortDirection? = nil, limit: Int? = nil, cursor: String? = nil
    ) {
        self.membership = membership
        self.types = types
        self.ids = ids
        self.includingTags = includingTags
        self.excludingTags = excludingTags
        self.customTypes = customTypes
        self.nameContains = nameContains
        self.isPublic = isPublic
        self.createdBy = createdBy
        self.createdBefore = createdBefore
        self.createdAfter = createdAfter
        self.includeDeleted = includeDeleted
        self.includeEmpty = includeEmpty
        self.includeFrozen = includeFrozen
        self.hidden = hidden
        self.unreadOnly = unreadOnly
        self.exactUsers = exactUsers
        self.includingUsers = includingUsers
        self.includingUsersMatch = includingUsersMatch
        self.sort = sort
        self.order = order
        self.limit = limit
        self.cursor = cursor
    }

    public func validate() throws(RoostError) {
        try Limits.check(list: types, count: Limits.filterValues, field: "types") { type throws(RoostError) in
            try type.validate(field: "types")
        }
        try Limits.check(list: ids, count: Limits.usersPerCall, field: "ids") { id throws(RoostError) in
            try id.validate(field: "ids")
        }
        for (tags, field) in [(includingTags, "includingTags"), (excludingTags, "excludingTags")] {
            try Limits.check(list: tags, count: Limits.filterValues, field: field) { tag throws(RoostError) in
                try Limits.check(tag, length: Limits.tagLength, field: field)
            }
        }
        try Limits.check(list: customTypes, count: Limits.filterValues, field: "customTypes") { type throws(RoostError) in
            try Limits.check(type, length: Limits.customTypeLength, field: "customTypes")
        }
        if let nameContains {
            guard !nameContains.isEmpty else { throw .invalidArgument("nameContains", "must not be empty") }
            try Limits.check(nameContains, length: Limits.displayNameLength, field: "nameContains")
        }
        try createdBy?.validate(field: "createdBy")
        for (users, field) in [(exactUsers, "exactUsers"), (includingUsers, "includingUsers")] {
            try Limits.check(list: users, count: Limits.usersPerCall, field: field) { user throws(RoostError) in
                try user.validate(field: field)
            }
        }
        guard includingUsersMatch == nil || includingUsers != nil else {
            throw .invalidArgument("includingUsersMatch", "needs includingUsers")
        }
        _ = try Limits.page(limit, Limits.channelPage)
        try Limits.check(cursor, length: Limits.cursorLength, field: "cursor")
        try validateMembership()
    }

    /// Throws for filters on the caller's own membership unless only the caller's channels are searched.
    private func validateMembership() throws(RoostError) {
        guard (membership ?? .member) != .member else { return }
        let needing: [(String, Bool)] = [
            ("hidden", hidden != nil), ("unreadOnly", unreadOnly != nil), ("exactUsers", exactUsers != nil),
            ("includingUsers", includingUsers != nil),
            ("sort", sort == .lastMessage || sort == .unreadFirst),
        ]
        for (field, isGiven) in needing where isGiven {
            throw .invalidArgument(field, "needs the caller's own channels: membership member")
        }
    }

    /// The sort, or the default one.
    public var effectiveSort: ChannelSort { sort ?? ((membership ?? .member) == .member ? .lastMessage : .created) }
    /// The direction, or the sort's usual one.
    public var effectiveOrder: SortDirection { order ?? effectiveSort.defaultOrder }
}

/// The channels that a query searches (AM-33).
public enum MembershipFilter: String, Codable, CaseIterable, Sendable, WireEnumeration {
    /// The caller's own.
    case member
    /// All that the caller may find.
    case all
    /// All that the caller may find and isn't a member of.
    case notMember
}

/// Which hidden channels a query shows (SB-30).
public enum HiddenFilter: String, Codable, CaseIterable, Sendable, WireEnumeration {
    /// Channels that are shown.
    case unhiddenOnly
    /// Hidden and archived ones.
    case hiddenOnly
    /// Hidden ones that come back with the next message.
    case hiddenAllowAutoUnhide
    /// Archived ones.
    case hiddenPreventAutoUnhide
    /// All, hidden or not.
    case all
}

/// Whether all users have to match, or one is enough (SB-32).
public enum UserMatch: String, Codable, CaseIterable, Sendable, WireEnumeration {
    /// All of the users, or at least one of them.
    case all, any
}

/// The sort key of a list of channels. Each has a usual direction, which ``QueryChannels/order`` can reverse.
public enum ChannelSort: String, Codable, CaseIterable, Sendable, WireEnumeration {
    /// The newest message first; a channel without messages by its creation.
    case lastMessage
    /// The newest change of any kind first (AM-10).
    case lastActivity
    /// The newest channel first.
    case created
    /// By name from A to Z, ignoring case and diacritics; channels without a name come first.
    case name
    /// Channels with unread messages first; within each group the newest message first.
    case unreadFirst

    /// The direction in which the key sorts by default.
    public var defaultOrder: SortDirection { self == .name ? .ascending : .descending }
}

/// The direction of a sorted list (ST-09).
public enum SortDirection: String, Codable, CaseIterable, Sendable, WireEnumeration {
    /// The oldest, the smallest or A first.
    case ascending
    /// The newest, the largest or Z first.
    case descending
}
